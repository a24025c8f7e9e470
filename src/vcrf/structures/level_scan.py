"""The scan of all candidates on a pattern automaton by length; see `kernels.pattern_levels`, `kernels.pattern_scan`.

The gradient of (column a, pattern z) is E(a, z) - emp(a, z), expected and true counts. Both are not negative and do not
grow when z gets longer on either side, nor from all tokens to those of a column. So patterns are kept for the next
length only while max(E, emp) exceeds the least strength that a longer one could have: exact, and most are skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vcrf import kernels
from vcrf.errors import BudgetError
from vcrf.families.keys import take_rows
from vcrf.structures.arcs import ArcPotentials, arcs_of
from vcrf.structures.norm_bounds import NormBounds
from vcrf.structures.outputs import Mixture
from vcrf.structures.plan import ArcPlan, ChainPlan
from vcrf.structures.scan import scan_labels
from vcrf.structures.structure import Scan, Wanted
from vcrf.structures.sums import ChainSums, KnownVariances
from vcrf.types import Bools, Floats, Ints
from vcrf.workers import cut

if TYPE_CHECKING:
    from vcrf.kernels.pattern_counts import ColumnPairs, LevelSums, Trie
    from vcrf.structures.chain import Chain

# Share of a limit that the runs left out may add up to.
_SLACK = 1e-7
_BLOCKS = 8
# Pairs of a column and a pattern that one pass adds up, times the labels before them.
_MAX_SUMS = 1 << 22
# Patterns of one length that may have counts above the strengths.
MAX_KEPT = 20_000_000


class _Pass(NamedTuple):
    """What a scan by length reads of a pass.

    residuals : (n_tokens, n_labels), posterior less truth; spread : the same with labels of one sequence as the truth
    exact : gradient of the plan's features, None where there are none
    """

    plan: ChainPlan
    weights: Floats
    residuals: Floats
    spread: Floats
    exact: Floats | None = None

    @property
    def arcs(self) -> ArcPlan:
        return arcs_of(self.plan)


class LevelScan:
    """One scan; `sums` are of a pass on the automaton at the weights, and `exact` the gradient of its features."""

    def __init__(self, chain: Chain, sums: ChainSums, exact: Floats, wanted: Wanted) -> None:
        if not isinstance(sums.potentials, ArcPotentials):
            raise TypeError("A scan by length needs the sums of a pass on the automaton.")
        self.sums, self.potentials = sums, sums.potentials
        self._begin(chain, _Pass(sums.plan, sums.weights, sums.residuals, sums.spread[0], exact), wanted)

    def _begin(self, chain: Chain, found: _Pass, wanted: Wanted) -> None:
        self.chain, self.found, self.limits, self.mass = chain, found, wanted.limits, wanted.mass
        self.problem, self.active, self.plan = chain.problem, found.plan, found.arcs
        self.n_labels, self.order = self.problem.n_labels, self.problem.order
        self.token_weights = found.weights[self.problem.example_of]
        values = self.problem.columns.values
        self.most = max(1.0, float(np.abs(values).max(initial=0.0)))
        self.has_signs = bool(np.any(values < 0.0))
        self.is_open = self.problem.partial_sentences
        self.floors = self._floors()
        self.least = self._least()
        self.bounds = NormBounds(len(self.mass), self.order, self.problem.bias_column, self.most, self.has_signs)
        self.features: list[Ints] = []
        self.gradients: list[Floats] = []
        self.variances = np.zeros(0, np.int64), np.zeros(0)

    def _floors(self) -> dict[int, Floats]:
        """floors[k][column] = least limit of patterns of length k or more that the column can reach, else inf."""
        floor, floors = np.full(len(self.mass), np.inf), {}
        for k in range(self.order, 0, -1):
            floor = np.minimum(floor, np.where(self._can(k), self.limits[k], np.inf))
            floors[k] = floor
        return floors

    def _can(self, k: int) -> Bools:
        """Columns that can exceed a limit of length k at some token."""
        return np.asarray(self.chain.keep & (self.mass > self.limits[k]))

    def _least(self) -> float:
        """Posterior below which a run is not continued: all that is left out stays below _SLACK times each limit."""
        shares = [np.inf]
        for k in range(3, self.order + 1):
            can = np.isfinite(self.floors[k]) & (self.mass > 0.0)
            shares.append(float((self.floors[k][can] / self.mass[can]).min(initial=np.inf)))
        return _SLACK * min(min(shares), 1.0) / max(self.order - 2, 1)

    @property
    def least_limit(self) -> float:
        """Least limit of any candidate of two labels or more."""
        return float(self.floors[min(2, self.order)].min(initial=np.inf))

    def run(self, may_stop: bool = False) -> Scan:
        """Scan length by length; if it may stop, only as far as violators can join the working set next."""
        self._scan_labels()
        trie_codes = [np.zeros(1, np.int64), np.arange(self.n_labels)]
        pairs = self._first_pairs()
        is_complete = True
        for k in range(2, self.order + 1):
            if not np.any(np.isfinite(self.floors[k])):
                break
            if may_stop and k > self.active.order + 1 and self._has_violators():
                is_complete = False
                break
            trie, codes = self._trie(trie_codes), trie_codes[-1]
            self.bounds.begin(k)
            sums, pairs = self._level(k, trie, codes, pairs)
            if k < self.order:
                trie_codes.append(self._kept(k, codes, sums))
                pairs = self._next_pairs(pairs, codes, trie_codes[-1], k)
        features = np.concatenate([np.zeros(0, np.int64), *self.features])
        gradients = np.concatenate([np.zeros(0), *self.gradients])
        by_number = np.argsort(features, kind="stable")
        norms = {k: self.bounds.norms(k, self._can(k)) for k in range(1, self.order + 1)} if is_complete else None
        return self._with_known(
            Scan(features[by_number], gradients[by_number], is_complete, norms, self._known_variances(is_complete))
        )

    def _known_variances(self, is_complete: bool) -> KnownVariances:
        """Variances of the patterns looked at; a complete scan leaves out those whose counts are below every limit."""
        known, variances = self.variances
        order = np.argsort(known)
        return KnownVariances(known[order], variances[order], min(self.least_limit, 1.0) if is_complete else 1.0)

    def _with_known(self, scan: Scan) -> Scan:
        """The scan with the exact gradients of the features in the working set, which the pass has found."""
        if self.found.exact is None:
            return scan
        is_active = np.isin(scan.features, self.active.features, assume_unique=True)
        gradients = scan.gradients.copy()
        gradients[is_active] = self.found.exact[np.searchsorted(self.active.features, scan.features[is_active])]
        column, length, _ = self.problem.split_features(scan.features)
        limits = np.stack([self.limits[k] for k in range(1, self.order + 1)])[length.astype(np.int64) - 1, column]
        kept = ~is_active | (np.abs(gradients) > limits)
        return scan._replace(features=scan.features[kept], gradients=gradients[kept])

    def _has_violators(self) -> bool:
        """Whether candidates outside the working set have been found."""
        return not np.all(np.isin(np.concatenate(self.features), self.active.features))

    # ----- single labels

    def _scan_labels(self) -> None:
        which = np.flatnonzero(self._can(1))
        features, gradients = scan_labels(
            self.chain, self.found.residuals, which.astype(np.uint32), self.limits[1][which]
        )
        self.features.append(features)
        self.gradients.append(gradients)
        self.bounds.suspect_labels(np.unique(features // self.problem.space.stride))

    def _first_pairs(self) -> _Pairs:
        """Columns, the bias apart, with the labels whose counts exceed what longer patterns would need."""
        problem, floor = self.problem, self.floors[min(2, self.order)]
        can = np.isfinite(floor)
        if problem.bias_column >= 0:
            can[problem.bias_column] = False
        columns = np.flatnonzero(can).astype(np.uint32)
        # E and emp are at most the floor each, and sum to the mass.
        left = np.where(can, floor, 0.0)
        self.bounds.leave_labels(2.0 * left * np.minimum(left * self.n_labels, self.mass))
        if not len(columns):
            return _Pairs.joined([])
        marginals = self.found.spread.copy()
        marginals[np.arange(problem.n_tokens), problem.y] += self.token_weights
        truth = marginals - self.found.residuals
        room = 4 * len(columns) + 16
        table = problem.columns
        while True:
            column, label = np.empty(room, np.int64), np.empty(room, np.int64)
            n = kernels.pattern_counts.column_pairs(
                table.ptr, table.positions, table.values, columns, marginals, truth, floor[columns], self.has_signs,
                column, label,
            )  # fmt: skip
            if n <= room:
                return _Pairs(columns[column[:n]].astype(np.int64), label[:n])
            room = n

    # ----- one length

    def _trie(self, codes: list[Ints]) -> kernels.pattern_counts.Trie:
        """The kept patterns of lengths 0, 1, ... by their sorted codes."""
        n_labels, automaton = self.n_labels, self.plan.automaton
        node_ptr = np.cumsum([0, *map(len, codes), 0], dtype=np.int64)
        parent, oldest = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
        before, label, node, state = [], [], [], [np.zeros(1, np.int64)]
        is_context, node_of = np.zeros(node_ptr[-1], bool), np.full(automaton.n_states, -1, np.int64)
        for j in range(1, len(codes)):
            width = n_labels ** (j - 1)
            parent.append(node_ptr[j - 1] + np.searchsorted(codes[j - 1], codes[j] % width))
            oldest.append(codes[j] // width)
            # A kept pattern has its part without the newest label kept too.
            before.append(node_ptr[j - 1] + np.searchsorted(codes[j - 1], codes[j] // n_labels))
            label.append(codes[j] % n_labels)
            node.append(node_ptr[j] + np.arange(len(codes[j])))
            states = np.flatnonzero(automaton.size == j)
            at = np.minimum(np.searchsorted(codes[j], automaton.code[states]), max(len(codes[j]) - 1, 0))
            found = codes[j][at] == automaton.code[states] if len(codes[j]) else np.zeros(len(states), bool)
            node_of[states[found]] = node_ptr[j] + at[found]
            is_context[node_ptr[j] + at[found]] = True
            arcs = automaton.table[state[-1][before[-1] - node_ptr[j - 1]], label[-1]]
            state.append(automaton.arc_state[arcs] if j > 1 else label[-1])
        befores, labels, zero = np.concatenate(before), np.concatenate(label).astype(np.uint32), np.zeros(1, np.int64)
        order = np.argsort(befores, kind="stable")
        return kernels.pattern_counts.Trie(
            node_ptr, np.concatenate(parent), np.concatenate(oldest), np.concatenate([zero, befores]),
            np.concatenate([zero.astype(np.uint32), labels]), np.concatenate(state), is_context,
            np.searchsorted(befores[order], np.arange(node_ptr[-1] + 1)), labels[order], np.concatenate(node)[order],
            node_of,
        )  # fmt: skip

    def _level(self, k: int, trie: Trie, codes: Ints, pairs: _Pairs) -> tuple[LevelSums, _Pairs]:
        """ChainSums of length k; emits what exceeds its limit. The pairs come back with those of the next length."""
        grown = []
        for part in pairs.split(max(_MAX_SUMS // self.n_labels, 1)):
            sums = self._sum(k, trie, part)
            if len(part.column):
                self._emit_pairs(k, codes, part, sums)
                grown.append(self._grow(k, part, sums))
        self._emit_plain(k, codes, sums)
        return sums, _Pairs.joined(grown)

    def _sum(self, k: int, trie: Trie, pairs: _Pairs) -> kernels.pattern_counts.LevelSums:
        s, problem, plan, loss = self.potentials, self.problem, self.plan, self.sums.loss
        bounds = cut(problem.sent_ptr, min(_BLOCKS, self.chain.n_blocks))
        contexts = np.flatnonzero(trie.node_of >= 0)
        by_size = contexts[np.argsort(plan.automaton.size[contexts], kind="stable")]
        size_ptr = np.searchsorted(plan.automaton.size[by_size], np.arange(self.order + 2))
        column_pairs, sentences = self._column_pairs(pairs), s.sentences(loss, self.sums.weights)
        level = self._level_of(k, trie)
        n_slots = int(trie.node_ptr[k] - trie.node_ptr[k - 1]) * self.n_labels
        n_pairs = len(pairs.column) * self.n_labels
        all_sums = {a: self._empty_sums(n_slots, n_pairs) for a in bounds[:-1]}
        n_sentences = problem.text.n_sentences

        def block(clamp: bool, output: kernels.blocks.PassOutput, first: int, last: int) -> None:
            sums = all_sums[first]
            if not clamp:
                kernels.pattern_counts.count_truth(
                    sentences, first, last, self.n_labels, k, self.is_open, trie, column_pairs, sums
                )
            if loss.automata is not None:
                kernels.pattern_scan.level_block(
                    sentences, loss.arrays, loss.picks, first, last, self.n_labels, k, self.active.rows, s.scores,
                    plan.graph, plan.automaton.fail, s.arcs, s.corrections, s.local, trie, by_size, size_ptr,
                    self.least, column_pairs, output, sums,
                )  # fmt: skip
            else:
                kernels.pattern_levels.level_lanes(
                    sentences, first, last, self.n_labels, level, self.active.rows, s.scores, plan.graph, s.arcs,
                    s.corrections, s.local, clamp, self.is_open, trie, column_pairs, output, sums,
                )  # fmt: skip

        for clamp in (False, True) if problem.is_partial else (False,):
            output = kernels.blocks.PassOutput(
                np.zeros(n_sentences), np.zeros(0), np.zeros(0), np.zeros(n_sentences, np.uint32)
            )
            self.chain.workers.run(lambda a, b, clamp=clamp, output=output: block(clamp, output, a, b), bounds)  # type: ignore[misc]
            for i in np.flatnonzero(output.hard):
                if not clamp or self.is_open[i]:
                    self._add_hard(k, int(i), clamp, trie, by_size, size_ptr, column_pairs, all_sums[bounds[0]])
        return kernels.pattern_counts.LevelSums(
            *(np.sum(parts, axis=0) for parts in zip(*all_sums.values(), strict=True))
        )

    def _level_of(self, k: int, trie: Trie) -> kernels.pattern_levels.Level:
        """The patterns of length k to sum, in the order of `pattern_levels`."""
        parent = trie.parent[trie.node_ptr[k - 1] : trie.node_ptr[k]]
        place = np.append(0, np.cumsum(trie.right_ptr[parent + 1] - trie.right_ptr[parent]))
        left = np.argsort(parent, kind="stable")
        left_ptr = np.searchsorted(parent[left], np.arange(trie.node_ptr[k - 2], trie.node_ptr[k - 1] + 1))
        return kernels.pattern_levels.Level(k, place, left_ptr, left)

    def _empty_sums(self, n_slots: int, n_pairs: int) -> kernels.pattern_counts.LevelSums:
        slots, by_pair = [np.zeros(n_slots) for _ in range(3)], [np.zeros(n_pairs) for _ in range(3)]
        return kernels.pattern_counts.LevelSums(*slots, *by_pair)

    def _add_hard(
        self,
        k: int,
        i: int,
        clamp: bool,
        trie: Trie,
        by_size: Ints,
        size_ptr: Ints,
        pairs: ColumnPairs,
        sums: LevelSums,
    ) -> None:
        s, plan, weights = self.potentials, self.plan, self.sums.weights
        start, stop = int(self.problem.sent_ptr[i]), int(self.problem.sent_ptr[i + 1])
        if stop - start < k or weights[i] == 0.0:
            return
        given, rows = s.hard_rows(self.sums, i, clamp)
        here, touched, old, new = kernels.pattern_scan.level_scratch(
            k, self.n_labels, trie, len(pairs.pair_node) > 0, int(rows.lanes.max())
        )
        kernels.pattern_scan.level_sentence(
            k, start, self.n_labels, plan.graph, plan.automaton.fail, s.arcs.factor, s.arcs.factor.copy(), s.local,
            rows, 1.0, trie, by_size, size_ptr, np.zeros(0), given, float(weights[i]), self.least, pairs,
            sums.observed if clamp else sums.expected, sums.squares[:0] if clamp else sums.squares,
            sums.pair_observed if clamp else sums.pair_expected, sums.pair_gradient, -1.0 if clamp else 1.0, here,
            touched, old, new,
        )  # fmt: skip

    def _column_pairs(self, pairs: _Pairs) -> kernels.pattern_counts.ColumnPairs:
        """The pairs by token; `pairs` are sorted by column."""
        problem, table = self.problem, self.problem.columns
        columns, first = np.unique(pairs.column, return_index=True)
        pair_ptr = np.append(first, len(pairs.column)).astype(np.int64)
        token_ptr = np.zeros(problem.n_tokens + 1, np.int64)
        kernels.gradient.count_corrections(table.ptr, table.positions, columns.astype(np.uint32), token_ptr)
        token_ptr = np.cumsum(token_ptr)
        n = int(token_ptr[-1])
        token_column, entry = np.empty(n, np.uint32), np.empty(n, np.uint32)
        kernels.gradient.fill_corrections(
            table.ptr, table.positions, columns.astype(np.uint32), token_ptr[:-1].copy(), token_column, entry
        )
        values = np.ones(n)
        if len(table.values) and n:
            _, _, given = take_rows(table.ptr, table.positions, table.values, columns.astype(np.int64))
            values[entry] = given
        return kernels.pattern_counts.ColumnPairs(token_ptr, token_column, values, pair_ptr, pairs.node)

    # ----- what exceeds its limit

    def _missed(self, k: int, columns: Ints) -> Floats:
        """Most that the runs left out can add to a gradient of length k; none is where masses have no bound."""
        if self.least == 0.0:
            return np.zeros(len(columns))
        return max(k - 2, 0) * self.least * self.mass[columns]

    def _emit(self, k: int, columns: Ints, codes: Ints, gradients: Floats) -> None:
        """Keep candidates whose |gradient|, with what was left out, exceeds the limit."""
        sizes = np.abs(gradients) + self._missed(k, columns)
        self.bounds.add(k, columns, sizes)
        exceeding = np.flatnonzero(sizes > self.limits[k][columns])
        columns, codes = columns[exceeding], codes[exceeding]
        signed = np.where(gradients[exceeding] < 0.0, -1.0, 1.0) * sizes[exceeding]
        if self.problem.observed_for(k) and len(columns):
            seen = self.problem.observed(k)
            number = columns * self.n_labels**k + codes
            at = np.minimum(np.searchsorted(seen, number), max(len(seen) - 1, 0))
            kept = np.flatnonzero(seen[at] == number) if len(seen) else np.zeros(0, np.int64)
            columns, codes, signed = columns[kept], codes[kept], signed[kept]
        self.features.append(self.problem.join_features(columns.astype(np.uint32), k, codes.astype(np.uint32)))
        self.gradients.append(signed)

    def _slot_codes(self, k: int, codes: Ints) -> Ints:
        """Codes of the patterns of length k by place: (kept pattern of length k - 1, label before it)."""
        return np.asarray(np.arange(self.n_labels) * self.n_labels ** (k - 1) + codes[:, None]).reshape(-1)

    def _emit_plain(self, k: int, codes: Ints, sums: LevelSums) -> None:
        bias = self.problem.bias_column
        if bias < 0 or not np.isfinite(self.limits[k][bias]):
            return
        found = self._slot_codes(k, codes)
        columns = np.full(len(found), bias, np.int64)
        self._emit(k, columns, found, sums.expected - sums.observed)
        features = self.problem.join_features(columns.astype(np.uint32), k, found.astype(np.uint32))
        variances = np.maximum(sums.expected - sums.squares, 0.0)
        known = self.variances
        self.variances = np.concatenate([known[0], features]), np.concatenate([known[1], variances])

    def _emit_pairs(self, k: int, codes: Ints, pairs: _Pairs, sums: LevelSums) -> None:
        before = np.tile(np.arange(self.n_labels), len(pairs.column)) * self.n_labels ** (k - 1)
        self._emit(
            k, np.repeat(pairs.column, self.n_labels), before + np.repeat(codes[pairs.node], self.n_labels),
            sums.pair_gradient,
        )  # fmt: skip

    # ----- what is kept for the next length

    def _size(self, expected: Floats, observed: Floats) -> Floats:
        """Bound on the gradients of all longer patterns, in any column."""
        return expected + observed if self.has_signs else np.maximum(expected, observed)

    def _kept(self, k: int, codes: Ints, sums: LevelSums) -> Ints:
        """Sorted codes of the patterns of length k whose counts exceed the least limit of longer ones."""
        floor = float(self.floors[k + 1].min(initial=np.inf))
        missed = max(k - 2, 0) * self.least * float(self.token_weights.sum())
        kept = self.most * (self._size(sums.expected, sums.observed) + missed) > floor
        found = self._slot_codes(k, codes)
        # Both parts must be kept: the one without the oldest label is, by construction.
        kept[kept] = np.isin(found[kept] // self.n_labels, codes)
        self.bounds.leave(kept, sums.expected + missed, sums.observed)
        found = np.sort(found[kept])
        if len(found) > MAX_KEPT:
            raise BudgetError(
                f"{len(found):,} tag patterns of length {k} over {self.n_labels} labels have counts above the "
                f"strengths; the budget is {MAX_KEPT:,}. Use greater strengths or a smaller `tags`."
            )
        return found

    def _grow(self, k: int, pairs: _Pairs, sums: LevelSums) -> _Pairs:
        """Pairs of length k whose counts exceed the column's least limit of longer ones; nodes are still places."""
        if k == self.order:
            return _Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64))
        column = np.repeat(pairs.column, self.n_labels)
        missed = self._missed(k, column)
        is_kept = self._size(sums.pair_expected, sums.pair_observed) + missed > self.floors[k + 1][column]
        left, kept = np.flatnonzero(~is_kept), np.flatnonzero(is_kept)
        self.bounds.leave_pairs(column[left], sums.pair_expected[left] + missed[left], sums.pair_observed[left])
        slot = (pairs.node[:, None] * self.n_labels + np.arange(self.n_labels)).reshape(-1)
        return _Pairs(column[kept], slot[kept])

    def _next_pairs(self, pairs: _Pairs, codes: Ints, next_codes: Ints, k: int) -> _Pairs:
        """The pairs with numbers among the kept patterns of length k in place of slots."""
        node, before = np.divmod(pairs.node, self.n_labels)
        wanted = before * self.n_labels ** (k - 1) + codes[node]
        at = np.minimum(np.searchsorted(next_codes, wanted), max(len(next_codes) - 1, 0))
        found = np.flatnonzero(next_codes[at] == wanted) if len(next_codes) else np.zeros(0, np.int64)
        return _Pairs(pairs.column[found], at[found])


class MixtureScan(LevelScan):
    """A scan at a mixture of label sequences: no pass is needed, and nothing is left out.

    `residuals` are those of labels, (n_tokens, n_labels).
    """

    def __init__(self, chain: Chain, mixture: Mixture, residuals: Floats, wanted: Wanted) -> None:
        empty = chain.compile_dense(np.zeros(0, np.int64))
        self._begin(chain, _Pass(empty, mixture.weights(len(chain.problem.weights)), residuals, residuals), wanted)
        self.mixture, self.least = mixture, 0.0

    def _sum(self, k: int, trie: Trie, pairs: _Pairs) -> LevelSums:
        outputs, n_slots = self.mixture.outputs, int(trie.node_ptr[k] - trie.node_ptr[k - 1]) * self.n_labels
        sums = self._empty_sums(n_slots, len(pairs.column) * self.n_labels)
        kernels.pattern_counts.count_mixture(
            k, self.problem.sent_ptr, self.problem.y, self.found.weights, outputs.example, outputs.ptr,
            outputs.labels, self.mixture.share, self.n_labels, trie, self._column_pairs(pairs), sums,
        )  # fmt: skip
        return sums


class _Pairs:
    """Pairs of a column and a kept pattern (by its number among those of its length), sorted by column."""

    def __init__(self, column: Ints, node: Ints) -> None:
        self.column, self.node = column, node

    def split(self, size: int) -> list[_Pairs]:
        """Parts of about so many pairs, whole columns; at least one part."""
        parts, first = [], 0
        while True:
            last = min(first + size, len(self.column))
            if last < len(self.column):
                # Not inside a column, unless it alone is too large.
                begin = int(np.searchsorted(self.column, self.column[last]))
                last = begin if begin > first else int(np.searchsorted(self.column, self.column[last], side="right"))
            parts.append(_Pairs(self.column[first:last], self.node[first:last]))
            first = last
            if first >= len(self.column):
                return parts

    @staticmethod
    def joined(parts: list[_Pairs]) -> _Pairs:
        none = np.zeros(0, np.int64)
        return _Pairs(
            np.concatenate([none, *(part.column for part in parts)]),
            np.concatenate([none, *(part.node for part in parts)]),
        )
