"""Losses that are the cheapest of many ways to explain the candidate, made deterministic.

Edit distance, local alignment and transducers are automata that are not deterministic: reading a label, they may go
several ways, and the loss is the least cost of them all. `Alternatives` collects their arcs position by position, and
`build` gives a deterministic automaton by the weighted subset construction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vcrf import kernels
from vcrf.errors import BudgetError, InputError
from vcrf.losses.automaton import LossAutomaton
from vcrf.types import Bools, Floats, Ints


@dataclass
class Arcs:
    """Arcs in order of their group: labels of a class at a position, or positions."""

    n_groups: int
    parts: list[tuple[Ints, Ints, Ints, Floats]] = field(default_factory=list)

    def add(self, group: Any, src: Any, dst: Any, cost: Any, where: Bools) -> None:
        """Add the arcs of broadcast arrays where the mask is true."""
        shape = where.shape
        picked = [np.broadcast_to(np.asarray(part), shape)[where] for part in (group, src, dst)]
        self.parts.append((*picked, np.broadcast_to(np.asarray(cost, np.float64), shape)[where]))  # type: ignore[arg-type]

    def compiled(self, units: float) -> tuple[Ints, Ints, Ints, Ints]:
        """Pointers (n_groups + 1,), sources, destinations, and costs, `units` making 1."""
        if not self.parts:
            none = np.empty(0, np.int64)
            return np.zeros(self.n_groups + 1, np.int64), none, none, none
        group, src, dst, cost = (np.concatenate(column) for column in zip(*self.parts, strict=True))
        order = np.argsort(group, kind="stable")
        ptr = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=self.n_groups))])
        return ptr.astype(np.int64), _ints(src[order]), _ints(dst[order]), _ints(np.rint(cost[order] * units))

    def largest(self) -> float:
        """The largest cost in absolute value."""
        return max((float(np.abs(cost).max(initial=0.0)) for *_, cost in self.parts), default=0.0)


class Alternatives:
    """A layered automaton that is not deterministic, over classes of labels.

    Parameters
    ----------
    length, n_labels : int
    start : (n_nodes,) float64
        Cost of beginning in each node, inf = not allowed.
    final : (n_nodes,) float64
        Cost of ending there.

    Attributes
    ----------
    reading : Arcs
        Group t * n_labels + b: arcs from layer t to layer t+1 that read label b.
    silent : Arcs
        Group t: arcs inside layer t that read nothing, in an order such that each comes after those into its source.
    """

    def __init__(self, length: int, n_labels: int, start: Floats, final: Floats) -> None:
        self.length, self.n_labels, self.start, self.final = length, n_labels, start, final
        self.reading, self.silent = Arcs(length * n_labels), Arcs(length + 1)

    def build(self, max_states: int, advice: str) -> LossAutomaton:
        """The deterministic automaton of the least cost.

        Raises
        ------
        BudgetError
            More than max_states states; `advice` says what to do.
        InputError
            Some label sequence has no path.
        """
        units = np.float64(self._units())
        ends = [
            np.where(np.isfinite(side), np.rint(_finite(side) * units), kernels.residuals.FAR)
            for side in (self.start, self.final)
        ]
        nodes = kernels.residuals.Nodes(
            _ints(ends[0]), _ints(ends[1]), *self.reading.compiled(units), *self.silent.compiled(units)
        )
        status, t, state_ptr, following, cost, final, init = kernels.residuals.determinise(
            nodes, self.length, self.n_labels, max_states
        )
        if status == kernels.residuals.TOO_MANY:
            raise BudgetError(
                f"The loss automaton has more than max_states={max_states} states at position {t} of {self.length}. "
                f"{advice}"
            )
        if status != kernels.residuals.DONE:
            raise InputError(
                f"The loss is infinite: it accepts no sequence with certain labels up to position {t} of {self.length}."
            )
        return LossAutomaton(self.n_labels, state_ptr, following, cost / units, final / units, float(init / units))

    def _units(self) -> float:
        """How many make 1: a power of ten, 1e12 unless path costs are large; sums must stay far below 2**61."""
        ends = max(np.abs(_finite(self.start)).max(initial=0.0), np.abs(_finite(self.final)).max(initial=0.0))
        most = max(self.reading.largest(), self.silent.largest(), float(ends))
        total = most * (self.length + len(self.start) + 2)
        return float(10.0 ** (15.0 - np.ceil(np.log10(max(total, 1e3)))))


def _finite(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, 0.0)


def _ints(values: Any) -> Ints:
    return np.ascontiguousarray(values, np.int64)
