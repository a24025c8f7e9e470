"""The maximum surrogates in training: m3n and structsvm, whose gradients come from best label sequences.

    m3n         f_i = max(0, max_y loss(y) + w.delta(y))
    structsvm   f_i = max(0, max_y loss(y) (1 + w.delta(y)))          delta(y) = Psi(x_i, y) - Psi(x_i, y_i)

Each label sequence y gives a cut: f_i >= a + w.d with a = loss(y) and d = slope * delta(y), slope = 1 or loss(y).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vcrf.errors import InputError
from vcrf.losses import Loss
from vcrf.problem import Problem
from vcrf.surrogates.active import ActiveSet
from vcrf.surrogates.choice import SmoothChoice, choose
from vcrf.surrogates.compiled_loss import CompiledLoss, compile_loss, join_automata
from vcrf.surrogates.crf import CrfSurrogate, Scan
from vcrf.surrogates.product import check_arcs
from vcrf.surrogates.tables import build_tables, slot_corrections
from vcrf.types import Bools, Floats, Ints, UInts32

if TYPE_CHECKING:
    from vcrf.kernels.margin import Additive, Best, Ends

KINDS = ("m3n", "structsvm")


@dataclass(frozen=True, eq=False)
class MaxChoice:
    """A maximum surrogate with its loss; for structsvm `valued` are automata whose last states tell the loss.

    `smooth` is crf with the same loss: at temperature T, f_T(w) = T f_{loss/T}(w/T) tends to m3n as T to 0.
    """

    kind: str
    loss: CompiledLoss
    smooth: SmoothChoice
    valued: CompiledLoss | None = None


def choose_max(problem: Problem, kind: str, loss: Loss | None) -> MaxChoice:
    """The surrogate `kind` of a loss for a problem."""
    if kind not in KINDS:
        raise InputError(f"surrogate must be one of {', '.join(KINDS)}, got {kind!r}.")
    if loss is None:
        raise InputError(f"The surrogate {kind} needs a loss: without one it is 0 at w = 0. Give a loss.")
    smooth = choose(problem, "crf", loss)
    compiled = compile_loss(problem, loss)
    if kind == "m3n":
        return MaxChoice(kind, compiled, smooth)
    valued = join_automata(problem, lambda y: loss.automaton(y, problem.n_labels).with_values())
    return MaxChoice(kind, compiled, smooth, valued)


class Mixture(NamedTuple):
    """Label sequences with shares: sequence c of `sentence[c]` has labels[label_ptr[c]:label_ptr[c + 1]]."""

    sentence: Ints
    label_ptr: Ints
    labels: UInts32
    share: Floats


class MaxSurrogate(CrfSurrogate):
    """Best sequences at some weights, and the scan of all candidates at a mixture of sequences."""

    has_hessian = False

    def __init__(self, problem: Problem, keep: Bools, choice: MaxChoice, threads: int = 1) -> None:
        super().__init__(problem, keep, np.zeros(problem.text.n_sentences), threads)
        self.choice = choice
        self.column_mass = self.mass(problem, choice)
        self._ends = _ends(choice.loss)
        # For slack rescaling: a guess for each sentence, see `kernels.margin`; at w = 0 it is right.
        self._kappas = 1.0 / np.maximum(choice.loss.largest, 1e-300)
        self._valued = None
        if choice.valued is not None:
            told = replace(choice.valued, final=np.maximum(choice.valued.final, 0.0))
            self._valued = _ends(told), _additive(problem, choice, choice.valued)

    @staticmethod
    def mass(problem: Problem, choice: MaxChoice) -> Floats:
        """Largest |subgradient| of a feature of each column: its mass, times the largest slope."""
        return problem.column_mass * _largest_slope(choice)

    def find_best(self, active: ActiveSet, w: Floats) -> Best:
        """The sequences worth the most at w; their values are f_i."""
        from vcrf.kernels import margin, potentials, product_max

        self.n_passes += 1
        problem, n_labels = self.problem, self.problem.n_labels
        scores = np.empty((len(active.row_ptr) - 1, n_labels))
        potentials.key_scores(
            active.row_ptr, active.row_labels, active.row_features, active.row_values, w, 0, len(scores), scores
        )
        tables = build_tables(active, w, n_labels, max(active.order, 2))
        corrections = slot_corrections(active, w, self.workers)
        n = problem.text.n_sentences
        best = margin.Best(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(problem.n_tokens, np.uint32))
        parts = active.rows, scores, tables, corrections

        def block(first: int, last: int) -> None:
            if self._valued is None:
                product_max.max_pass(problem.sent_ptr, problem.y, first, last, n_labels, self._ends, *parts, best)
                return
            valued, additive = self._valued
            product_max.slack_pass(
                problem.sent_ptr, problem.y, first, last, n_labels, valued, additive, *parts, self._kappas, best
            )

        self.workers.run(block, self._sentence_bounds)
        return best

    def _scanned(self, limits: dict[int, Floats]) -> dict[int, Ints]:
        """The columns that a scan looks at for each length of patterns."""
        return {k: np.flatnonzero(self.keep & (self.column_mass > limit)) for k, limit in limits.items()}

    def check_memory(self, limits: dict[int, Floats]) -> None:
        """Refuse, before any work, a problem whose scan would not fit."""
        longest = max((k for k, found in self._scanned(limits).items() if len(found)), default=1)
        if longest > 1:
            check_arcs(self.problem, self.problem.n_labels**longest)

    def scan_mixture(self, mixture: Mixture, limits: dict[int, Floats]) -> Scan:
        """All candidates whose |g| exceeds their limit, g = sum of shares * (Psi(sequence) - Psi(truth))."""
        from vcrf.kernels import cuts

        problem, n_labels = self.problem, self.problem.n_labels
        columns = self._scanned(limits)
        order = max([2, *(k for k, found in columns.items() if len(found))])
        has_patterns = any(k > 1 and len(found) for k, found in columns.items())
        n_tokens = problem.n_tokens
        marginals = np.zeros((n_tokens, n_labels))
        arcs = np.zeros((n_tokens if has_patterns else 0, n_labels**order))
        cuts.mixture(
            problem.sent_ptr, mixture.sentence, mixture.label_ptr, mixture.labels, mixture.share, n_labels, order,
            marginals, arcs,
        )  # fmt: skip
        self.weights = np.asarray(np.bincount(mixture.sentence, mixture.share, problem.text.n_sentences), np.float64)
        token_weights = self.token_weights
        marginals[np.arange(n_tokens), problem.y] -= token_weights
        self._residuals = marginals
        if has_patterns:
            arcs /= np.where(token_weights > 0.0, token_weights, 1.0)[:, None]
        empty = self.compile(np.zeros(0, np.int64))
        self._tables = build_tables(empty, np.zeros(0), n_labels, order)
        self._corrections = slot_corrections(empty, np.zeros(0), self.workers)
        none = np.zeros((0, n_labels ** (order - 1)))
        self._messages = none, none, np.arange(n_tokens), arcs
        found = [self._scan_length(k, which.astype(np.uint32), limits[k][which]) for k, which in columns.items()]
        features = np.concatenate([np.zeros(0, np.int64), *(f for f, _ in found)])
        gradients = np.concatenate([np.zeros(0), *(g for _, g in found)])
        by_number = np.argsort(features, kind="stable")
        return Scan(features[by_number], gradients[by_number])


def _ends(loss: CompiledLoss) -> Ends:
    from vcrf.kernels.margin import Ends

    return Ends(
        loss.first, loss.width, loss.successor.reshape(-1), loss.cost.reshape(-1), loss.final_ptr, loss.final, loss.init
    )


def _additive(problem: Problem, choice: MaxChoice, valued: CompiledLoss) -> Additive:
    """The automata that add up the loss, and where the rows of those that tell it lie in them."""
    from vcrf.kernels.margin import Additive, find_origins

    loss, ends = choice.loss, _ends(choice.loss)
    origin, spent = np.zeros(len(valued.cost), np.int64), np.zeros(len(valued.cost))
    find_origins(problem.sent_ptr, valued.first, valued.successor.reshape(-1), ends, problem.n_labels, origin, spent)
    only_grows = loss.cost.min(initial=0.0) >= 0.0 and loss.final.min(initial=0.0) >= 0.0
    return Additive(ends, loss.largest, origin, spent, spent if only_grows else np.zeros_like(spent))


def _largest_slope(choice: MaxChoice) -> float:
    return 1.0 if choice.kind == "m3n" else float(choice.loss.largest.max(initial=0.0))
