"""What a pass over the data will take, said before it begins if that is long, and refused if it cannot fit."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from vcrf import scratch
from vcrf.errors import BudgetError, LargeProblemWarning
from vcrf.machine import total_memory
from vcrf.problem import Problem
from vcrf.structures.pairs import PARTS, TOKENS
from vcrf.types import Bools

# From here on an estimate is worth a warning.
LONG_SECONDS, LARGE_BYTES = 60.0, 2e9
# Nanoseconds of one thread for an arc at a token, and for a tag pattern at an occurrence of a column; measured with 300
# to 1,300 labels, whose tables are too large for the fast part of the memory.
_NANOSECONDS = 3.0
# Of passes over weighted pairs: for a label at a token, for a pair of labels in a product of matrices, and for a label
# at an occurrence of a column in a scan; measured with 845 labels. Bytes that features take for each token.
_PER_LABEL, _PER_PRODUCT, _PER_SCANNED, _PER_TOKEN = 20.0, 0.05, 0.4, 3000
# Tables of all arcs that a pass has besides the two of each block; arrays of a number for each label at each token.
_TABLES, _ARRAYS = 5, 4


class Effort(NamedTuple):
    """A pass that scans all candidates: about so many seconds, at least and about so many bytes."""

    seconds: float
    least_bytes: float
    n_bytes: float


def check_effort(
    problem: Problem, keep: Bools, threads: int, n_blocks: int, is_dense: bool, has_pairs: bool = False
) -> None:
    """Warn of a pass that takes minutes or gigabytes; refuse one that is larger than the machine's memory."""
    effort = estimate(problem, keep, threads, n_blocks, is_dense, has_pairs)
    memory = max(total_memory(), scratch.room())
    if effort.least_bytes > memory:
        raise BudgetError(
            f"{_size(problem)} need {effort.least_bytes / 1e9:,.1f} GB of memory at the least; there are "
            f"{memory / 1e9:.1f} GB. {_advice(problem)}"
        )
    if effort.seconds > LONG_SECONDS or effort.n_bytes > LARGE_BYTES:
        warnings.warn(
            f"{_size(problem)}: one pass over the data takes about {_duration(effort.seconds)} and "
            f"{effort.n_bytes / 1e9:.1f} GB of memory, and training makes tens or hundreds of them. {_advice(problem)}",
            LargeProblemWarning,
            stacklevel=2,
        )


def estimate(
    problem: Problem, keep: Bools, threads: int, n_blocks: int, is_dense: bool, has_pairs: bool = False
) -> Effort:
    """What a scan takes if the columns of `keep` are scanned; longer patterns than 2 of an automaton come on top.

    With pairs passes look at those that have a weight alone, see `structures.pairs`.
    """
    if has_pairs:
        return _of_pairs(problem, keep, threads)
    n_tokens, n_labels = problem.n_tokens, float(problem.n_labels)
    order = problem.order if is_dense else min(problem.order, 2)
    n_arcs, n_states = n_labels**order, n_labels ** max(order - 1, 1)
    counts = np.diff(problem.columns.ptr)
    n_scanned = sum(float(counts[keep & problem.has_order(k)].sum()) * n_labels**k for k in range(1, order + 1))
    if problem.components is not None:
        of_values = float(counts[keep & problem.has_order(problem.component_kind)].sum())
        n_scanned += of_values * len(problem.components) + n_tokens * len(problem.components.labels)
    seconds = 1e-9 * _NANOSECONDS * (n_tokens * n_arcs + n_scanned) / min(threads, n_blocks)
    tables = (2 * n_blocks + _TABLES) * n_arcs
    messages = 2.0 * n_tokens * n_states if is_dense and order > 1 else 0.0
    least, most = (8.0 * (tables + messages + rows * n_tokens * n_labels) for rows in (1, _ARRAYS))
    return Effort(seconds, least, most)


def _of_pairs(problem: Problem, keep: Bools, threads: int) -> Effort:
    """A scan over weighted pairs: two passes, a product of matrices, every label wherever a column occurs."""
    counts, n_labels, n_tokens = np.diff(problem.columns.ptr), float(problem.n_labels), problem.n_tokens
    n_cells = n_tokens * n_labels if problem.possible is None else float(problem.possible.cells[-1])
    n_scanned = float(counts[keep & problem.has_order(1)].sum()) * n_cells / max(n_tokens, 1)
    of_values, values_a_label = 0.0, 0.0
    if problem.components is not None:
        n_scanned += float(counts[keep & problem.has_order(problem.component_kind)].sum()) * len(problem.components)
        of_values, values_a_label = n_tokens * float(len(problem.components)), len(problem.components.labels) / n_labels
    product = n_tokens * n_labels**2 if problem.order > 1 else 0.0
    nanoseconds = 2.0 * _PER_LABEL * n_cells * (1.0 + values_a_label / 5.0)
    nanoseconds += _PER_PRODUCT * product + _PER_SCANNED * n_scanned
    # A scan has a number for each label of each token, and for each component value; and tables of all pairs.
    least = 8.0 * (n_cells + of_values)
    most = least + 8.0 * (2 * PARTS + _TABLES) * n_labels**2 + _PER_TOKEN * n_tokens
    return Effort(1e-9 * nanoseconds / min(threads, PARTS), least, most + 16.0 * threads * TOKENS * n_labels)


def _size(problem: Problem) -> str:
    patterns = f" in tag patterns of length {problem.order}" if problem.order > 1 else ""
    return f"{problem.n_labels:,} labels{patterns} at {problem.n_tokens:,} tokens"


def _advice(problem: Problem) -> str:
    shorter = f"`tags={problem.order - 1}`, " if problem.order > 1 else ""
    return f"Use fewer labels (a coarser column of tags), {shorter}or fewer sentences."


def _duration(seconds: float) -> str:
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200.0 else f"{seconds / 3600:.0f} hours"
