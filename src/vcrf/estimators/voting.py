"""Votes: the convex combination of fitted taggers, folded into one model of the same kind.

The score of a label sequence is linear in the weights, so that the mean of the taggers' scores is the score of
their mean weights: a feature that a tagger lacks has weight zero in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vcrf.errors import InputError
from vcrf.model import FamilyFacts, Model
from vcrf.model.fingerprints import joined
from vcrf.types import Floats, Ints, Label, UInts32, UInts64

if TYPE_CHECKING:
    from vcrf.estimators import SequenceEstimator
    from vcrf.families.family import Source


def vote(taggers: Sequence[SequenceEstimator], weights: Sequence[float] | None = None) -> Any:
    """One tagger whose scores are the weighted mean of the taggers' scores.

    Parameters
    ----------
    taggers : fitted estimators
        Trained on tokens or on attributes, all alike, with labels of one kind. They may differ in everything else:
        sentences, families, orders, strengths.
    weights : one number a tagger, not negative, optional
        Divided by their sum; all equal by default.

    Returns
    -------
    An estimator with the parameters of the first
        It labels, gives probabilities, explains and can be saved as any other. It minimises nothing, so it has no
        objective, gap or status.

    Examples
    --------
    >>> from vcrf import VCRF, vote
    >>> X, y = [["a", "b"], ["b", "a"]], [["A", "B"], ["B", "A"]]
    >>> both = vote([VCRF(tags=tags).fit(X, y) for tags in (1, 2)])
    >>> both.predict([["a", "b"]])
    [['A', 'B']]
    """
    from sklearn.base import clone

    models = [tagger._model().scored for tagger in taggers]
    if not models:
        raise InputError("A vote needs at least one fitted tagger, got none.")
    voted = clone(taggers[0])
    voted.model_ = combine(models, _shares(weights, len(models)))
    voted.classes_ = list(voted.model_.labels)
    return voted


def combine(models: Sequence[Model], shares: Floats) -> Model:
    """The model of the shared weights: sum over models of share * weight."""
    if any(model.known is not None for model in models):
        raise InputError("Taggers with `known_labels` cannot vote: each forbids other labels. Train them without.")
    labels = _labels(models)
    sources: list[Source] = list(dict.fromkeys(source for model in models for source in model.sources))
    number = {source: i for i, source in enumerate(sources)}
    families, family_of = _families(models, number)
    parts = [_entries(model, share, labels) for model, share in zip(models, shares.tolist(), strict=True)]
    found = _Entries(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    names = [name for model in models for name in model.names]
    # Rows by source and key, those that occur in several models once; `first` has the name.
    row_source = np.concatenate([_row_sources(model, number) for model in models])
    keys = np.concatenate([model.keys for model in models])
    rows, first, of_row = np.unique(_pairs(row_source, keys), return_index=True, return_inverse=True)
    offset = np.cumsum([0, *(len(model.keys) for model in models)])
    at = of_row[found.rows + np.repeat(offset[:-1], [len(part.rows) for part in parts])]
    merged = _merge(at, found)
    family = family_of[rows["source"][merged.rows], merged.lengths]
    return Model(
        labels=labels,
        sources=sources,
        family_of=family_of,
        families=_with_weights(families, family, merged.weights),
        source_ptr=np.searchsorted(rows["source"], np.arange(len(sources) + 1)).astype(np.int64),
        keys=rows["key"].copy(),
        names=[names[i] for i in first.tolist()],
        ptr=np.searchsorted(merged.rows, np.arange(len(rows) + 1)).astype(np.int64),
        lengths=merged.lengths,
        codes=merged.codes,
        weights=merged.weights,
        vocabulary=np.unique(np.concatenate([model.vocabulary for model in models])),
        sentences=joined([model.sentences for model in models]),
    )


class _Entries(NamedTuple):
    """Weights by row, pattern length and pattern code."""

    rows: Ints
    lengths: UInts32
    codes: UInts32
    weights: Floats


def _shares(weights: Sequence[float] | None, n: int) -> Floats:
    given = np.ones(n) if weights is None else np.asarray(weights, np.float64)
    if given.shape != (n,) or not np.all(np.isfinite(given)) or np.any(given < 0.0) or not np.any(given):
        raise InputError(f"A vote of {n} taggers needs {n} weights that are not negative, not all 0: got {weights!r}.")
    return np.asarray(given / given.sum())


def _labels(models: Iterable[Model]) -> list[Label]:
    labels = {label for model in models for label in model.labels}
    if len({isinstance(label, str) for label in labels}) > 1:
        raise InputError("The taggers of a vote must have labels that are all str or all int: got both.")
    return sorted(labels)


def _families(models: Sequence[Model], number: dict[Source, int]) -> tuple[list[FamilyFacts], Ints]:
    """All families, with the largest numbers of candidates and columns, and the family of (source, length)."""
    families: dict[tuple[str, int], FamilyFacts] = {}
    for facts in (facts for model in models for facts in model.families):
        known = families.setdefault((facts.name, facts.tags), facts)
        n_candidates, n_columns = (
            max(known.n_candidates, facts.n_candidates),
            max(known.n_columns, facts.n_columns),
        )
        families[facts.name, facts.tags] = replace(known, n_candidates=n_candidates, n_columns=n_columns)
    index = {name: i for i, name in enumerate(families)}
    table = np.full((len(number), max(model.family_of.shape[1] for model in models)), -1, np.int64)
    for model in models:
        for s, k in zip(*np.nonzero(model.family_of >= 0), strict=True):
            facts = model.families[model.family_of[s, k]]
            at, family = (number[model.sources[s]], k), index[facts.name, facts.tags]
            if table[at] not in (-1, family):
                other = list(families)[table[at]][0]
                raise InputError(
                    f"{model.sources[s].name!r} with {k} labels is in family {other!r} of one tagger and in "
                    f"{facts.name!r} of another: a vote needs the same families, or different attributes."
                )
            table[at] = family
    return list(families.values()), table


def _row_sources(model: Model, number: dict[Source, int]) -> Ints:
    own = np.array([number[source] for source in model.sources], np.int64)
    return np.repeat(own, np.diff(model.source_ptr))


def _pairs(source: Ints, key: UInts64) -> Any:
    """Source and key as one array that sorts by both."""
    pairs = np.empty(len(key), [("source", np.int64), ("key", np.uint64)])
    pairs["source"], pairs["key"] = source, key
    return pairs


def _entries(model: Model, share: float, labels: list[Label]) -> _Entries:
    """The model's entries with the vote's numbers of labels."""
    at = {label: i for i, label in enumerate(labels)}
    own = np.array([at[label] for label in model.labels], np.int64)
    rest, codes, place = model.codes.astype(np.int64), np.zeros(len(model.codes), np.int64), 1
    for i in range(model.order):
        codes += np.where(i < model.lengths, place * own[rest % model.n_labels], 0)
        rest, place = rest // model.n_labels, place * len(labels)
    rows = np.repeat(np.arange(len(model.keys)), np.diff(model.ptr))
    return _Entries(rows, model.lengths, codes.astype(np.uint32), share * model.weights)


def _merge(rows: Ints, found: _Entries) -> _Entries:
    """Sum of the entries of each row and pattern, sorted by these; zeros are left out."""
    order = np.lexsort((found.codes, found.lengths, rows))
    rows, lengths, codes = rows[order], found.lengths[order], found.codes[order]
    if not len(rows):
        return _Entries(rows, lengths, codes, found.weights)
    begins = np.flatnonzero(
        np.concatenate([[True], (np.diff(rows) != 0) | (lengths[1:] != lengths[:-1]) | (codes[1:] != codes[:-1])])
    )
    weights = np.add.reduceat(found.weights[order], begins)
    kept = begins[weights != 0.0]
    return _Entries(rows[kept], lengths[kept], codes[kept], weights[weights != 0.0])


def _with_weights(families: list[FamilyFacts], family: Ints, weights: Floats) -> list[FamilyFacts]:
    n_active = np.bincount(family, minlength=len(families)).tolist()
    mass = np.bincount(family, np.abs(weights), len(families)).tolist()
    return [replace(facts, n_active=n, l1_mass=size) for facts, n, size in zip(families, n_active, mass, strict=True)]
