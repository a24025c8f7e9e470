"""All label sequences of one sentence on the states of a pattern automaton: a `DenseLattice` without its size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.lattice.automaton import PatternAutomaton
from vcrf.lattice.lattice import Lattice
from vcrf.types import Floats

if TYPE_CHECKING:
    from vcrf.kernels.scores import LocalArcs


@dataclass(frozen=True, eq=False)
class PatternLattice(Lattice):
    """Weighted label sequences of one sentence.

    ``score(y) = sum_t node[t, y_t] + sum_{t >= 1} arcs[t, arc taken at t]``, where the arc is the one that the
    automaton takes from the state of y_1 .. y_{t-1} with y_t.

    Parameters
    ----------
    automaton : PatternAutomaton
    node : (n_positions, n_labels) float64
    arcs : (n_positions, n_arcs) float64; an arc has the summed scores of all patterns that end with it. Row 0 is not
        read. -inf forbids.
    """

    automaton: PatternAutomaton
    node: Floats
    arcs: Floats

    def __post_init__(self) -> None:
        n = len(self.node)
        if self.node.shape != (n, self.n_labels) or self.arcs.shape != (n, self.automaton.n_arcs):
            raise InputError(
                f"A lattice on this automaton needs node scores (n_positions, {self.n_labels}) and arc scores "
                f"(n_positions, {self.automaton.n_arcs}): got {self.node.shape} and {self.arcs.shape}."
            )
        if not (np.all(self.node < np.inf) and np.all(self.arcs[1:] < np.inf)):
            raise InputError("Lattice weights must be finite or -inf (forbidden): got NaN or +inf.")

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.automaton.n_labels

    @property
    def order(self) -> int:
        """Length of the longest pattern."""
        return self.automaton.order

    @cached_property
    def steps(self) -> kernels.log_domain.ContextScores:
        """The scores as the kernels read them: contexts 0 .. L-1 are the single labels."""
        a = self.automaton
        return kernels.log_domain.ContextScores(
            self.node, self.arcs, a.size, a.table, a.arc_state, np.arange(a.n_labels)
        )

    # ---- restrictions ----

    def allow(self, masks: npt.ArrayLike) -> Self:
        """Return the lattice restricted to the sequences with ``masks[t, y_t]`` true at every t."""
        return replace(self, node=np.where(self._checked_mask(masks), self.node, -np.inf))

    def forbid(self, transitions: Iterable[tuple[int, int]]) -> PatternLattice:
        """Return a lattice without the sequences where some ``(y_{t-1}, y_t)`` is one of the given pairs."""
        arcs, automaton = self.arcs.copy(), self.automaton
        for before, after in self._checked_pairs(transitions):
            pair = before * self.n_labels + after
            arcs[:, automaton.by_rank[automaton.rank[pair] : automaton.rank_end[pair]]] = -np.inf
        return PatternLattice(automaton, self.node, arcs)


def sentence_lattice(
    automaton: PatternAutomaton, node: Floats, log: Floats, local: LocalArcs, start: int
) -> PatternLattice:
    """Lattice of the sentence whose tokens begin at `start`, from scores of arcs and of local patterns."""
    arcs = np.tile(log, (len(node), 1))
    for t in range(len(node)):
        for j in range(local.ptr[start + t], local.ptr[start + t + 1]):
            ranks = slice(automaton.rank[local.arc[j]], automaton.rank_end[local.arc[j]])
            arcs[t, automaton.by_rank[ranks]] += local.score[j]
    return PatternLattice(automaton, node, arcs)
