"""Whether the parts of a model fit each other: after these checks no input can lead tagging astray."""

from __future__ import annotations

import numpy as np

from vcrf.errors import InputError
from vcrf.families.explicit import NamedFeature
from vcrf.families.family import Source
from vcrf.families.templates import Template
from vcrf.model import Model
from vcrf.problem import MAX_PATTERNS
from vcrf.types import Floats, Ints, UInts64

# Values of features are at most 1e50 and sums over a text add some digits: no score comes near 1e308.
MAX_WEIGHT = 1e100
# With one label any order fits the budget; no sentence needs more than this.
_MAX_ORDER = 1000


def check_model(model: Model) -> None:
    """Raise InputError, saying what is wrong, unless the parts of a model fit each other."""
    if model.n_labels == 0:
        raise InputError("there are no labels")
    _check_sources(model.sources)
    _check_sizes(model)
    _check_components(model)
    _check_known(model)
    _check_family_table(model)
    _check_patterns(model)
    _check_keys(model)


def _check_sources(sources: list[Source]) -> None:
    """No text has words and given features."""
    reads_words = any(isinstance(source, Template) and source.reads_words for source in sources)
    if reads_words and any(isinstance(source, NamedFeature) for source in sources):
        raise InputError("some sources read words and others given features, which no sentence has together")


def _check_sizes(model: Model) -> None:
    n_rows, n_entries = len(model.keys), len(model.weights)
    _check_pointers(model.source_ptr, len(model.sources), n_rows, "source_ptr")
    _check_pointers(model.ptr, n_rows, n_entries, "ptr")
    for name, found, expected in (
        ("names", len(model.names), n_rows),
        ("lengths", len(model.lengths), n_entries),
        ("codes", len(model.codes), n_entries),
        ("family_of", len(model.family_of), len(model.sources)),
    ):
        if found != expected:
            raise InputError(f"{name} has {found} elements, expected {expected}")


def _check_known(model: Model) -> None:
    found = model.known
    if found is None:
        return
    if np.any(found.words[1:] <= found.words[:-1]):
        raise InputError("known.words must be sorted, each once")
    _check_pointers(found.ptr, len(found.words), len(found.labels), "known.ptr")
    rises = np.diff(found.labels.astype(np.int64)) > 0
    is_first = np.zeros(len(found.labels) + 1, bool)
    is_first[found.ptr[:-1]] = True
    if np.any(np.diff(found.ptr) == 0) or np.any(~rises & ~is_first[1:-1]) or np.any(found.labels >= model.n_labels):
        raise InputError("known.labels must be numbers of labels, sorted for each word, and none may be empty")


def _check_components(model: Model) -> None:
    found = model.components
    if found is None:
        return
    _check_pointers(found.ptr, len(found.names), len(found.labels), "components.ptr")
    rises = np.diff(found.labels.astype(np.int64)) > 0
    is_first = np.zeros(len(found.labels) + 1, bool)
    is_first[found.ptr] = True
    if np.any(found.labels >= model.n_labels) or not np.all(rises | is_first[1 : len(rises) + 1]):
        raise InputError("components.labels must hold sorted numbers of labels for each value")
    if len(set(found.names)) < len(found.names):
        raise InputError("a component value occurs twice")
    for name, values in zip(found.pairs, found.pair_values, strict=True):
        labels = found.expand(values.astype(np.int64))[1]
        if not len(values) or len(np.unique(labels)) < len(labels):
            raise InputError(f"there are pairs of {name[:40]!r}, which has no values, or two of them at one label")
    if len(set(found.pairs)) < len(found.pairs):
        raise InputError("a component has pairs twice")


def _check_pointers(ptr: Ints, n: int, end: int, name: str) -> None:
    if len(ptr) != n + 1 or ptr[0] != 0 or ptr[-1] != end or np.any(ptr[1:] < ptr[:-1]):
        raise InputError(f"{name} must have {n + 1} elements that rise from 0 to {end}")


def _check_family_table(model: Model) -> None:
    table, n = model.family_of, len(model.families)
    n_kinds = table.shape[1] - 1
    order = n_kinds if model.components is None else model.component_kind - 1
    if not 0 <= order <= _MAX_ORDER or model.assignments(order) > MAX_PATTERNS:
        raise InputError(
            f"tag patterns of length {order} over {model.n_labels} labels are beyond the budget of {MAX_PATTERNS:,}"
        )
    if np.any(table < -1) or np.any(table >= n):
        raise InputError(f"family_of must hold numbers of the {n} families, or -1")
    tags = np.array([min(family.tags, _MAX_ORDER + 1) for family in model.families], np.int64)
    lengths = np.nonzero(table >= 0)[1]
    if model.components is not None:
        if order < 1:
            raise InputError("there are components and no kind of parts for them")
        # Families on components have one label, or two.
        if model.components.pairs and order < 2:
            raise InputError("there are pairs of components and no kind of parts for pairs")
        of_components = np.where(lengths == model.component_kind, 1, 2)
        lengths = np.where(lengths < model.component_kind, lengths, of_components)
    if np.any(tags[table[table >= 0]] != lengths) or np.any(lengths == 0):
        raise InputError("family_of has a family under another pattern length than its own")


def _check_patterns(model: Model) -> None:
    order = model.family_of.shape[1] - 1
    if np.any(model.lengths < 1) or np.any(model.lengths > order):
        raise InputError(f"pattern lengths must be 1..{order}")
    limits = np.array([model.assignments(k) for k in range(order + 1)], np.int64)
    if np.any(model.codes >= limits[model.lengths]):
        raise InputError(f"a pattern code is too large for its length over {model.n_labels} labels")
    sources = np.repeat(np.arange(len(model.sources)), np.diff(model.ptr[model.source_ptr]))
    if np.any(model.family_of[sources, model.lengths] < 0):
        raise InputError("a weight belongs to no family")
    _check_weights(model.weights)


def _check_weights(weights: Floats) -> None:
    # Minimum and maximum of what has a NaN are NaN, which lies in no interval.
    low, high = weights.min(initial=0.0), weights.max(initial=0.0)
    if not (low > -np.inf and high < np.inf):
        raise InputError("a weight is not finite")
    if not (low >= -MAX_WEIGHT and high <= MAX_WEIGHT):
        raise InputError(f"a weight is beyond {MAX_WEIGHT:g}, so that scores could overflow")


def _check_keys(model: Model) -> None:
    """A key finds one row: none is 0 ("no attribute"), none occurs twice in a table of `Model`."""
    if not np.all(model.keys):
        raise InputError("an attribute has key 0")
    named = [np.zeros(0, np.uint64)]
    tables: list[UInts64] = []
    for s, source in enumerate(model.sources):
        keys = model.keys[model.source_ptr[s] : model.source_ptr[s + 1]]
        (named if isinstance(source, NamedFeature) else tables).append(keys)
    for keys in [*tables, np.concatenate(named)]:
        ordered = np.sort(keys)
        if np.any(ordered[1:] == ordered[:-1]):
            raise InputError("two attributes of one source have the same key")
