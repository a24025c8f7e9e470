"""A choice of features compiled to arrays: what one pass over the data reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vcrf import kernels, scratch
from vcrf.families.keys import KeyGroup
from vcrf.lattice import PatternAutomaton
from vcrf.problem import Components, Problem
from vcrf.structures.value_pairs import ValuePairs, value_pairs
from vcrf.types import Bools, Floats, Ints, UInts32
from vcrf.workers import cut

if TYPE_CHECKING:
    from vcrf.kernels.patterns import PatternArrays

# Loops over rows and columns are cut into few blocks: each row is summed by one thread, in one order, whatever the
# cut, and handing out a block costs as much as thousands of rows.
_BLOCKS = 4
# Hessians of more features have 4 bytes a number: half the memory, and precise enough for a direction.
_MAX_DOUBLE = 4_000
# Patterns that a token's slots are looked up among; with more, every entry has a slot of its own.
_MAX_PATTERNS = 4_000_000


@dataclass(frozen=True)
class GroupEntries:
    """The features of a key group: rows start at `offset`; column i has features first_feature[i] on."""

    group: KeyGroup
    offset: int
    first_feature: Ints
    n_features: Ints
    bounds: list[int]


@dataclass(frozen=True)
class ArcPlan:
    """The automaton of a plan's tag patterns, and which arcs its features are on.

    `table_arcs` are those of the plain patterns, `cor_arcs` those of the corrections' slots; `is_cheap` says whether
    passes use the automaton.
    """

    automaton: PatternAutomaton
    graph: PatternArrays
    table_arcs: Ints
    cor_arcs: UInts32
    is_cheap: bool


@dataclass(frozen=True)
class ComponentPlan:
    """Features of component values: their groups, and lists of (value, feature) for the rows of the plan.

    `keys` are pointers to the same lists for all keys, as `ChainPlan.keys`.
    """

    table: Components
    groups: list[GroupEntries]
    keys: Ints
    row_ptr: Ints
    row_values: UInts32
    row_features: UInts32
    row_factors: Floats


@dataclass(frozen=True)
class ChainPlan:
    """Features compiled to arrays: rows of (label, feature) for keys, a table of tag patterns, corrections.

    Keys without features have no row; row 0 is nothing. `keys` are pointers to the lists of (label, feature) of all
    keys, for sums by key. Corrections are listed by token: an entry is a feature with a longer pattern whose column
    holds there. Entries of one token with the same pattern share a slot, which has the sum of their scores. The flip of
    a pair of labels is its code the other way round. `arcs` is for passes on a pattern automaton.
    """

    features: Ints
    labels: UInts32
    groups: list[GroupEntries]
    rows: UInts32
    row_ptr: Ints
    row_labels: UInts32
    row_features: UInts32
    row_values: Floats
    row_bounds: list[int]
    keys: Ints
    key_ptr: Ints
    key_positions: UInts32
    table_features: Ints
    table_sizes: UInts32
    table_codes: UInts32
    order: int
    cor_ptr: Ints
    cor_size: UInts32
    cor_code: UInts32
    cor_feature: UInts32
    cor_values: Floats
    cor_features: Ints
    cor_feature_ptr: Ints
    cor_feature_slots: UInts32
    cor_feature_values: Floats
    cor_slot: UInts32
    slot_ptr: Ints
    slot_size: UInts32
    slot_code: UInts32
    slot_flip: UInts32
    token_bounds: list[int]
    cor_bounds: list[int]
    arcs: ArcPlan | None = None
    by_triples: bool = False
    components: ComponentPlan | None = None
    value_pairs: ValuePairs | None = None

    def __len__(self) -> int:
        return len(self.features)

    @property
    def work(self) -> int:
        """Entries of features that cost work at each of their tokens."""
        return len(self.cor_code)


def compile_features(problem: Problem, groups: list[KeyGroup], features: Ints) -> ChainPlan:
    """Arrays for a sorted set of features: single labels by key, plain patterns as a table, the rest by token."""
    column, length, code = problem.split_features(features)
    is_plain = column == problem.bias_column
    part_size = problem.part_sizes(length)
    is_pattern = (length > 1) & (length <= problem.order)
    in_table = np.flatnonzero(is_pattern & is_plain)
    corrected = np.flatnonzero(is_pattern & ~is_plain)
    return ChainPlan(
        features=features,
        labels=code,
        table_features=in_table,
        table_sizes=length[in_table],
        table_codes=code[in_table],
        order=int(part_size.max(initial=1)),
        value_pairs=value_pairs(problem, length, code),
        **_compile_rows(problem, groups, features, code),
        **_compile_corrections(problem, column, length, code, corrected),
    )


def _compile_rows(problem: Problem, groups: list[KeyGroup], features: Ints, code: UInts32) -> dict[str, Any]:
    """Key-major lists of features of single labels and component values, and the keys' positions."""
    found = {k: [_of_group(problem, k, group, features) for group in groups] for k in _single_kinds(problem)}
    used = [i for i in range(len(groups)) if any(np.any(count[i][1]) for count in found.values())]
    key_counts: list[Ints] = [np.zeros(1, np.int64)]
    key_positions: list[UInts32] = []
    offsets: list[int] = []
    offset = 0
    for group in (groups[i] for i in used):
        offsets.append(offset)
        key_counts.append(np.diff(group.key_ptr)[1:])
        key_positions.append(group.key_positions)
        offset += group.n_keys - 1
    parts = {
        k: [
            GroupEntries(groups[i], at, *of_kind[i], cut(groups[i].col_ptr, _BLOCKS))
            for i, at in zip(used, offsets, strict=True)
        ]
        for k, of_kind in found.items()
    }
    keys, labels, entries, values = _row_entries(parts[1], offset + 1, code)
    more: dict[str, Any] = {}
    has_row = np.diff(keys) > 0
    if problem.components is not None:
        of_values = parts[problem.component_kind]
        pointers, value, entry, factor = _row_entries(of_values, offset + 1, code)
        has_row |= np.diff(pointers) > 0
        more["components"] = ComponentPlan(
            problem.components, of_values, pointers, _pointers(pointers, has_row), value, entry, factor
        )
    row_ptr = _pointers(keys, has_row)
    return more | {
        "groups": parts[1],
        "rows": _rows_of_tokens(problem.n_tokens, [groups[i] for i in used], offsets, has_row),
        "row_ptr": row_ptr,
        "row_labels": labels,
        "row_features": entries,
        "row_values": values,
        "row_bounds": cut(row_ptr, _BLOCKS),
        "keys": keys,
        "key_ptr": np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(key_counts))]),
        "key_positions": scratch.concatenate([np.zeros(0, np.uint32), *key_positions]),
    }


def _pointers(keys: Ints, has_row: Bools) -> Ints:
    """Pointers to the lists of the rows, from those of all keys: row 0 is nothing."""
    return np.concatenate([np.zeros(1, np.int64), keys[:-1][has_row], keys[-1:]])


def _rows_of_tokens(n_tokens: int, groups: list[KeyGroup], offsets: list[int], has_row: Bools) -> UInts32:
    """The row of each token in each group, 0 = nothing, (n_tokens, n_groups)."""
    number = np.where(has_row, np.cumsum(has_row, dtype=np.uint32), 0).astype(np.uint32)
    rows = scratch.empty((n_tokens, len(groups)), np.uint32)
    for i, (group, offset) in enumerate(zip(groups, offsets, strict=True)):
        of_key = number[offset : offset + group.n_keys].copy()
        of_key[0] = 0
        rows[:, i] = of_key[group.pos_key]
    return rows


def _single_kinds(problem: Problem) -> list[int]:
    """Kinds whose parts are of one label."""
    return [1] if problem.components is None else [1, problem.component_kind]


def _of_group(problem: Problem, kind: int, group: KeyGroup, features: Ints) -> tuple[Ints, Ints]:
    """The first feature of a kind of each of a group's columns, and how many there are."""
    zero = np.zeros(len(group.columns), np.uint32)
    base = problem.join_features(group.columns, kind, zero)
    first = np.searchsorted(features, base)
    return first, np.searchsorted(features, base + problem.space.size(kind)) - first


def _row_entries(parts: list[GroupEntries], n_rows: int, code: UInts32) -> tuple[Ints, UInts32, UInts32, Floats]:
    """Pointers of the keys' lists, and the assignment, feature and value (none for indicators) of their entries."""
    counts = np.zeros(n_rows, np.int64)
    for part in parts:
        kernels.keys.count_entries(part.group.col_ptr, part.group.col_keys, part.n_features, part.offset, counts)
    row_ptr = scratch.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    n = int(row_ptr[-1])
    labels, entries = scratch.empty(n, np.uint32), scratch.empty(n, np.uint32)
    has_values = any(len(part.group.col_values) for part in parts)
    values = scratch.empty(n if has_values else 0)
    at = row_ptr[:-1].copy()
    for part in parts:
        kernels.gradient.fill_entries(
            part.group.col_ptr, part.group.col_keys, part.group.col_values, part.first_feature,
            part.n_features, code, part.offset, at, labels, entries, values,
        )  # fmt: skip
    return row_ptr, labels, entries, values


def _compile_corrections(
    problem: Problem, column: UInts32, length: UInts32, code: UInts32, corrected: Ints
) -> dict[str, Any]:
    """Token-major and feature-major lists of features of longer patterns with lexical columns."""
    if not len(corrected):
        return _no_corrections(problem.n_tokens)
    columns = problem.columns
    cor_ptr = np.zeros(problem.n_tokens + 1, np.int64)
    kernels.gradient.count_corrections(columns.ptr, columns.positions, column[corrected], cor_ptr)
    cor_ptr = np.cumsum(cor_ptr)
    n = int(cor_ptr[-1])
    entry_feature, entry_of_feature = scratch.empty(n, np.uint32), scratch.empty(n, np.uint32)
    kernels.gradient.fill_corrections(
        columns.ptr,
        columns.positions,
        column[corrected],
        cor_ptr[:-1].copy(),
        entry_feature,
        entry_of_feature,
    )
    counts = np.diff(columns.ptr)[column[corrected]]
    feature_ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    values = values_of_feature = np.zeros(0)
    if len(columns.values) and n:
        index = np.repeat(columns.ptr[column[corrected]] - feature_ptr[:-1], counts) + np.arange(n)
        values, values_of_feature = scratch.empty(n), scratch.keep(columns.values[index])
        values[entry_of_feature] = values_of_feature
    which = scratch.keep(corrected[entry_feature])
    slot, first = scratch.empty(n, np.uint32), scratch.empty(n, np.int64)
    slot_ptr = np.empty(problem.n_tokens + 1, np.int64)
    offsets = np.cumsum([problem.n_labels**k for k in range(problem.order + 1)])
    seen = np.full(offsets[-1] if offsets[-1] <= _MAX_PATTERNS else 0, -1, np.int64)
    n_slots = kernels.gradient.fill_slots(cor_ptr, length[which], code[which], offsets, seen, slot_ptr, slot, first)
    first = which[first[:n_slots]]
    slot_size, slot_code = length[first], code[first]
    newest, oldest = slot_code % problem.n_labels, slot_code // problem.n_labels
    return {
        "cor_ptr": cor_ptr,
        "cor_size": scratch.keep(length[which]),
        "cor_code": scratch.keep(code[which]),
        "cor_feature": scratch.keep(which.astype(np.uint32)),
        "cor_values": values,
        "cor_features": corrected,
        "cor_feature_ptr": feature_ptr,
        "cor_feature_slots": scratch.keep(slot[entry_of_feature]),
        "cor_feature_values": values_of_feature,
        "cor_slot": slot,
        "slot_ptr": slot_ptr,
        "slot_size": slot_size,
        "slot_code": slot_code,
        "slot_flip": np.where(slot_size == 2, newest * problem.n_labels + oldest, 0).astype(np.uint32),
        "token_bounds": cut(cor_ptr, _BLOCKS),
        "cor_bounds": cut(feature_ptr, _BLOCKS),
    }


def _no_corrections(n_tokens: int) -> dict[str, Any]:
    """The same for no features: nothing to compile for."""
    ptr, one = np.zeros(n_tokens + 1, np.int64), np.zeros(1, np.int64)
    ids, whole, real = np.zeros(0, np.uint32), np.zeros(0, np.int64), np.zeros(0)
    return {
        "cor_ptr": ptr, "cor_size": ids, "cor_code": ids, "cor_feature": ids, "cor_values": real, "cor_features": whole,
        "cor_feature_ptr": one, "cor_feature_slots": ids, "cor_feature_values": real, "cor_slot": ids, "slot_ptr": ptr,
        "slot_size": ids, "slot_code": ids, "slot_flip": ids, "token_bounds": cut(ptr, _BLOCKS),
        "cor_bounds": cut(one, _BLOCKS),
    }  # fmt: skip


def firing_of(plan: ChainPlan, chosen: Ints) -> kernels.hessian.PairFiring:
    """Where the chosen features (indices into the set) fire, patterns of 2 labels at the most."""
    position = np.full(len(plan), -1, np.int64)
    position[chosen] = np.arange(len(chosen))
    in_table = np.flatnonzero(position[plan.table_features] >= 0)
    return kernels.hessian.PairFiring(
        plan.rows, plan.row_ptr, plan.row_labels, plan.row_features, plan.row_values,
        plan.cor_ptr, plan.cor_code, plan.cor_feature, plan.cor_values,
        plan.table_codes[in_table].astype(np.int64), position[plan.table_features[in_table]], position,
    )  # fmt: skip


def zero_hessian(chosen: Ints) -> Floats:
    """Zeros for the Hessian of the chosen features."""
    n = len(chosen)
    return np.zeros((n, n), np.float64 if n <= _MAX_DOUBLE else np.float32)
