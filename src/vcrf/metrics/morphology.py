"""Accuracy of bundles, part by part: the columns and features of labels like UPOS=NOUN|Case=Nom.

Whole columns are compared as in the shared task of CoNLL 2018, on given words: UFeats are the universal features alone,
AllTags are UPOS, XPOS and these together.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from vcrf.data.bundles import components_of
from vcrf.metrics.pairs import check_pairs

# What the shared task compares.
UNIVERSAL = frozenset(
    [
        "PronType",
        "NumType",
        "Poss",
        "Reflex",
        "Foreign",
        "Abbr",
        "Gender",
        "Animacy",
        "Number",
        "Case",
        "Definite",
        "Degree",
        "VerbForm",
        "Mood",
        "Tense",
        "Aspect",
        "Voice",
        "Evident",
        "Polarity",
        "Person",
        "Polite",
    ]
)
_COLUMNS = ("UPOS", "XPOS")


class Share(NamedTuple):
    """Tokens where the predicted value is the true one; `n_there` are those whose label has one."""

    n_right: int
    n: int
    n_right_there: int
    n_there: int

    @property
    def rate(self) -> float:
        """The accuracy on all tokens: that there is no value is a value too."""
        return self.n_right / self.n if self.n else float("nan")


class Morphology(NamedTuple):
    """Accuracies of bundles.

    Attributes
    ----------
    columns : "label", the columns that the labels have ("UPOS", "XPOS"), "UFeats" where they have features, and
        "AllTags" where they have all three
    features : of each feature, universal or not
    """

    columns: dict[str, Share]
    features: dict[str, Share]


def morphology(y_true: Iterable[Any], y_pred: Iterable[Any]) -> Morphology:
    """Compare bundles part by part; all labels must be bundles.

    Examples
    --------
    >>> found = morphology([["UPOS=NOUN|Case=Nom", "UPOS=VERB"]], [["UPOS=NOUN|Case=Acc", "UPOS=VERB"]])
    >>> found.columns["UPOS"].rate, found.columns["UFeats"].rate
    (1.0, 0.5)
    """
    true, predicted = check_pairs(y_true, y_pred)
    known: dict[Any, dict[str, str]] = {}
    for label in chain(chain.from_iterable(true), chain.from_iterable(predicted)):
        if label not in known:
            known[label] = dict(components_of(str(label)))
    pairs = [(known[a], known[b]) for s, t in zip(true, predicted, strict=True) for a, b in zip(s, t, strict=True)]
    names = sorted({name for components in known.values() for name in components})
    features = [name for name in names if name not in _COLUMNS]
    parts: dict[str, list[str]] = {"label": names} | {name: [name] for name in _COLUMNS if name in names}
    universal = [name for name in features if name in UNIVERSAL]
    if features:
        parts["UFeats"] = universal
    if features and all(name in names for name in _COLUMNS):
        parts["AllTags"] = [*_COLUMNS, *universal]
    return Morphology(
        {name: _share(pairs, of) for name, of in parts.items()}, {name: _share(pairs, [name]) for name in features}
    )


def _share(pairs: list[tuple[dict[str, str], dict[str, str]]], names: list[str]) -> Share:
    """Tokens that agree in all components of these names."""
    right = [all(a.get(name) == b.get(name) for name in names) for a, b in pairs]
    there = [any(name in a for name in names) for a, _ in pairs]
    both = sum(is_right and is_there for is_right, is_there in zip(right, there, strict=True))
    return Share(sum(right), len(pairs), both, sum(there))
