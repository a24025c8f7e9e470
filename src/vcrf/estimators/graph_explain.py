"""Why a node has its label: the features that decide between the best labelling and the best one without it.

As for sequences (`labelling.explain`): for node v let y be the best labelling and y' the best of those with another
label at v. Every feature that occurs in one of them and not in the other contributes its weight, and

    score(y) - score(y') = sum of the contributions
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vcrf.families.text import Text
from vcrf.graphs.inference import GraphInference
from vcrf.graphs.layout import GraphLayout
from vcrf.model.graphs import GraphModel
from vcrf.types import Floats, Ints, Label

_SWEEPS = 20


class PartContribution(NamedTuple):
    """What one feature adds to the difference of scores; `nodes` are those of its node or edge, `labels` theirs."""

    family: str
    attribute: str
    nodes: tuple[int, ...]
    labels: tuple[Label, ...]
    value: float


@dataclass(frozen=True)
class NodeExplanation:
    """Why a node has its label.

    Attributes
    ----------
    label, probability : of the best labelling at this node, and its posterior there
    runner_up, runner_up_probability : label of the best labelling that differs here; None if only one is possible
    difference : score of the best labelling less that of the other one
    contributions : the largest first; they sum to the difference
    """

    node: int
    label: Label
    probability: float
    runner_up: Label | None
    runner_up_probability: float
    difference: float
    contributions: list[PartContribution]


def explain_graph(model: GraphModel, text: Text, layout: GraphLayout, scores: Floats) -> list[NodeExplanation]:
    """Explain the label of every node of one graph. The time grows with the square of the number of nodes."""
    infer = GraphInference(layout)
    best = infer.best(scores).y
    parts = infer.probabilities(scores, _SWEEPS)
    at: list[list[tuple[int, float]]] = [[] for _ in layout.kind_of]
    for position, row, value in model.occurrences(text):
        at[position].append((row, value))
    return [_explain(v, model, layout, infer, scores, best, parts, at) for v in range(len(best))]


def _explain(
    v: int, model: GraphModel, layout: GraphLayout, infer: GraphInference, scores: Floats, best: Ints, parts: Floats,
    at: list[list[tuple[int, float]]],
) -> NodeExplanation:  # fmt: skip
    first, card = int(layout.score_ptr[v]), int(layout.cards[v])
    names = layout.kinds.labels[int(layout.types[v])]
    label, posterior = int(best[v]), parts[first : first + card]
    masked = scores.copy()
    masked[first + label] = -np.inf
    if not np.any(masked[first : first + card] > -np.inf):
        return NodeExplanation(v, names[label], 1.0, None, 0.0, 0.0, [])
    other = infer.best(masked).y
    found = _contributions(model, layout, best, other, at)
    runner_up = int(other[v])
    return NodeExplanation(
        v, names[label], float(posterior[label]), names[runner_up], float(posterior[runner_up]),
        math.fsum(contribution.value for contribution in found), found,
    )  # fmt: skip


def _contributions(
    model: GraphModel, layout: GraphLayout, best: Ints, other: Ints, at: list[list[tuple[int, float]]]
) -> list[PartContribution]:
    """Features in one of two labellings and not in the other, the largest first."""
    ours, theirs = layout.entries(best) - layout.score_ptr[:-1], layout.entries(other) - layout.score_ptr[:-1]
    (skeleton,) = layout.skeletons
    found = []
    for p in np.flatnonzero(ours != theirs).tolist():
        for row, value in at[p]:
            for e in range(int(model.ptr[row]), int(model.ptr[row + 1])):
                code = int(model.codes[e])
                sign = float(code == ours[p]) - float(code == theirs[p])
                if sign:
                    feature = model.feature(row, e)
                    value_here, nodes = sign * value * feature.weight, skeleton.scopes[p]
                    found.append(PartContribution(feature.family, feature.attribute, nodes, feature.labels, value_here))
    return sorted(found, key=lambda c: (-abs(c.value), c.attribute, c.nodes, repr(c.labels)))
