"""Warm start: the weights of a model that is there, as a start for training on other sentences.

A feature of the new problem is a column and a tag pattern; a column has the attributes of the same tokens, at most one
a source. Its weight is the sum of the weights that the model has for these attributes and that pattern. The optimum
does not depend on the start, and the certificate is that of the new problem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vcrf.errors import InputError
from vcrf.model import Model
from vcrf.model.build import keys_of_columns
from vcrf.problem import Problem
from vcrf.solvers.result import SolverResult, Status
from vcrf.types import Ints, Label

if TYPE_CHECKING:
    from vcrf.estimators.parameters import TrainingData


def warm_start(data: TrainingData, start: Any) -> SolverResult:
    """The start of a solver from a fitted tagger.

    Parameters
    ----------
    data : the new problem and its labels
    start : a fitted estimator
        Its weights were divided by its temperature, which is undone.
    """
    model = getattr(start, "model_", None)
    if not isinstance(model, Model):
        raise InputError(
            f"`start` must be a fitted tagger, got {type(start).__name__}. Pass an estimator after `fit`, or "
            "`vcrf.load` the file of one."
        )
    problem = data.problem
    labels = _label_map(model.labels, data.classes)
    number = {source: s for s, source in enumerate(model.sources)}
    parts = [
        _of_source(problem, s, model, number[source], labels)
        for s, source in enumerate(problem.sources)
        if source in number
    ]
    features = np.concatenate([np.zeros(0, np.int64), *(part[0] for part in parts)])
    weights = np.concatenate([np.zeros(0), *(part[1] for part in parts)])
    found, place = np.unique(features, return_inverse=True)
    summed = np.bincount(place, weights, len(found)) * float(getattr(start, "temperature_", None) or 1.0)
    kept = (summed != 0.0) & _is_candidate(problem, found)
    return SolverResult(found[kept], summed[kept], np.inf, np.inf, np.inf, Status.INTERRUPTED, 0, 0.0)


def _label_map(old: list[Label], new: list[Label]) -> Ints:
    """Number of each old label among the new ones, -1 if it is gone."""
    number = {label: i for i, label in enumerate(new)}
    return np.array([number.get(label, -1) for label in old], np.int64)


def _of_source(problem: Problem, s: int, model: Model, row: int, labels: Ints) -> tuple[Ints, Any]:
    """Features and weights of one source: columns whose attribute the model knows, times its tag patterns."""
    has_source = np.array([s in sources for sources in problem.columns.class_sources], bool)
    columns = np.flatnonzero(has_source[problem.columns.classes]) if len(has_source) else np.zeros(0, np.int64)
    first, last = int(model.source_ptr[row]), int(model.source_ptr[row + 1])
    if not len(columns) or first == last:
        return np.zeros(0, np.int64), np.zeros(0)
    keys = keys_of_columns(problem, s, columns)
    order = np.argsort(model.keys[first:last])
    known = model.keys[first:last][order]
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    is_known = known[place] == keys
    columns, rows = columns[is_known], first + order[place[is_known]]
    counts = np.diff(model.ptr)[rows]
    ends = np.cumsum(counts)
    entries = np.repeat(model.ptr[rows] - (ends - counts), counts) + np.arange(int(counts.sum()))
    return _joined(problem, s, model, np.repeat(columns, counts), entries, labels)


def _joined(
    problem: Problem, s: int, model: Model, columns: Ints, entries: Ints, labels: Ints
) -> tuple[Ints, Any]:  # fmt: skip
    """Feature numbers of (column, pattern), the pattern in the new labels; patterns that the family lacks go."""
    features, weights = [np.zeros(0, np.int64)], [np.zeros(0)]
    for k in problem.kinds:
        own = _kind_in(model, problem, k)
        chosen = entries[model.lengths[entries] == own]
        if not len(chosen) or problem.family_of[s, k] < 0:
            continue
        old = model.codes[chosen].astype(np.int64)
        if k <= problem.order:
            codes, is_there = _codes(old, k, model.n_labels, labels, problem.n_labels)
        elif k == problem.component_kind:
            codes, is_there = _values(problem, model, old)
        else:
            codes, is_there = _value_pairs(problem, model, k, old)
        of_kind = columns[model.lengths[entries] == own][is_there]
        features.append(problem.join_features(of_kind.astype(np.uint32), k, codes[is_there].astype(np.uint32)))
        weights.append(model.weights[chosen][is_there])
    return np.concatenate(features), np.concatenate(weights)


def _kind_in(model: Model, problem: Problem, k: int) -> int:
    """The kind of a model that a kind of a problem is; -1 if it has none."""
    if k <= problem.order or model.components is None or problem.components is None:
        is_pattern = k <= problem.order and (model.components is None or k < model.component_kind)
        return k if is_pattern else -1
    if k == problem.component_kind:
        return model.component_kind
    name = problem.components.pairs[k - problem.component_kind - 1]
    pairs = model.components.pairs
    return model.component_kind + 1 + pairs.index(name) if name in pairs else -1


def _value_pairs(problem: Problem, model: Model, k: int, old: Ints) -> tuple[Ints, Any]:
    """Pairs of values of one component in the new numbers, and which of them there still are."""
    if problem.components is None or model.components is None:
        return np.zeros(0, np.int64), np.zeros(0, bool)
    component = k - problem.component_kind - 1
    values = problem.components.pair_values[component]
    of_model = model.components.pair_values[model.components.pairs.index(problem.components.pairs[component])]
    before, here = (_values(problem, model, of_model[side].astype(np.int64)) for side in np.divmod(old, len(of_model)))
    codes = np.searchsorted(values, before[0]) * len(values) + np.searchsorted(values, here[0])
    return codes, before[1] & here[1]


def _values(problem: Problem, model: Model, old: Ints) -> tuple[Ints, Any]:
    """Component values in the new numbers, and which of them there still are."""
    known = [] if model.components is None else model.components.names
    number = {name: i for i, name in enumerate([] if problem.components is None else problem.components.names)}
    codes = np.array([number.get(name, -1) for name in known], np.int64)[old]
    return np.maximum(codes, 0), codes >= 0


def _codes(old: Ints, k: int, n_old: int, labels: Ints, n_new: int) -> tuple[Ints, Any]:
    """Codes of patterns of k labels in the new numbers, and which of them have no label that is gone."""
    codes, is_there = np.zeros(len(old), np.int64), np.ones(len(old), bool)
    for i in range(k):
        digit = labels[old // n_old**i % n_old]
        is_there &= digit >= 0
        codes += np.maximum(digit, 0) * n_new**i
    return codes, is_there


def _is_candidate(problem: Problem, features: Ints) -> Any:
    """Whether each feature may have a weight: all, unless only observed patterns may."""
    columns, kinds, codes = problem.split_features(features)
    is_in = np.ones(len(features), bool)
    for k in problem.kinds:
        of_kind = kinds == k
        if problem.observed_for(k) and of_kind.any():
            pairs = columns[of_kind].astype(np.int64) * problem.space.size(k) + codes[of_kind]
            is_in[of_kind] = np.isin(pairs, problem.observed(k))
    return is_in
