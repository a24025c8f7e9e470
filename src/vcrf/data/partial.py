"""Two tagsets at once: files whose labels say a part of what others say, as UPOS beside UPOS and FEATS.

Such a label stands for the set of whole labels that agree with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any

from vcrf.data.bundles import FEATS, components_of, join_columns
from vcrf.data.conllu import FIELDS
from vcrf.data.corpus import Corpus
from vcrf.data.layout import Layout
from vcrf.data.readers import read_with_layout
from vcrf.errors import InputError


def open_bundles(
    y: Iterable[Sequence[str]], labels: Iterable[str], left_open: Collection[str] | None = None
) -> list[list[Any]]:
    """Each label as the set of those labels that have all its components: what `fit` takes as labels left open.

    Parameters
    ----------
    y : lists of labels, one a sentence
        Bundles like UPOS=NOUN, with a part of the components.
    labels : the whole labels, bundles like UPOS=NOUN|Case=Nom
    left_open : names of the components that y says nothing of; None: all that a label of it does not have
        With ["UPOS"] the label Case=Nom stands for UPOS=NOUN|Case=Nom, not for UPOS=NOUN|Case=Nom|Number=Sing.

    Returns
    -------
    list of list
        A frozenset where several labels agree, the label where one does; a label that none agrees with stays.

    Examples
    --------
    >>> open_bundles([["UPOS=X", "UPOS=Y", "UPOS=Z"]], ["UPOS=X|Case=Nom", "UPOS=Y"])
    [['UPOS=X|Case=Nom', 'UPOS=Y', 'UPOS=Z']]
    """
    whole = {label: frozenset(components_of(label)) for label in labels}
    found: dict[str, Any] = {}
    for part in dict.fromkeys(chain.from_iterable(y := [list(sentence) for sentence in y])):
        wanted = frozenset(components_of(part))
        agree = frozenset(
            label
            for label, components in whole.items()
            if wanted <= components and (left_open is None or all(name in left_open for name, _ in components - wanted))
        )
        found[part] = agree if len(agree) > 1 else next(iter(agree), part)
    return [[found[label] for label in sentence] for sentence in y]


def read_partial(given: str, whole: Corpus, layout: Layout, split: str | None = None) -> tuple[Corpus, set[str]]:
    """Sentences of FILE=COLUMNS, whose labels are open in the other columns of the layout; and labels of their own.

    Raises
    ------
    InputError
        When the labels of the whole corpus are no bundles, or the columns none of theirs.
    """
    path, mark, columns = given.rpartition("=")
    if not layout.tags:
        raise InputError(
            f"--partial {given}: labels are of one column, which leaves nothing open. Pass --tag with several columns, "
            "as upos+feats."
        )
    known = {FIELDS[tag].lower() for tag in layout.tags}
    names = [name.strip().lower() for name in columns.split("+")]
    if not mark or not path or not set(names) < known:
        raise InputError(
            f"--partial {given}: expected FILE=COLUMNS with some of the columns {layout.bundle}, not all, as "
            f"FILE={FIELDS[layout.tags[0]].lower()}."
        )
    corpus, found = read_with_layout(path, columns.strip(), split)
    if found.format != "conllu":
        raise InputError(f"--partial {given}: expected CoNLL-U, whose columns have names.")
    y = corpus.labels if found.tags else [[_bundle(found, z) for z in labels] for labels in corpus.labels]
    # A file that has FEATS says of each word all its features; `_` is none.
    left_open = (
        [FIELDS[tag] for tag in layout.tags if FIELDS[tag].lower() not in names] if FEATS.lower() in names else None
    )
    labels = open_bundles(y, whole.label_set, left_open)
    own = {label for sentence in labels for label in sentence if isinstance(label, str)} - set(whole.label_set)
    return Corpus(corpus.tokens, labels, corpus.sources), own


def _bundle(layout: Layout, label: str) -> str:
    return join_columns([FIELDS[layout.tag]], [label])
