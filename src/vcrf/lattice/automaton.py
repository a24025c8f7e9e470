"""The pattern automaton: states are the label contexts that active tag patterns ask about, with back-off.

Let Z be a set of tag patterns of two labels or more. The contexts are the single labels and every run of labels inside
z_1 .. z_{k-1} for z in Z, so that each part of a context is a context. After any labels the state is the longest
context that ends there. A pattern z ends at the next label b exactly if z = (u, b) and u is a suffix of the state:
scores of patterns are scores of arcs.

    row(p) = row(fail(p)) with the arcs of p overwritten,    fail(p) = p without its oldest label

An arc (p, b) of its own exists where (p, b) is a pattern of Z or a context; all pairs of labels have one. The cost of
a pass follows the number of arcs and contexts, not n_labels**order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vcrf import kernels
from vcrf.types import Ints, UInts32

if TYPE_CHECKING:
    pass


class Prices(NamedTuple):
    """What a token costs by arc of a longer context and by longer context, in arcs of a dense lattice: measured."""

    own_arc: float
    context: float


PASS_PRICES = Prices(2.5, 1.5)
DECODING_PRICES = Prices(8.0, 0.0)


class PatternAutomaton(NamedTuple):
    """Contexts and arcs as arrays.

    Contexts 0 .. L-1 are the single labels. The longer ones follow, grouped by their newest label and inside a group in
    preorder of the back-off tree: a context comes before those that are it with older labels in front, and these
    come next.

    Arcs 0 .. L*L-1 are the pairs (a, b) at a * L + b; those of longer contexts follow, context by context.

    Attributes
    ----------
    n_labels, order : the order is the longest pattern, at least 2
    first : (L + 1,) longer contexts first[a] .. first[a+1]-1 end in label a
    size, code : (n_states,) number of labels and base-L number of each context
    last, fail : (n_states,) newest label, and the context without the oldest label (-1 for single labels)
    end : (n_states,) the longer contexts that end in context p are p+1 .. end[p]-1 (p itself is longer)
    arc_ptr : (n_states + 1,) arcs arc_ptr[p] .. arc_ptr[p+1]-1 of longer contexts, by label; for a single label a the
        pairs (a, b) that lead to a longer context are listed in `long_pairs`
    arc_label, arc_state : (n_arcs,) label and the state that an arc leads to
    up : (n_arcs,) the arc of the same label that this one overwrites; -1 for pairs
    rank, rank_end : (n_arcs,) arcs that overwrite arc i, directly or not, have ranks rank[i]+1 .. rank_end[i]-1
    by_rank : (n_arcs,) arc of each rank
    long_pairs : the pairs (a, b) that are contexts
    table : (n_states, L) the arc that context p takes with label b, its own or one backed off to
    """

    n_labels: int
    order: int
    first: Ints
    size: Ints
    code: Ints
    last: Ints
    fail: Ints
    end: Ints
    arc_ptr: Ints
    arc_label: Ints
    arc_state: Ints
    up: Ints
    rank: Ints
    rank_end: Ints
    by_rank: Ints
    long_pairs: Ints
    table: UInts32

    @property
    def n_states(self) -> int:
        return len(self.size)

    @property
    def n_arcs(self) -> int:
        return len(self.arc_label)

    def is_cheaper(self, prices: Prices, order: int) -> bool:
        """Whether a token costs less than on the dense lattice of n_labels**order arcs."""
        n_pairs = self.n_labels**2
        own = prices.own_arc * (self.n_arcs - n_pairs) + prices.context * (self.n_states - self.n_labels)
        return bool(n_pairs + own < self.n_labels**order)


def build_automaton(n_labels: int, sizes: UInts32, codes: UInts32) -> PatternAutomaton:
    """Automaton of patterns given by length (2 or more) and code, in any order, repeats allowed."""
    patterns = _by_size(sizes.astype(np.int64), codes.astype(np.int64))
    contexts = _contexts(n_labels, patterns)
    size, code = _preorder(n_labels, contexts)
    n_states, order = len(size), max([2, *patterns])
    # Contexts by size and code, to find one by what it is.
    offsets = _offsets(n_labels, order)
    number = offsets[size] + code
    by_number = np.argsort(number)
    sorted_numbers = number[by_number]

    def find(k: Ints, which: Ints) -> Ints:
        """States of contexts, -1 where there is none."""
        wanted = offsets[k] + which
        at = np.minimum(np.searchsorted(sorted_numbers, wanted), n_states - 1)
        return np.where(sorted_numbers[at] == wanted, by_number[at], -1)

    powers = np.array([n_labels**k for k in range(order + 1)], np.int64)
    fail = np.where(size > 1, find(np.maximum(size - 1, 1), code % powers[size - 1]), -1)
    own_size, own_code = _own_arcs(patterns, contexts)
    state = find(own_size - 1, own_code // n_labels)
    by_state = np.lexsort((own_code % n_labels, state))
    own_size, own_code, state = own_size[by_state], own_code[by_state], state[by_state]
    label = own_code % n_labels
    target = np.where(own_size < order, find(np.minimum(own_size, order - 1), own_code), -1)
    pairs = np.arange(n_labels**2)
    pair_target = find(np.full(len(pairs), 2), pairs) if order > 2 else np.full(len(pairs), -1)
    arc_label = np.concatenate([pairs % n_labels, label])
    arc_state = np.concatenate([np.where(pair_target >= 0, pair_target, pairs % n_labels), target])
    origin = np.concatenate([pairs // n_labels, state])
    arc_ptr = len(pairs) + np.searchsorted(state, np.arange(n_states + 1))
    up = np.full(len(arc_label), -1, np.int64)
    table = np.zeros((n_states, n_labels), np.uint32)

    kernels.automaton.fill_table(n_labels, fail, arc_ptr, arc_label, arc_state, up, table)
    rank, rank_end, by_rank = _ranks(n_labels, code, origin, arc_label, up)
    long_pairs = np.flatnonzero(pair_target >= 0)
    last = code % n_labels
    return PatternAutomaton(
        n_labels, order, n_labels + np.searchsorted(last[n_labels:], np.arange(n_labels + 1)), size, code, last, fail,
        _subtree_ends(fail), arc_ptr, arc_label, arc_state, up, rank, rank_end, by_rank,
        long_pairs, table,
    )  # fmt: skip


def find_arcs(automaton: PatternAutomaton, sizes: UInts32, codes: UInts32) -> Ints:
    """Arcs of patterns of the automaton."""
    n_labels = automaton.n_labels
    offsets = _offsets(n_labels, automaton.order)
    origin = _sources(automaton)
    number = offsets[automaton.size[origin] + 1] + automaton.code[origin] * n_labels + automaton.arc_label
    order = np.argsort(number)
    wanted = offsets[sizes.astype(np.int64)] + codes.astype(np.int64)
    return order[np.searchsorted(number, wanted, sorter=order)] if len(wanted) else np.zeros(0, np.int64)


def make_graph(automaton: PatternAutomaton) -> kernels.patterns.PatternArrays:
    """The automaton as the kernels read it."""
    a = automaton
    small = {name: getattr(a, name).astype(np.uint32) for name in ("size", "last", "arc_label", "arc_state", "by_rank")}
    return kernels.patterns.PatternArrays(
        first=a.first, end=a.end, fail=a.fail, up=np.maximum(a.up, 0).astype(np.uint32), arc_ptr=a.arc_ptr,
        long_pairs=a.long_pairs.astype(np.uint32), table=a.table, rank=a.rank, rank_end=a.rank_end,
        arc_source=_sources(a).astype(np.uint32), **small,
    )  # fmt: skip


def _sources(automaton: PatternAutomaton) -> Ints:
    """The context that each arc belongs to."""
    pairs = np.repeat(np.arange(automaton.n_labels), automaton.n_labels)
    return np.concatenate([pairs, np.repeat(np.arange(automaton.n_states), np.diff(automaton.arc_ptr))])


def _offsets(n_labels: int, order: int) -> Ints:
    """offsets[k] + code is a number for patterns of all lengths up to the order."""
    return np.cumsum([0, *(n_labels**k for k in range(order + 1))], dtype=np.int64)


def _by_size(sizes: Ints, codes: Ints) -> dict[int, Ints]:
    return {int(k): np.unique(codes[sizes == k]) for k in np.unique(sizes)}


def _contexts(n_labels: int, patterns: dict[int, Ints]) -> dict[int, Ints]:
    """Codes of the contexts of each size; closed under leaving out the newest or the oldest label."""
    contexts: dict[int, Ints] = {}
    for k in range(max([2, *patterns]) - 1, 1, -1):
        longer = contexts.get(k + 1, np.zeros(0, np.int64))
        asked = patterns.get(k + 1, np.zeros(0, np.int64))
        contexts[k] = np.unique(np.concatenate([asked // n_labels, longer // n_labels, longer % n_labels**k]))
    contexts[1] = np.arange(n_labels)
    return contexts


def _preorder(n_labels: int, contexts: dict[int, Ints]) -> tuple[Ints, Ints]:
    """Size and code of the contexts: single labels, then the longer ones in preorder.

    The key reads a context from its newest label to the oldest, each as a digit 1 .. L, with zeros after the end.
    """
    longer = [k for k in sorted(contexts) if k > 1]
    size = np.concatenate([np.zeros(0, np.int64), *(np.full(len(contexts[k]), k) for k in longer)])
    code = np.concatenate([np.zeros(0, np.int64), *(contexts[k] for k in longer)])
    key, rest = np.zeros(len(code), np.int64), code.copy()
    for i in range(max([1, *longer])):
        key = key * (n_labels + 1) + np.where(i < size, rest % n_labels + 1, 0)
        rest //= n_labels
    order = np.argsort(key)
    ones = np.ones(n_labels, np.int64)
    return np.concatenate([ones, size[order]]), np.concatenate([contexts[1], code[order]])


def _own_arcs(patterns: dict[int, Ints], contexts: dict[int, Ints]) -> tuple[Ints, Ints]:
    """Size and code of (context, label) of the arcs of longer contexts: patterns and contexts of three or more."""
    sizes, codes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for k in range(3, max([2, *patterns]) + 1):
        none = np.zeros(0, np.int64)
        found = np.union1d(patterns.get(k, none), contexts.get(k, none))
        sizes.append(np.full(len(found), k))
        codes.append(found)
    return np.concatenate(sizes), np.concatenate(codes)


def _subtree_ends(fail: Ints) -> Ints:
    """One past the last context of each one's subtree (of single labels: no meaning, their group is in `first`)."""
    end = np.arange(1, len(fail) + 1)
    kernels.automaton.subtree_ends(fail, end)
    return end


def _ranks(n_labels: int, code: Ints, origin: Ints, label: Ints, up: Ints) -> tuple[Ints, Ints, Ints]:
    """Preorder of the arcs in the tree of `up`: by newest label of the context, label, context."""
    by_rank = np.lexsort((origin, label, code[origin] % n_labels))
    rank = np.empty(len(by_rank), np.int64)
    rank[by_rank] = np.arange(len(by_rank))
    count = np.ones(len(by_rank), np.int64)
    kernels.automaton.subtree_counts(up, count)
    return rank, rank + count, by_rank
