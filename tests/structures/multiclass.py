"""The smallest structure: one variable an example, a multi-class problem. It is all that a new structure has to be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vcrf.families import Family, NamedFeature, read_attributes
from vcrf.families.columns import read_columns
from vcrf.problem import Candidates, PartSpace
from vcrf.problem.candidates import family_table
from vcrf.structures.structure import Purpose, Scan, Wanted, wanted
from vcrf.structures.training_loss import TrainingLoss
from vcrf.surrogates.choice import OUTER
from vcrf.surrogates.smooth import SmoothObjective


@dataclass(frozen=True)
class MultiClass(Candidates):
    """Examples with attributes, and the label of each: one kind of parts, the label of the only variable."""

    @property
    def space(self):
        return PartSpace((self.n_labels,))

    @property
    def n_instances(self):
        return len(self.y)

    @property
    def example_of(self):
        return np.arange(len(self.y))

    @property
    def log_outputs(self):
        return float(np.log(self.n_labels))

    def n_parts(self, kind):  # noqa: ARG002
        return np.ones(len(self.y), np.int64)

    def has_part(self, kind):  # noqa: ARG002
        return np.ones(len(self.y), bool)

    @cached_property
    def matrix(self):
        """Values of the columns, (n_examples, n_columns)."""
        table, out = self.columns, np.zeros((len(self.y), len(self.columns)))
        column = np.repeat(np.arange(len(table)), np.diff(table.ptr))
        out[table.positions, column] = table.values if len(table.values) else 1.0
        return out


def build_multiclass(examples, y, n_labels):
    """Read dicts of attributes, one an example."""
    text = read_attributes([[example] for example in examples])
    families = [Family(name, (NamedFeature(name),)) for name in text.source_names]
    sources = list(dict.fromkeys(source for family in families for source in family.sources))
    weights = np.full(len(y), 1.0 / len(y))
    return MultiClass(
        text, y, n_labels, families, sources, family_table(families, sources, 1), read_columns(text, sources), weights
    )


@dataclass(frozen=True)
class Labels:
    """A plan: columns and labels of its features."""

    features: np.ndarray
    columns: np.ndarray
    labels: np.ndarray
    order = 1
    work = 0

    def __len__(self):
        return len(self.features)


@dataclass(frozen=True, eq=False)
class Softmax:
    """Sums: probabilities of the labels of each example, and what follows from them."""

    problem: MultiClass
    plan: Labels
    w: np.ndarray
    weights: np.ndarray
    probabilities: np.ndarray
    values: np.ndarray
    warm = None

    @property
    def residuals(self):
        truth = np.eye(self.problem.n_labels)[self.problem.y]
        return self.weights[:, None] * (self.probabilities - truth)


@dataclass(frozen=True, eq=False)
class Scores:
    """Potentials: scores of the labels of each example."""

    problem: MultiClass
    plan: Labels
    w: np.ndarray

    def sums(self, loss: TrainingLoss, weights):
        table = np.zeros((len(self.problem.columns), self.problem.n_labels))
        table[self.plan.columns, self.plan.labels] = self.w
        scores = self.problem.matrix @ table
        scores += loss.costs[:, None] * (np.arange(self.problem.n_labels) != self.problem.y[:, None])
        top = scores.max(axis=1, keepdims=True)
        log_z = top + np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
        values = log_z[:, 0] - scores[np.arange(len(scores)), self.problem.y]
        return Softmax(self.problem, self.plan, self.w, weights, np.exp(scores - log_z), values)

    def values(self, loss):
        return self.sums(loss, self.problem.weights).values


class SingleVariable:
    """The structure."""

    is_convex, has_hessian, hessian_in_passes = True, True, 1.0

    def __init__(self, problem, keep):
        self.problem, self.keep = problem, keep

    def ascent(self, loss, weights, strengths):  # noqa: ARG002
        """No dual ascent: a run begins at zero."""
        return

    def close(self):
        """Nothing to end."""

    def compile(self, features):
        columns, _, labels = self.problem.split_features(features)
        return Labels(features, columns, labels)

    def work(self, columns, kinds):  # noqa: ARG002 - a feature costs nothing beside the product of matrices
        return np.zeros(len(columns), np.int64)

    def prepare(self, plan, w, loss, purpose=Purpose.GRADIENT, order=1, warm=None):  # noqa: ARG002 - every pass is the same
        return Scores(self.problem, plan, w)

    def gradient(self, sums):
        return (self.problem.matrix.T @ sums.residuals)[sums.plan.columns, sums.plan.labels]

    def curvature(self, sums, variances):  # noqa: ARG002
        p = sums.weights[:, None] * sums.probabilities * (1.0 - sums.probabilities)
        return (self.problem.matrix.T**2 @ p)[sums.plan.columns, sums.plan.labels]

    def wanted(self, mass, limits) -> Wanted:
        return wanted(self.keep, mass, limits)

    def scan(self, sums, gradient, wanted, may_stop=False) -> Scan:  # noqa: ARG002
        every = self.problem.matrix.T @ sums.residuals
        above = (np.abs(every) > wanted.limits[1][:, None]) & self.keep[:, None]
        columns, labels = np.nonzero(above)
        features = self.problem.join_features(columns.astype(np.uint32), 1, labels.astype(np.uint32))
        return Scan(features, every[columns, labels])

    def hessian(self, sums, chosen, stride=1, scale=np.inf):  # noqa: ARG002
        x, p = self.problem.matrix[:, sums.plan.columns[chosen]], sums.probabilities[:, sums.plan.labels[chosen]]
        same = sums.plan.labels[chosen][:, None] == sums.plan.labels[chosen]
        own = (sums.weights[:, None] * x * p).T @ x
        return np.where(same, own, 0.0) - (sums.weights[:, None] * x * p).T @ (x * p)

    def sentence_gradients(self, sums, chosen):
        columns, labels = sums.plan.columns[chosen], sums.plan.labels[chosen]
        yield sums.weights, self.problem.matrix[:, columns] * sums.residuals[:, labels]


@dataclass(frozen=True)
class MultiClassSurrogate:
    """A smooth surrogate of a multi-class problem, with what a wrong label costs."""

    cost: float = 0.0
    kind: str = "crf"

    def mass(self, problem):
        return OUTER[self.kind].mass(problem)

    def build(self, problem, keep, threads=1, lattice="auto"):  # noqa: ARG002
        structure, loss = SingleVariable(problem, keep), TrainingLoss(np.full(len(problem.y), self.cost))
        return SmoothObjective(structure, OUTER[self.kind], loss, problem.weights, self.mass(problem))
