"""The loss automata of all training sentences as a few arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vcrf.errors import InputError
from vcrf.losses.automaton import LossAutomaton
from vcrf.losses.loss import Loss
from vcrf.problem import Problem
from vcrf.types import Floats, Ints, UInts32


@dataclass(frozen=True, eq=False)
class CompiledLoss:
    """Automata one after the other; the rows of a token are the states before it.

    Attributes
    ----------
    n_labels : int
    first, width : (n_tokens,) first row and number of rows of each token
    successor : (n_rows, n_labels) uint32, number of the state inside the next layer
    cost : (n_rows, n_labels)
    final_ptr, final : CSR over sentences, cost of each last state
    init : (n_sentences,)
    largest : (n_sentences,) the largest loss of any label sequence
    lengths : (n_sentences,) number of labels
    """

    n_labels: int
    first: Ints
    width: Ints
    successor: UInts32
    cost: Floats
    final_ptr: Ints
    final: Floats
    init: Floats
    largest: Floats
    lengths: Ints

    def automaton(self, problem: Problem, i: int) -> LossAutomaton:
        """The automaton of one sentence, which must not be empty."""
        start, stop = int(problem.sent_ptr[i]), int(problem.sent_ptr[i + 1])
        rows = slice(int(self.first[start]), int(self.first[stop - 1] + self.width[stop - 1]))
        final = self.final[self.final_ptr[i] : self.final_ptr[i + 1]]
        ptr = np.concatenate([[0], np.cumsum(self.width[start:stop]), [0]]).astype(np.int64)
        ptr[-1] = ptr[-2] + len(final)
        return LossAutomaton(
            self.n_labels, ptr, self.successor[rows].astype(np.int64), self.cost[rows], final, float(self.init[i])
        )

    def hamming_costs(self, problem: Problem) -> Floats | None:
        """What a wrong label costs in each sentence, if that is all there is to the loss; else None."""
        if np.any(self.width != 1) or np.any(self.final != 0.0) or np.any(self.init != 0.0) or problem.n_labels < 2:
            return None
        lengths = np.diff(problem.sent_ptr)
        if not problem.n_tokens:
            return np.zeros(len(lengths))
        y = problem.y.astype(np.int64)
        tokens = np.arange(problem.n_tokens)
        wrong = self.cost.copy()
        own = wrong[tokens, y].copy()
        wrong[tokens, y] = wrong[tokens, (y + 1) % problem.n_labels]
        starts = np.minimum(problem.sent_ptr[:-1], problem.n_tokens - 1)
        costs = np.where(lengths > 0, wrong[starts, 0], 0.0)
        if np.any(own != 0.0) or np.any(wrong != np.repeat(costs, lengths)[:, None]):
            return None
        return np.asarray(costs)


def compile_loss(problem: Problem, loss: Loss) -> CompiledLoss:
    """Automata of the loss for every sentence of the problem.

    Raises
    ------
    InputError
        When labels are left open, or the loss is infinite, negative, or not 0 for the truth.
    """
    if problem.is_partial:
        raise InputError(
            f"{type(loss).__name__} needs the label of every token: some are left open. Use `loss=None` or 'hamming'."
        )
    return join_automata(problem, lambda y: loss.automaton(y, problem.n_labels))


def join_automata(problem: Problem, automaton_of: Callable[[Ints], LossAutomaton], check: bool = True) -> CompiledLoss:
    """Arrays of the automata that a function gives for the true labels of each sentence."""
    widths, successors, costs, finals, inits, largest = [], [], [], [], [], []
    for a, z in zip(problem.sent_ptr[:-1], problem.sent_ptr[1:], strict=True):
        if a == z:
            finals.append(np.zeros(1))
            inits.append(0.0)
            largest.append(0.0)
            continue
        y = problem.y[a:z].astype(np.int64)
        automaton = automaton_of(y)
        if (automaton.length, automaton.n_labels) != (len(y), problem.n_labels):
            raise InputError(
                f"Expected an automaton of {len(y)} tokens and {problem.n_labels} labels, got {automaton}."
            )
        if check:
            automaton.check(y)
        widths.append(np.diff(automaton.state_ptr)[:-1])
        successors.append(automaton.next.astype(np.uint32))
        costs.append(automaton.cost)
        finals.append(automaton.final)
        inits.append(automaton.init)
        largest.append(automaton.largest())
    none = np.zeros((0, problem.n_labels))
    width = np.concatenate([np.zeros(0, np.int64), *widths])
    sizes = [len(final) for final in finals]
    return CompiledLoss(
        problem.n_labels,
        np.cumsum(width) - width,
        width,
        np.concatenate([none.astype(np.uint32), *successors]),
        np.concatenate([none, *costs]),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([np.zeros(0), *finals]),
        np.array(inits, np.float64),
        np.array(largest, np.float64),
        np.diff(problem.sent_ptr),
    )
