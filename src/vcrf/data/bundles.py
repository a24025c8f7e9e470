"""Bundles: labels that are several columns of CoNLL-U at once, as in UPOS=NOUN|Case=Nom|Number=Sing.

A bundle is a list of components NAME=VALUE between bars: a column has its own name, FEATS its features. A word without
any has the bundle `_`.
"""

from __future__ import annotations

from collections.abc import Sequence

from vcrf.errors import InputError

EMPTY = "_"
FEATS = "FEATS"


def components_of(label: str) -> tuple[tuple[str, str], ...]:
    """Names and values of a bundle, in its order.

    Raises
    ------
    InputError
        When the label is no bundle.

    Examples
    --------
    >>> components_of("UPOS=NOUN|Case=Nom")
    (('UPOS', 'NOUN'), ('Case', 'Nom'))
    """
    if label == EMPTY:
        return ()
    found = []
    for item in label.split("|"):
        name, mark, value = item.partition("=")
        if not name or not mark or not value:
            raise InputError(
                f"Label {label!r} is no bundle of components like UPOS=NOUN|Case=Nom: {item!r} is not NAME=VALUE."
            )
        found.append((name, value))
    if len({name for name, _ in found}) < len(found):
        raise InputError(f"Label {label!r} is no bundle: a component occurs twice.")
    return tuple(found)


def is_bundle(label: str) -> bool:
    """Whether a label can be split."""
    try:
        components_of(label)
    except InputError:
        return False
    return True


def join_columns(names: Sequence[str], values: Sequence[str]) -> str:
    """The bundle of a word, from its columns.

    Raises
    ------
    InputError
        When a column but FEATS has no value, or one that a bundle cannot hold.
    """
    items: list[str] = []
    for name, value in zip(names, values, strict=True):
        if name == FEATS:
            items += [] if value in ("", EMPTY) else value.split("|")
        elif value in ("", EMPTY):
            raise InputError(f"expected a label in {name}, got {value!r}. Fill it in, or leave {name} out of the tag.")
        elif "|" in value:
            raise InputError(f"{name} is {value!r}: a bundle of columns cannot hold `|`. Leave {name} out of the tag.")
        else:
            items.append(f"{name}={value}")
    label = "|".join(items) or EMPTY
    try:
        components_of(label)
    except InputError as error:
        raise InputError(f"{FEATS} is no list of features like Case=Nom|Number=Sing. {error}") from None
    return label


def split_columns(label: str, names: Sequence[str]) -> list[str]:
    """The columns of a bundle: what `join_columns` was given; `_` where it says nothing.

    Raises
    ------
    InputError
        When the label is no bundle of these columns.
    """
    components = dict(components_of(label))
    found = [components.pop(name, EMPTY) if name != FEATS else "" for name in names]
    if components and FEATS not in names:
        raise InputError(f"Label {label!r} has components that are in none of {', '.join(names)}.")
    feats = "|".join(f"{name}={value}" for name, value in components.items()) or EMPTY
    return [feats if name == FEATS else value for name, value in zip(names, found, strict=True)]
