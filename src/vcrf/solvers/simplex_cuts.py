"""The maximum surrogates with an l2 penalty alone: block ascent on a product of simplices, one for each example.

    max over lam  of  sum_k lam_k a_k - 1/2 g.S g,    g = sum_k lam_k d_k,    w = -S g,    S = diag(1 / l2)

with lam >= 0 and, in each example, multipliers that sum to v_i; the truth (a = 0, d = 0) has one too. There is no need
for the proximal term of `solvers.cutting_plane`: the weights follow from the multipliers, feature by feature, and
the ascent is cheap where the inner products of an example's outputs are kept. A pass of decoding finds outputs at
the weights, and one at their moving average, which has the smaller objective: the weights swing, as outputs not
found yet come in. (Lacoste-Julien et al., 2013, Block-coordinate Frank-Wolfe; Osokin et al., 2016, with cached
outputs and pairwise steps.) The certificate is that of `cutting_plane`.
"""

from __future__ import annotations

import numpy as np

from vcrf import kernels
from vcrf.solvers.cooling import CoolingPoint
from vcrf.solvers.cutting_plane import CuttingPlanes
from vcrf.solvers.policy import SIMPLEX
from vcrf.solvers.result import SolverResult
from vcrf.structures.outputs import BestOutputs, Mixture, Outputs
from vcrf.types import Floats, Ints, UInts32


class Example:
    """The outputs found for one example, the truth first, with their multipliers, rows and inner products.

    labels (n, length); intercept, slope, lam, age (n,); row_ptr (n + 1,); columns, values, gram with room for more.
    """

    def __init__(self, truth: UInts32, weight: float) -> None:
        self.labels = truth[None].copy()
        self.intercept, self.slope, self.lam = np.zeros(1), np.zeros(1), np.array([weight])
        self.age, self.row_ptr = np.zeros(1, np.int64), np.zeros(2, np.int64)
        self.columns, self.values, self.gram = np.zeros(0, np.uint32), np.zeros(0), np.zeros((1, 1))
        self.known = {truth.tobytes()}

    def __len__(self) -> int:
        return len(self.lam)

    def add(self, labels: UInts32, intercept: float, slope: float) -> None:
        """A new output, without a multiplier; its row has to follow."""
        self.known.add(labels.tobytes())
        self.labels = np.concatenate([self.labels, labels[None]])
        self.intercept, self.slope = np.append(self.intercept, intercept), np.append(self.slope, slope)
        self.lam, self.age = np.append(self.lam, 0.0), np.append(self.age, 0)

    def add_row(self, columns: Ints, values: Floats, scale: Floats, zeros: Floats) -> None:
        """The row of the next output without one; `zeros`, one a feature, are zeros again at the end."""
        first, k = self.row_ptr[-1], len(self.row_ptr) - 1
        last = first + len(columns)
        if last > len(self.columns):
            room = np.zeros(last - first + last // 4, np.uint32)
            self.columns = np.concatenate([self.columns[:first], room])
            self.values = np.concatenate([self.values[:first], room.astype(np.float64)])
        self.columns[first:last], self.values[first:last] = columns, values
        if k >= len(self.gram):
            gram = np.zeros((k + 2 + k // 4, k + 2 + k // 4))
            gram[:k, :k] = self.gram[:k, :k]
            self.gram = gram
        self.row_ptr = np.append(self.row_ptr, last)
        kernels.simplex_cuts.add_gram_row(self.row_ptr, self.columns, self.values, scale, k, zeros, self.gram)

    def clear_rows(self) -> None:
        """Before new rows, on other features; that of the truth stays."""
        self.row_ptr = np.zeros(2, np.int64)

    def drop_old(self) -> None:
        """Let the outputs go that have had no multiplier for long, where they are many."""
        self.age = np.where(self.lam > 0.0, 0, self.age + 1)
        stays = self.age <= SIMPLEX.max_age
        stays[0] = True
        if np.count_nonzero(~stays) <= SIMPLEX.many_old * len(stays):
            return
        self.known -= {labels.tobytes() for labels in self.labels[~stays]}
        lengths = np.diff(self.row_ptr)
        entries = np.flatnonzero(np.repeat(stays, lengths))
        self.columns, self.values = self.columns[entries], self.values[entries]
        self.row_ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[stays])])
        self.gram = np.ascontiguousarray(self.gram[: len(stays), : len(stays)][stays][:, stays])
        self.labels, self.age = self.labels[stays], self.age[stays]
        self.intercept, self.slope, self.lam = self.intercept[stays], self.slope[stays], self.lam[stays]


class SimplexCuts(CuttingPlanes):
    """One run with an l2 penalty alone."""

    def _first_points(self, start: SolverResult | None) -> None:
        truth, weights = self.objective.truth, self.problem.weights
        self.examples = [Example(truth.labels_of(i), float(v)) for i, v in enumerate(weights)]
        self.scale = self.zeros = self.average = np.zeros(0)
        self.on_plan = self.objective.rows(self.active)
        super()._first_points(start)

    def _cool(self, start: SolverResult | None) -> None:  # noqa: ARG002 - the first cuts have seen the start
        """Temperatures are of no use here, but all features are: they have a gradient under the uniform posterior."""
        smooth = self.choice.smooth.build(self.problem, self.objective.keep, self.threads, self.lattice)
        none = np.zeros(0, np.int64)
        _, scan = smooth.scan(smooth.compile(none), np.zeros(0), self.limits)
        smooth.close()
        self.objective.n_passes += 1
        self._add_features(np.union1d(scan.features, self.best.features))

    def _add_features(self, features: Ints) -> None:
        """Features join the working set; the best weights have them too, at 0."""
        w = np.zeros(len(features))
        w[np.searchsorted(features, self.best.features)] = self.best.w
        self.best = CoolingPoint(features, w, self.best.objective)

    def _set_rows(self) -> None:
        """All rows on the working set, and the weights of the multipliers."""
        self.scale = self.penalty.inverse_l2(self.active.features)
        self.zeros = np.zeros(len(self.scale))
        self.on_plan = self.objective.rows(self.active)
        for i, one in enumerate(self.examples):
            one.clear_rows()
            self._add_rows([i] * (len(one) - 1), range(1, len(one)))
        self._set_weights()
        self.average = self.w.copy()

    def _add_rows(self, which: list[int], numbers: range | list[int]) -> None:
        """Rows of some outputs of some examples."""
        pairs = [(self.examples[i], k) for i, k in zip(which, numbers, strict=True)]
        outputs = Outputs.of(np.array(which, np.int64), [one.labels[k] for one, k in pairs])
        row_ptr, columns, values = self.on_plan.of(outputs, np.array([one.slope[k] for one, k in pairs]))
        for c, i in enumerate(which):
            part = slice(row_ptr[c], row_ptr[c + 1])
            self.examples[i].add_row(columns[part], values[part], self.scale, self.zeros)

    def _set_weights(self) -> None:
        """Weights from the multipliers: steps alone would add up rounding errors."""
        self.w = np.zeros(len(self.scale))
        for one in self.examples:
            kernels.simplex_cuts.add_weights(one.row_ptr, one.columns, one.values, one.lam, self.scale, self.w)

    def _add_cuts(self, found: BestOutputs) -> int:
        new = []
        for i in np.flatnonzero(found.values > 0.0).tolist():
            labels = found.outputs.labels_of(i)
            if labels.tobytes() not in self.examples[i].known:
                self.examples[i].add(labels, found.losses[i], found.slopes[i])
                new.append(i)
        self._add_rows(new, [-1] * len(new))
        return len(new)

    # ----- a round

    def _round(self) -> int:
        n_new = 0
        for _ in range(SIMPLEX.passes):
            self._ascend()
            dual = self._mean_loss() - self._penalty_of(self.active.features, self.w)
            n_new += self._look()
            if self.best.objective - dual <= self.tol * self.best.objective:
                break
        self._set_weights()
        return n_new + self._certify()

    def _ascend(self) -> None:
        for _ in range(SIMPLEX.sweeps):
            for one in self.examples:
                if len(one) > 1:
                    kernels.simplex_cuts.ascend_sentence(
                        one.row_ptr, one.columns, one.values, one.intercept, one.gram, self.scale, one.lam, self.w,
                        SIMPLEX.steps, SIMPLEX.enough,
                    )  # fmt: skip
        for one in self.examples:
            one.drop_old()

    def _mean_loss(self) -> float:
        return sum(float(one.lam @ one.intercept) for one in self.examples)

    def _look(self) -> int:
        """Objective and new outputs at the weights and at their average; returns how many outputs."""
        here, n_new = self._decode(self.w)
        self.average += SIMPLEX.newest * (self.w - self.average)
        there, n_more = self._decode(self.average)
        if here < there:
            self.average = self.w.copy()
        return n_new + n_more

    def _decode(self, w: Floats) -> tuple[float, int]:
        found = self.objective.find_best(self.active, w)
        objective = float(self.problem.weights @ found.values) + self._penalty_of(self.active.features, w)
        if objective < self.best.objective:
            self.best = CoolingPoint(self.active.features, w.copy(), objective)
        return objective, self._add_cuts(found)

    def _certify(self) -> int:
        """Lower bound from a scan of all candidates; returns how many joined the working set."""
        examples = self.examples
        number = np.repeat(np.arange(len(examples)), [len(one) for one in examples])
        outputs = Outputs.of(number, [labels for one in examples for labels in one.labels])
        mixture = Mixture(outputs, np.concatenate([np.zeros(0), *(one.lam * one.slope for one in examples)]))
        found, scan = self._bound(lambda limits: self.objective.scan_mixture(mixture, limits), self._mean_loss())
        self.raise_bound(found.lower_bound, found.excess)
        new = np.setdiff1d(scan.features, self.active.features, assume_unique=True)
        if len(new):
            self._set_working_set(np.union1d(self.active.features, new))
        return len(new)
