"""Loss-augmented decoding, on any lattice: margin rescaling, and slack rescaling by way of it.

Margin rescaling finds the label sequence with the largest loss(y) + score(y), slack rescaling that with the largest
loss(y) * s(y), s(y) = 1 + score(y) - score of the truth. For every kappa > 0, with G = max_y kappa loss(y) + s(y),
which margin rescaling finds on the small automaton,

    loss(y) s(y) <= loss(y) (G - kappa loss(y)) <= G^2 / (4 kappa)

and the y that attains G has equality if kappa loss(y) = s(y). So: a backward sweep with a guess of kappa gives a good y
and, for each state, the best rest of a path; then the sequences are built forward on the automaton that tells the
loss, but only those whose bound exceeds the best product found. The result is exact for any kappa; a good one leaves
little to build. Margin rescaling is the sweep at kappa = 1.

The sweeps are in `kernels.product_max` and `kernels.pattern_max`; the factors of their `LossArrays` are costs.
"""

from __future__ import annotations

from typing import NamedTuple

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.product import LossArrays
from vcrf.types import Floats, Ints, UInts32


class Additive(NamedTuple):
    """The small automata, whose arcs carry the loss, and where the rows of the automata that tell the loss lie in them.

    `origin` is a state of the small automaton, `spent` the loss so far, `least` the least loss of any end.
    """

    costs: LossArrays
    largest: Floats
    origin: Ints
    spent: Floats
    least: Floats


class Best(NamedTuple):
    """What is found: worth, loss, slope (sentences), and the labels (tokens); the truth and 0 if nothing is better."""

    values: Floats
    losses: Floats
    slopes: Floats
    labels: UInts32


@kernel
def find_origins(
    sent_ptr: Ints, first: Ints, successor: UInts32, costs: LossArrays, n_labels: int, origin: Ints, spent: Floats
) -> None:
    """Set `origin` and `spent` of the rows (first, successor: of the automata that tell the loss)."""
    for i in range(len(sent_ptr) - 1):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        if stop == start:
            continue
        origin[first[start]], spent[first[start]] = 0, costs.init[i]
        for t in range(start, stop - 1):
            for row in range(first[t], first[t + 1]):
                arcs = (costs.first[t] + origin[row]) * n_labels
                for b in range(n_labels):
                    to = first[t + 1] + successor[row * n_labels + b]
                    origin[to] = costs.successor[arcs + b]
                    spent[to] = spent[row] + costs.cost[arcs + b]


@inner_kernel
def number_rows(costs: LossArrays, i: int, start: int, stop: int, numbers: Ints) -> int:
    """First row of each layer of a sentence, numbered from 0; returns the number of rows."""
    n_rows = 0
    for t in range(start, stop):
        numbers[t - start] = n_rows
        n_rows += costs.width[t]
    numbers[stop - start] = n_rows
    return int(n_rows + costs.final_ptr[i + 1] - costs.final_ptr[i])


@inner_kernel
def path_loss(costs: LossArrays, i: int, start: int, stop: int, n_labels: int, labels: UInts32) -> float:
    """Loss of a label sequence."""
    loss, q = costs.init[i], 0
    for t in range(start, stop):
        arc = (costs.first[t] + q) * n_labels + labels[t]
        loss += costs.cost[arc]
        q = int(costs.successor[arc])
    return float(loss + costs.final[costs.final_ptr[i] + q])


@inner_kernel
def bound(total: float, kappa: float, least: float, largest: float) -> float:
    """Largest L (total - kappa L) for L from `least` to `largest`."""
    loss = min(max(0.5 * total / kappa, least), largest)
    return loss * (total - kappa * loss)


@inner_kernel
def take_truth(i: int, start: int, stop: int, y: UInts32, out: Best) -> None:
    """The truth, until something is worth more."""
    out.values[i] = out.losses[i] = out.slopes[i] = 0.0
    for t in range(start, stop):
        out.labels[t] = y[t]


@inner_kernel
def take_margin(i: int, start: int, stop: int, labels: UInts32, loss: float, score: float, truth: float,
                out: Best) -> None:  # fmt: skip
    """The labels that attain the most at kappa = 1, if they are worth more than the truth: 0 but for rounding."""
    worth = loss + score - truth
    if worth > 1e-12 * (1.0 + abs(truth)):
        out.values[i], out.losses[i], out.slopes[i] = worth, loss, 1.0
        out.labels[start:stop] = labels[start:stop]


@inner_kernel
def take_guess(
    i: int, start: int, stop: int, labels: UInts32, loss: float, s: float, truth: float, largest: float, kappas: Floats,
    out: Best,
) -> float:  # fmt: skip
    """The labels that attain the most at kappas[i], if their product is above 0, and a better kappa for the next time.

    Returns what another product must exceed; -1 if none can.
    """
    worth, tiny, kappa = 0.0, 1e-12 * (1.0 + abs(truth)), kappas[i]
    if loss * s > tiny:
        worth = loss * s
        out.values[i], out.losses[i], out.slopes[i] = worth, loss, loss
        out.labels[start:stop] = labels[start:stop]
        kappas[i] = s / loss
    else:
        kappas[i] = min(max(kappa * (2.0 if loss == 0.0 else 0.5), 1e-12), 1e12)
    enough = worth * (1.0 + 1e-12) + tiny
    return -1.0 if bound(kappa * loss + s, kappa, 0.0, largest) <= enough else enough


@inner_kernel
def take_product(i: int, loss: float, product: float, kappas: Floats, out: Best) -> None:
    """A better product that was built, whose labels are in their place, and its kappa."""
    out.values[i], out.losses[i], out.slopes[i] = product, loss, loss
    kappas[i] = product / (loss * loss)
