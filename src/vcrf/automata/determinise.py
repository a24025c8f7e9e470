"""Weighted determinisation of acyclic automata (Mohri 1997)."""

from __future__ import annotations

from collections import defaultdict

from vcrf.automata.automaton import Arc, Automaton, Label
from vcrf.automata.epsilons import remove_epsilons
from vcrf.automata.operations import connect
from vcrf.automata.semiring import Semiring, Weight
from vcrf.errors import BudgetError, InputError

# States of the given automaton, each with what is still to be paid.
Subset = dict[int, Weight]


def determinise(automaton: Automaton, max_states: int = 50_000) -> Automaton:
    """The same weighted sequences, with at most one arc for each label out of a state.

    A state is a set of states with residual weights; the sum of the weights is paid on the arc, the rest is kept.
    Residuals closer than 1e-9 are taken as equal.

    Raises
    ------
    InputError
        When the automaton is a transducer or has a cycle.
    BudgetError
        More than max_states states: determinisation may be exponential.
    """
    if not automaton.is_acceptor:
        raise InputError("determinise needs an automaton, not a transducer: project it on one side first.")
    if not connect(automaton).is_acyclic:
        raise InputError("determinise needs an acyclic automaton: this one has a cycle.")
    plain = remove_epsilons(automaton)
    semiring = plain.semiring
    made = Automaton(semiring)
    if plain.start < 0:
        return made
    subsets: list[Subset] = [{plain.start: semiring.one}]
    number = {_key(subsets[0], semiring): made.add_state()}
    for state, subset in enumerate(subsets):  # grows
        _set_final(made, state, subset, plain.final)
        for label, reached in _successors(plain, subset).items():
            paid, rest = _split(reached, semiring)
            key = _key(rest, semiring)
            if key not in number:
                if made.n_states == max_states:
                    raise BudgetError(
                        f"The deterministic automaton has more than max_states={max_states} states. Raise max_states."
                    )
                number[key] = made.add_state()
                subsets.append(rest)
            made.arcs[state].append(Arc(label, label, paid, number[key]))
    return made


def _successors(automaton: Automaton, subset: Subset) -> dict[Label, Subset]:
    plus, times, zero = automaton.semiring.plus, automaton.semiring.times, automaton.semiring.zero
    found: dict[Label, Subset] = defaultdict(dict)
    for state, residual in subset.items():
        for arc in automaton.arcs[state]:
            reached = found[arc.input]
            reached[arc.to] = plus(reached.get(arc.to, zero), times(residual, arc.weight))
    return found


def _split(reached: Subset, semiring: Semiring) -> tuple[Weight, Subset]:
    """What is paid now, the sum, and what remains of each."""
    paid = semiring.zero
    for weight in reached.values():
        paid = semiring.plus(paid, weight)
    if semiring.is_zero(paid):
        return paid, reached
    return paid, {state: semiring.quotient(weight, paid) for state, weight in reached.items()}


def _set_final(made: Automaton, number: int, subset: Subset, final: dict[int, Weight]) -> None:
    semiring = made.semiring
    ends = [semiring.times(residual, final[state]) for state, residual in subset.items() if state in final]
    for end in ends:
        made.final[number] = semiring.plus(made.final.get(number, semiring.zero), end)


def _key(subset: Subset, semiring: Semiring) -> frozenset[tuple[int, tuple[float, ...]]]:
    return frozenset((state, semiring.key(weight)) for state, weight in subset.items())
