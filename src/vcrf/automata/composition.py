"""Composition: the output of the first is the input of the second (Mohri, Pereira and Riley 1996)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from vcrf.automata.automaton import EPSILON, Arc, Automaton, Label
from vcrf.automata.operations import check_semirings, connect
from vcrf.errors import BudgetError, InputError

# (state of the first, of the second, whether the second has read an epsilon since the last common label)
State = tuple[int, int, bool]
ByLabel = dict[Label, list[Arc]]


def compose(first: Automaton, second: Automaton, max_states: int = 1_000_000) -> Automaton:
    """Transducer of pairs (x, z) with weight plus over y of first(x, y) times second(y, z).

    Between two labels y the first's epsilons go before the second's, so that no pair of paths counts twice.

    Raises
    ------
    BudgetError
        More than max_states pairs of states.
    """
    check_semirings(first, second)
    made = Automaton(first.semiring)
    if first.start < 0 or second.start < 0:
        return made
    by_label = [_by_input(arcs) for arcs in second.arcs]
    begin: State = (first.start, second.start, False)
    number = {begin: made.add_state()}
    todo = [begin]
    times = made.semiring.times
    while todo:
        state = todo.pop()
        p, q, _ = state
        if p in first.final and q in second.final:
            made.final[number[state]] = times(first.final[p], second.final[q])
        for read, write, weight, to in _moves(state, first, by_label[q], made):
            if to not in number:
                if made.n_states == max_states:
                    raise BudgetError(
                        f"The composition has more than max_states={max_states} states. Raise max_states."
                    )
                number[to] = made.add_state()
                todo.append(to)
            made.arcs[number[state]].append(Arc(read, write, weight, number[to]))
    return connect(made)


def intersect(first: Automaton, second: Automaton, max_states: int = 1_000_000) -> Automaton:
    """Sequences that both accept, with the product of their weights."""
    for automaton in (first, second):
        if not automaton.is_acceptor:
            raise InputError("intersect needs automata, not transducers: project them, or use compose.")
    return compose(first, second, max_states)


def _moves(
    state: State, first: Automaton, arcs: ByLabel, made: Automaton
) -> Iterator[tuple[Label, Label, object, State]]:
    p, q, is_second_ahead = state
    for arc in first.arcs[p]:
        if arc.output == EPSILON:
            if not is_second_ahead:
                yield arc.input, EPSILON, arc.weight, (arc.to, q, False)
            continue
        for other in arcs.get(arc.output, ()):
            yield arc.input, other.output, made.semiring.times(arc.weight, other.weight), (arc.to, other.to, False)
    for other in arcs.get(EPSILON, ()):
        yield EPSILON, other.output, other.weight, (p, other.to, True)


def _by_input(arcs: list[Arc]) -> ByLabel:
    grouped: ByLabel = defaultdict(list)
    for arc in arcs:
        grouped[arc.input].append(arc)
    return dict(grouped)
