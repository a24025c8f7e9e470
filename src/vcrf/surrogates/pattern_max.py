"""The maximum surrogates on a pattern automaton: best label sequences, and the scan at a mixture of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf.problem import Problem
from vcrf.surrogates.active import ActiveSet
from vcrf.surrogates.crf import Scan, n_blocks
from vcrf.surrogates.effort import check_effort
from vcrf.surrogates.max_margin import MaxChoice, MaxSurrogate, Mixture
from vcrf.surrogates.pattern_scan import MixtureScan
from vcrf.surrogates.patterns import PatternSurrogate, _plan_of, arc_scores, is_dense, local_arcs
from vcrf.surrogates.tables import slot_corrections
from vcrf.types import Bools, Floats

if TYPE_CHECKING:
    from vcrf.kernels.margin import Best


def make_max_surrogate(
    problem: Problem, keep: Bools, choice: MaxChoice, threads: int = 1, lattice: str = "auto"
) -> MaxSurrogate:
    """The surrogate on the lattice asked for: see `patterns.is_dense`."""
    is_on_dense = is_dense(problem, lattice, keeps_arcs=True)
    check_effort(problem, keep, threads, n_blocks(problem), is_on_dense)
    if is_on_dense:
        return MaxSurrogate(problem, keep, choice, threads)
    return PatternMaxSurrogate(problem, keep, choice, threads, is_forced=lattice == "patterns")


class PatternMaxSurrogate(PatternSurrogate, MaxSurrogate):
    """Best sequences at some weights, and the scan of all candidates; parameters as for `MaxSurrogate`.

    `is_forced` : the automaton is used also where the dense lattice would be cheaper.
    """

    has_hessian = False

    def find_best(self, active: ActiveSet, w: Floats) -> Best:
        """The sequences worth the most at w; their values are f_i."""
        from vcrf.kernels import pattern_max
        from vcrf.kernels.margin import Best

        plan = _plan_of(active)
        if not plan.is_cheap:
            return super().find_best(active, w)
        self.n_passes += 1
        problem, n = self.problem, self.problem.text.n_sentences
        arcs = arc_scores(plan.automaton, plan.table_arcs, w[active.table_features]).log
        local = local_arcs(slot_corrections(active, w, self.workers), plan.cor_arcs)
        parts = active.rows, self._key_scores(active, w), plan.graph, arcs, local
        best = Best(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(problem.n_tokens, np.uint32))

        def block(first: int, last: int) -> None:
            if self._valued is None:
                pattern_max.max_pass(
                    problem.sent_ptr, problem.y, first, last, problem.n_labels, self._ends, *parts, best
                )
                return
            valued, additive = self._valued
            pattern_max.slack_pass(
                problem.sent_ptr, problem.y, first, last, problem.n_labels, valued, additive, *parts, self._kappas, best
            )

        self.workers.run(block, self._sentence_bounds)
        return best

    def check_memory(self, limits: dict[int, Floats]) -> None:
        """Nothing grows with n_labels**order."""

    def scan_mixture(self, mixture: Mixture, limits: dict[int, Floats]) -> Scan:
        """All candidates whose |g| exceeds their limit, g = sum of shares * (Psi(sequence) - Psi(truth))."""
        from vcrf.kernels import cuts

        problem = self.problem
        marginals = np.zeros((problem.n_tokens, problem.n_labels))
        cuts.mixture(
            problem.sent_ptr, mixture.sentence, mixture.label_ptr, mixture.labels, mixture.share, problem.n_labels, 1,
            marginals, np.zeros((0, 0)),
        )  # fmt: skip
        self.weights = np.asarray(np.bincount(mixture.sentence, mixture.share, problem.text.n_sentences), np.float64)
        marginals[np.arange(problem.n_tokens), problem.y] -= self.token_weights
        self._residuals, self._spread = marginals, (marginals, np.zeros(0))
        return MixtureScan(self, mixture, limits).run()
