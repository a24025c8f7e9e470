"""The crf surrogate on a pattern automaton: the cost of a pass follows the tag patterns in the working set.

Working sets without long patterns, and those for which all n_labels**order arcs are cheaper, are left to the dense
lattice. The scan of all candidates is `surrogates.pattern_scan`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from vcrf.errors import BudgetError, InputError
from vcrf.lattice import PatternAutomaton, PatternLattice, build_automaton
from vcrf.lattice.automaton import PASS_PRICES, find_arcs, make_graph
from vcrf.lattice.patterns import sentence_lattice
from vcrf.problem import MAX_ARCS, Problem
from vcrf.surrogates.active import ActiveSet
from vcrf.surrogates.crf import CrfSurrogate, Scan, _Found
from vcrf.surrogates.hard import _with_loss, check_hard
from vcrf.surrogates.pattern_hessian import pattern_hessian
from vcrf.surrogates.pattern_scan import LevelScan
from vcrf.surrogates.product import is_too_large
from vcrf.surrogates.tables import slot_corrections
from vcrf.types import Bools, Floats, Ints, UInts32

if TYPE_CHECKING:
    from vcrf.kernels.blocks import Corrections, PassOutput, Sentences
    from vcrf.kernels.pattern_scan import Rows
    from vcrf.kernels.patterns import ArcScores, Graph, LocalArcs
    from vcrf.kernels.product import LossArrays

LATTICES = ("auto", "dense", "patterns")


def make_surrogate(
    problem: Problem, keep: Bools, costs: Floats, threads: int = 1, lattice: str = "auto"
) -> CrfSurrogate:
    """The crf surrogate on the lattice asked for: see `is_dense`."""
    if is_dense(problem, lattice):
        return CrfSurrogate(problem, keep, costs, threads)
    return PatternSurrogate(problem, keep, costs, threads, is_forced=lattice == "patterns")


def is_dense(problem: Problem, lattice: str, keeps_arcs: bool = False) -> bool:
    """Whether all passes are on the dense lattice; it is "dense", "patterns", or "auto" for the one that costs less.

    With "auto" problems of order 2 are dense, unless scans keep posteriors of all arcs and these are too many; above,
    each working set has the cheaper of the two.
    """
    check_lattice(lattice)
    is_small = problem.order == 2 and not (keeps_arcs and is_too_large(problem, problem.n_labels**2))
    if lattice == "dense" or problem.order < 2 or (lattice == "auto" and is_small):
        check_dense(problem.n_labels, problem.order)
        return True
    return False


def check_lattice(lattice: str) -> None:
    """Refuse what is no lattice."""
    if lattice not in LATTICES:
        raise InputError(f"inference must be one of {', '.join(map(repr, LATTICES))}, got {lattice!r}.")


def check_dense(n_labels: int, order: int) -> None:
    """Refuse a dense lattice that is too large."""
    if n_labels**order > MAX_ARCS:
        raise BudgetError(
            f"A dense lattice for tag patterns of length {order} over {n_labels} labels has {n_labels**order:,} arcs; "
            f"the budget is {MAX_ARCS:,}. Use inference='patterns' or 'auto', a smaller `tags`, or fewer labels."
        )


@dataclass(frozen=True)
class ArcPlan:
    """The automaton of a working set, and which arcs its features are on.

    `table_arcs` are those of the plain patterns, `cor_arcs` those of the corrections' slots; `is_cheap` says whether
    passes use the automaton.
    """

    automaton: PatternAutomaton
    graph: Graph
    table_arcs: Ints
    cor_arcs: UInts32
    is_cheap: bool


@dataclass(frozen=True)
class PatternActiveSet(ActiveSet):
    """An active set with its automaton."""

    plan: ArcPlan | None = None


class PatternSurrogate(CrfSurrogate):
    """Value, gradient and scan for one problem; parameters as for the class that it is mixed with, or `CrfSurrogate`.

    `is_forced` : every pass uses the automaton, also where the dense lattice would be cheaper.
    """

    hessian_order = None

    def __init__(self, *args: Any, is_forced: bool = False) -> None:
        super().__init__(*args)
        self.is_forced = is_forced
        self._is_by_arcs = False
        # Scans that may still leave out longer patterns than the working set's by two labels or more.
        self._n_short_scans = 0
        # Feature numbers (sorted) and variances of plain patterns, of the last scan.
        self._known_variances = np.zeros(0, np.int64), np.zeros(0)
        # Of the others: a complete scan leaves out patterns whose expected counts are below every limit.
        self._other_variance = 1.0

    def compile(self, features: Ints) -> PatternActiveSet:
        """Arrays for a sorted set of features, with the automaton of their patterns."""
        active = super().compile(features)
        parts = {part.name: getattr(active, part.name) for part in fields(ActiveSet)}
        return PatternActiveSet(**parts, plan=self._plan(active))

    def _plan(self, active: ActiveSet) -> ArcPlan:
        n_labels = self.problem.n_labels
        sizes = np.concatenate([active.table_sizes, active.slot_size])
        codes = np.concatenate([active.table_codes, active.slot_code])
        automaton = build_automaton(n_labels, sizes, codes)
        arcs = find_arcs(automaton, sizes, codes)
        n_table = len(active.table_sizes)
        is_cheap = self.is_forced or (active.order > 2 and automaton.is_cheaper(PASS_PRICES, active.order))
        return ArcPlan(automaton, make_graph(automaton), arcs[:n_table], arcs[n_table:].astype(np.uint32), is_cheap)

    # ----- passes

    def _pass(self, active: ActiveSet, w: Floats, order: int, keep_messages: bool = False) -> None:
        plan = _plan_of(active)
        self._is_by_arcs = plan.is_cheap
        if self._is_by_arcs:
            self._arc_pass(active, plan, w)
        else:
            super()._pass(active, w, order, keep_messages)

    def _arc_pass(self, active: ActiveSet, plan: ArcPlan, w: Floats) -> None:
        """What `_pass` does, on the automaton."""
        self.n_passes += 1
        self._is_by_arcs = True
        self._scores = self._key_scores(active, w)
        self._corrections = slot_corrections(active, w, self.workers)
        self._local = local_arcs(self._corrections, plan.cor_arcs)
        self._arcs = arc_scores(plan.automaton, plan.table_arcs, w[active.table_features])
        found = self._chain(active, self._scores, False, clamp=False)
        self._values, self._residuals, self._cor_residuals = found.values, found.residuals, found.cor_residuals
        self._spread = found.residuals, found.cor_residuals
        counts = found.counts
        if self.problem.is_partial:
            truth = self._chain(active, self._scores, False, clamp=True)
            self._values = found.values - truth.values
            self._residuals = found.residuals - truth.residuals
            self._cor_residuals = found.cor_residuals - truth.cor_residuals
            counts = counts - truth.counts
        from vcrf.kernels import patterns

        patterns.sum_counts(plan.automaton.up, counts)
        self._arc_counts = counts

    def _chain(self, active: ActiveSet, scores: Floats, keep_messages: bool, clamp: bool) -> _Found:
        if self._is_by_arcs:
            return self._arc_chain(active, _plan_of(active), clamp)
        return super()._chain(active, scores, keep_messages, clamp)

    def _arc_chain(self, active: ActiveSet, plan: ArcPlan, clamp: bool) -> _Found:
        """One forward-backward, with the counts of arcs; clamped as in `CrfSurrogate._chain`."""
        from vcrf.kernels import pattern_pass

        problem, sentences = self.problem, self._sentences()
        output = self._output(len(self._corrections.score), clamp)
        number = {a: i for i, a in enumerate(self._sentence_bounds)}
        counts = np.zeros((len(number), plan.automaton.n_arcs))

        def block(first: int, last: int) -> None:
            if clamp and not np.any(problem.partial_sentences[first:last]):
                return
            pattern_pass.pattern_pass(
                sentences, first, last, problem.n_labels, plan.automaton.order, active.rows, self._scores, plan.graph,
                self._arcs, self._corrections, self._local, clamp, counts[number[first]], output,
            )  # fmt: skip

        self.workers.run(block, self._sentence_bounds)
        for i in np.flatnonzero(output.hard).tolist():
            lattice = self._hard_lattice(active, plan, i, clamp)
            redo_hard_sentence(
                sentences, i, lattice, lattice.log_partition(), lattice.arc_marginals(), self._local, counts[-1], output
            )
        return self._found(output, counts)

    def _found(self, output: PassOutput, counts: Floats) -> _Found:
        """What a pass wrote; it keeps no messages."""
        none = np.zeros((0, 0))
        residuals = output.residuals.reshape(-1, self.problem.n_labels)
        messages = none, none, np.zeros(0, np.int64), none
        return _Found(output.values, residuals, output.cor_residuals, counts.sum(axis=0), messages)

    def _sentences(self) -> Sentences:
        from vcrf.kernels.blocks import Sentences

        problem = self.problem
        return Sentences(problem.sent_ptr, problem.y, self.costs, self.weights, problem.allowed, self._loss_bounds)

    @property
    def _loss_bounds(self) -> Floats:
        """How far the costs of a loss automaton can differ, (n_sentences,); empty without one."""
        return np.zeros(0)

    def _loss_rows(self) -> tuple[LossArrays, bool]:
        """The loss automata, if there are any, and whether costs are picked: see `kernels.product`."""
        from vcrf.kernels.product import LossArrays

        whole, real = np.zeros(0, np.int64), np.zeros(0)
        return LossArrays(whole, whole, np.zeros(0, np.uint32), real, real, whole, real, real, real, real), False

    def _hard_rows(self, active: ActiveSet, plan: ArcPlan, i: int, clamp: bool) -> tuple[Floats, Rows]:
        """P(label | context, row of the loss automaton) of a hard sentence, flat, and the rows."""
        from vcrf.kernels.pattern_scan import _plain_rows

        lattice = self._hard_lattice(active, plan, i, clamp)
        return lattice._conditionals.reshape(-1), _plain_rows(lattice.n_positions)

    def _n_rows(self, i: int) -> int:
        """Rows that the log domain keeps of a sentence: one a token, or one a state of the loss automaton."""
        return int(self.problem.sent_ptr[i + 1] - self.problem.sent_ptr[i])

    def _hard_lattice(self, active: ActiveSet, plan: ArcPlan, i: int, clamp: bool) -> PatternLattice:
        """Sentence i, with the loss, in the log domain."""
        from vcrf.kernels import potentials

        n_labels = self.problem.n_labels
        t0, t1 = self.problem.sent_ptr[i], self.problem.sent_ptr[i + 1]
        check_hard(int(t1 - t0), self._n_rows(i), plan.automaton.n_states * n_labels)
        node = np.empty((t1 - t0) * n_labels)
        potentials.node_scores(active.rows, self._scores, t0, t1, node)
        node = _with_loss(self._sentences(), i, node.reshape(-1, n_labels), clamp)
        return sentence_lattice(plan.automaton, node, self._arcs.log, self._local, int(t0))

    # ----- gradients

    def _table_gradient(self, active: ActiveSet) -> Floats:
        return self._arc_counts[_plan_of(active).table_arcs] if self._is_by_arcs else super()._table_gradient(active)

    def _pattern_variances(self, active: ActiveSet) -> Floats:
        features = active.features[active.table_features]
        known, variances = self._known_variances
        if not len(known):
            return np.ones(len(features))
        at = np.minimum(np.searchsorted(known, features), len(known) - 1)
        return np.where(known[at] == features, variances[at], self._other_variance)

    def hessian(self, active: ActiveSet, w: Floats, chosen: Ints, stride: int = 1) -> Floats:
        """Hessian of F at w on the chosen features, as `CrfSurrogate.hessian`; any order."""
        plan = _plan_of(active)
        self._arc_pass(active, plan, w)
        return pattern_hessian(self, active, plan, chosen, stride)

    # ----- scan

    def scan(self, active: ActiveSet, w: Floats, limits: dict[int, Floats]) -> tuple[float, Scan]:
        """Value at w, and all candidates whose |gradient| exceeds their limit, as `CrfSurrogate.scan`.

        Longer patterns than 2 are only looked at if their parts have counts above the limits. A gradient found for them
        is the true one up to 1e-7 of the limit, which is added to its size (not in the working set). If that is
        allowed, the next few scans end where the working set could grow by one label: they are not complete.
        """
        self._arc_pass(active, _plan_of(active), w)
        value = self._value()
        levels = LevelScan(self, active, limits)
        scan = levels.run(may_stop=self._n_short_scans > 0)
        self._n_short_scans -= not scan.is_complete
        self._known_variances = levels.variances
        self._other_variance = min(levels.least_limit, 1.0) if scan.is_complete else 1.0
        return value, scan

    def allow_short_scans(self, is_allowed: bool) -> None:
        """Whether the next few scans may be incomplete."""
        self._n_short_scans = self.problem.order if is_allowed else 0


def _plan_of(active: ActiveSet) -> ArcPlan:
    if not isinstance(active, PatternActiveSet) or active.plan is None:
        raise TypeError("PatternSurrogate evaluates what its own `compile` gives.")
    return active.plan


def arc_scores(automaton: PatternAutomaton, arcs: Ints, w: Floats) -> ArcScores:
    """Scores of all arcs from those of plain patterns, given by their arcs."""
    from vcrf.kernels import patterns
    from vcrf.kernels.blocks import Tables

    log = np.zeros(automaton.n_arcs)
    np.add.at(log, arcs, w)
    patterns.sum_scores(automaton.up, log)
    shift, none = float(log.max()), np.zeros(0)
    span = shift - float(log.min())
    tables = Tables(automaton.order, np.zeros(0, np.int64), none, none, none, none, none, span)
    factor = np.exp(np.maximum(log - shift, -700.0))
    return patterns.ArcScores(log, factor, shift, tables)


def local_arcs(corrections: Corrections, arcs: UInts32) -> LocalArcs:
    """Corrections by their arcs."""
    from vcrf.kernels.patterns import LocalArcs

    return LocalArcs(corrections.ptr, arcs, corrections.score, corrections.factor)


def redo_hard_sentence(
    sentences: Sentences,
    i: int,
    lattice: PatternLattice,
    log_z: float,
    marginals: Floats,
    local: LocalArcs,
    counts: Floats,
    out: PassOutput,
) -> None:
    """Value, residuals and counts of one sentence, as `pattern_pass` gives them, from its sum and posteriors."""
    start, stop = int(sentences.ptr[i]), int(sentences.ptr[i + 1])
    automaton, weight, n_labels = lattice.automaton, float(sentences.weights[i]), lattice.n_labels
    y = sentences.y[start:stop].astype(np.int64)
    out.values[i] = log_z - lattice.score(y)
    posterior = weight * marginals
    residuals = posterior.sum(axis=1)
    residuals[np.arange(len(y)), y] -= weight
    out.residuals[start * n_labels : stop * n_labels] = residuals.reshape(-1)
    states = lattice._path(y)[1]
    for t in range(len(y)):
        taken = np.zeros(automaton.n_arcs)
        if t > 0:
            np.add.at(taken, automaton.table, posterior[t])
            taken[automaton.table[states[t], y[t]]] -= weight
        counts += taken
        for j in range(local.ptr[start + t], local.ptr[start + t + 1]):
            ranks = slice(automaton.rank[local.arc[j]], automaton.rank_end[local.arc[j]])
            out.cor_residuals[j] = taken[automaton.by_rank[ranks]].sum()
