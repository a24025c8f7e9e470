"""Automata over every semiring against enumeration of paths; text, drawings and errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcrf.automata import (
    EPSILON,
    EXPECTATION,
    LOG,
    PROBABILITY,
    TROPICAL,
    Automaton,
    compose,
    connect,
    convert,
    determinise,
    distance_from_start,
    distance_to_end,
    from_att,
    get_semiring,
    intersect,
    n_shortest,
    project,
    push,
    remove_epsilons,
    shortest_path,
    symbol_table,
    symbols_to_text,
    to_att,
    to_dot,
    total_weight,
    union,
)
from vcrf.errors import BudgetError, InputError

SEMIRINGS = [LOG, TROPICAL, PROBABILITY, EXPECTATION]
lean = settings(max_examples=40)
every = pytest.mark.parametrize("semiring", SEMIRINGS, ids=str)


def weights_of(semiring):
    """Return a strategy of weights."""
    number = st.integers(1, 16).map(lambda n: n / 8)
    return st.tuples(number, number) if semiring is EXPECTATION else number


@st.composite
def automata(draw, semiring, pair=True):
    """Draw a small acyclic automaton, with epsilons."""
    n_states = draw(st.integers(2, 5))
    label = st.sampled_from(["a", "b", EPSILON])
    arcs = []
    for _ in range(draw(st.integers(1, 8))):
        source, to = sorted(draw(st.lists(st.integers(0, n_states - 1), min_size=2, max_size=2, unique=True)))
        read = draw(label)
        arcs.append((source, read, draw(label) if pair else read, draw(weights_of(semiring)), to))
    return Automaton.from_arcs(arcs, {n_states - 1: draw(weights_of(semiring))}, semiring)


def relation(automaton):
    """Return {(inputs, outputs): summed weight}."""
    found = {}
    for path in automaton.paths():
        key = path.inputs, path.outputs
        found[key] = automaton.semiring.plus(found.get(key, automaton.semiring.zero), path.weight)
    return found


def total(semiring, weights):
    """Return the sum of weights."""
    out = semiring.zero
    for weight in weights:
        out = semiring.plus(out, weight)
    return out


def assert_equal(got, expected, semiring):
    """Assert that two relations are equal."""
    assert got.keys() == expected.keys()
    assert all(semiring.close(got[key], expected[key]) for key in got)


@every
@lean
@given(data=st.data())
def test_semiring_laws(semiring, data):
    """Associative, commutative, distributive; zero and one; quotient undoes times."""
    a, b, c = (data.draw(weights_of(semiring)) for _ in range(3))
    plus, times, close = semiring.plus, semiring.times, semiring.close
    assert close(plus(plus(a, b), c), plus(a, plus(b, c)))
    assert close(times(times(a, b), c), times(a, times(b, c)))
    assert close(plus(a, b), plus(b, a))
    assert close(times(a, b), times(b, a))
    assert close(times(a, plus(b, c)), plus(times(a, b), times(a, c)))
    assert plus(a, semiring.zero) == a == times(a, semiring.one)
    assert semiring.is_zero(times(a, semiring.zero))
    assert close(times(a, semiring.quotient(b, a)), b)


@every
@lean
@given(data=st.data())
def test_composition_is_by_definition(semiring, data):
    """Sum over the middle sequence of the products, in every semiring."""
    first, second = data.draw(automata(semiring)), data.draw(automata(semiring))
    expected = {}
    for (x, y), weight in relation(first).items():
        for (y2, z), other in relation(second).items():
            if y == y2:
                product = semiring.times(weight, other)
                expected[x, z] = semiring.plus(expected.get((x, z), semiring.zero), product)
    assert_equal(relation(compose(first, second)), expected, semiring)


@every
@lean
@given(data=st.data())
def test_operations_keep_weights(semiring, data):
    """Removing epsilons, pushing, connecting, determinising: the same sequences, the same weights."""
    automaton = data.draw(automata(semiring, pair=False))
    expected = relation(automaton)
    for operation in (remove_epsilons, connect, push, determinise):
        assert_equal(relation(operation(automaton)), expected, semiring)
    both = relation(union(automaton, automaton))
    assert_equal(both, {key: semiring.plus(weight, weight) for key, weight in expected.items()}, semiring)


@every
@lean
@given(data=st.data())
def test_distances_are_sums_over_paths(semiring, data):
    """To the end and from the start; both give the total at the other side."""
    automaton = data.draw(automata(semiring))
    expected = total(semiring, [path.weight for path in automaton.paths()])
    assert semiring.close(total_weight(automaton), expected)
    from_start = distance_from_start(automaton)
    ends = [semiring.times(from_start[state], weight) for state, weight in automaton.final.items()]
    assert semiring.close(total(semiring, ends), expected)
    assert distance_to_end(automaton)[automaton.start] == total_weight(automaton)


def test_expectation_of_a_value():
    """Probability and probability times length: two paths with 0.3 and 0.7."""
    arcs = [(0, "a", "a", (0.3, 0.3 * 1.0), 2), (0, "b", "b", (0.7, 0.7 * 2.0), 1), (1, "b", "b", (1.0, 3.0), 2)]
    p, r = total_weight(Automaton.from_arcs(arcs, [2], EXPECTATION))
    assert (p, r) == pytest.approx((1.0, 0.3 * 1.0 + 0.7 * 5.0))


@lean
@given(data=st.data())
def test_conversions(data):
    """Minus logs and probabilities describe the same automaton."""
    automaton = data.draw(automata(LOG))
    probability = math.exp(-total_weight(automaton))
    assert total_weight(convert(automaton, PROBABILITY)) == pytest.approx(probability)
    assert total_weight(convert(automaton, EXPECTATION)) == pytest.approx((probability, 0.0))
    back = convert(convert(convert(automaton, EXPECTATION), PROBABILITY), LOG)
    assert_equal(relation(back), relation(automaton), LOG)
    assert convert(automaton, "tropical").semiring is TROPICAL


@every
@lean
@given(data=st.data())
def test_text_round_trip(semiring, data):
    """Every path and weight survives, by name and by number."""
    automaton = data.draw(automata(semiring))
    assert_equal(relation(from_att(to_att(automaton), semiring)), relation(automaton), semiring)
    symbols = symbol_table(automaton)
    assert symbols[EPSILON] == 0
    again = from_att(to_att(automaton, symbols), semiring, symbols)
    assert_equal(relation(again), relation(automaton), semiring)


def test_text_form():
    """The lines as OpenFst writes them; the start comes first wherever its number is."""
    automaton = Automaton.from_arcs([(1, "a", EPSILON, 0.5, 0)], {0: 2.0}, start=1)
    assert to_att(automaton) == "1\t0\ta\t<eps>\t0.5\n0\t2.0\n"
    assert symbols_to_text(symbol_table(automaton)) == "<eps>\t0\na\t1\n"
    assert from_att("2 0 x y\n\n0\n").start == 2
    assert to_att(Automaton()) == ""
    assert from_att("").n_states == 0


def test_drawing():
    """Labels, weights, the start in bold, final states doubled, quotes escaped."""
    text = to_dot(Automaton.from_arcs([(0, 'say "a"', "b", 0.5, 1), (0, "c", "c", 0.0, 1)], {1: 2.0}))
    assert '0 -> 1 [label = "say \\"a\\":b/0.5"];' in text
    assert '0 -> 1 [label = "c"];' in text
    assert '1 [label = "1/2", shape = doublecircle];' in text
    assert '0 [label = "0", style = bold];' in text


def test_cycles():
    """A geometric series; a cycle that costs nothing; one that does not converge."""
    loop = Automaton.from_arcs([(0, EPSILON, EPSILON, 0.5, 0), (0, "a", "a", 1.0, 1)], [1], PROBABILITY)
    assert total_weight(loop) == pytest.approx(2.0)
    assert relation(remove_epsilons(loop))[("a",), ("a",)] == pytest.approx(2.0)
    free = Automaton.from_arcs([(0, EPSILON, EPSILON, 0.0, 0), (0, "a", "a", 1.0, 1)], [1])
    assert shortest_path(free).weight == 1.0
    with pytest.raises(InputError, match="does not converge in the probability"):
        total_weight(Automaton.from_arcs([(0, "a", "a", 1.0, 0)], [0], PROBABILITY))
    with pytest.raises(InputError, match="does not converge in the tropical"):
        total_weight(Automaton.from_arcs([(0, "a", "a", -1.0, 0)], [0]))


def test_empty_automata():
    """What accepts nothing stays empty."""
    nothing = Automaton()
    dead = Automaton.from_arcs([(0, "a", "a", 0.0, 1)], [])
    some = Automaton.from_labels("ab")
    for automaton in (nothing, dead):
        assert connect(automaton).n_states == 0
        assert compose(automaton, some).n_states == 0
        assert determinise(automaton).n_states == 0
        assert push(automaton).n_states == 0
        assert shortest_path(automaton) is None
        assert total_weight(automaton) == math.inf
        assert relation(union(automaton, some)) == relation(some)
    assert [path.weight for path in Automaton.from_labels("a" * 5_000).paths()] == [0.0]  # no deep recursion
    assert list(Automaton.from_labels("").paths()) == [((), (), 0.0)]


def test_errors():
    """Each says what was expected."""
    pair = Automaton.from_arcs([(0, "a", "b", 0.0, 1)], [1])
    cycle = Automaton.from_arcs([(0, "a", "a", 1.0, 0)], [0])
    with pytest.raises(InputError, match="not a transducer: project"):
        determinise(pair)
    with pytest.raises(InputError, match="acyclic"):
        determinise(cycle)
    with pytest.raises(InputError, match="acyclic"):
        list(cycle.paths())
    with pytest.raises(InputError, match="use compose"):
        intersect(pair, cycle)
    with pytest.raises(InputError, match="one semiring, got tropical and log"):
        compose(cycle, convert(cycle, LOG))
    with pytest.raises(InputError, match="tropical semiring, got log"):
        n_shortest(convert(pair, LOG), 1)
    with pytest.raises(InputError, match="n must be at least 1"):
        n_shortest(pair, 0)
    with pytest.raises(InputError, match=r'side must be "input" or "output"'):
        project(pair, "left")
    with pytest.raises(InputError, match="semiring must be one of log"):
        get_semiring("boolean")
    with pytest.raises(InputError, match="State 7 does not exist"):
        pair.add_arc(0, "a", "a", 0.0, 7)
    for weight in ["x", (1.0, 2.0), math.nan, -math.inf, None]:
        with pytest.raises(InputError, match="weight of the tropical semiring is a number"):
            pair.add_arc(0, "a", "a", weight, 1)
    with pytest.raises(InputError, match="cannot divide"):
        push(Automaton.from_arcs([(0, "a", "a", (0.0, 1.0), 1)], [1], EXPECTATION))
    with pytest.raises(InputError, match="pair of numbers"):
        Automaton.from_arcs([(0, "a", "a", 1.0, 1)], [1], EXPECTATION)
    for text, message in [("0 1 a\n", "Line 1: expected"), ("0 x a b\n", "Line 1: .* number of a state")]:
        with pytest.raises(InputError, match=message):
            from_att(text)
    with pytest.raises(InputError, match="Line 2: expected a weight"):
        from_att("0 1 a b\n1 heavy\n")
    with pytest.raises(InputError, match="white space"):
        to_att(Automaton.from_labels(["New York"]))
    with pytest.raises(InputError, match="not in the symbol table"):
        to_att(pair, {EPSILON: 0})


def test_budgets():
    """Determinisation and composition stop at their budgets and name them."""
    rng = np.random.default_rng(0)
    arcs = [(t, "ab"[b], "ab"[b], float(rng.random()), t + 1) for t in range(12) for b in (0, 1, 0, 1)]
    arcs += [(t, "ab"[b], "ab"[b], float(rng.random()), 13 + t + 1) for t in range(12) for b in (0, 1)]
    arcs += [(13 + t, "ab"[b], "ab"[b], float(rng.random()), 13 + t + 1) for t in range(1, 12) for b in (0, 1)]
    wide = Automaton.from_arcs(arcs, [12, 25], LOG)
    with pytest.raises(BudgetError, match="max_states=50"):
        determinise(wide, max_states=50)
    with pytest.raises(BudgetError, match="max_states=5"):
        compose(wide, wide, max_states=5)
