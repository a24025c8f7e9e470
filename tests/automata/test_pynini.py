"""Automata against OpenFst through pynini, in double precision, on random automata."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vcrf.automata import (
    EPSILON,
    LOG,
    TROPICAL,
    Automaton,
    compose,
    connect,
    determinise,
    distance_from_start,
    distance_to_end,
    from_att,
    intersect,
    invert,
    n_shortest,
    project,
    push,
    remove_epsilons,
    shortest_path,
    to_att,
    total_weight,
    union,
)

pynini = pytest.importorskip("pynini")
pywrapfst = pytest.importorskip("pywrapfst")

# pynini has the tropical semiring in single precision only.
ARC_TYPES = {LOG: ("log64", 1e-9), TROPICAL: ("standard", 1e-5)}
N_CASES = 25
both = pytest.mark.parametrize("semiring", [LOG, TROPICAL], ids=str)


def random_automaton(rng, semiring, n_states=5, n_arcs=9, labels=(1, 2, 3), epsilons=0.2, acyclic=True, pair=True):
    """Return a random transducer, or automaton without `pair`; weights are multiples of 1/8."""
    arcs = []
    for _ in range(n_arcs):
        source, to = sorted(rng.choice(n_states, 2, replace=False)) if acyclic else rng.integers(n_states, size=2)
        read, write = (EPSILON if rng.random() < epsilons else int(rng.choice(labels)) for _ in range(2))
        # Cycles must converge in the log semiring: each arc has a probability below 1/n_arcs.
        weight = float(rng.integers(0, 40)) / 8 + (0.0 if acyclic else math.log(4 * n_arcs))
        arcs.append((int(source), read, write if pair else read, weight, int(to)))
    final = {int(state): float(rng.integers(0, 16)) / 8 for state in rng.choice(n_states, 2, replace=False)}
    return Automaton.from_arcs(arcs, final | {n_states - 1: 0.5}, semiring)


def to_pynini(automaton):
    """Return pynini's copy; labels are positive integers, epsilon is 0."""
    arc_type, _ = ARC_TYPES[automaton.semiring]
    fst = pynini.Fst(arc_type=arc_type)
    for _ in range(automaton.n_states):
        fst.add_state()
    if automaton.start >= 0:
        fst.set_start(automaton.start)
    for state, arc in automaton.all_arcs():
        read, write = (0 if label == EPSILON else label for label in (arc.input, arc.output))
        fst.add_arc(state, pynini.Arc(read, write, pynini.Weight(fst.weight_type(), arc.weight), arc.to))
    for state, weight in automaton.final.items():
        fst.set_final(state, pynini.Weight(fst.weight_type(), weight))
    return fst


def from_pynini(fst, semiring):
    """Return our copy of pynini's automaton."""
    made = Automaton(semiring)
    for _ in fst.states():
        made.add_state()
    made.start = fst.start()
    for state in fst.states():
        for arc in fst.arcs(state):
            read, write = (EPSILON if label == 0 else label for label in (arc.ilabel, arc.olabel))
            made.add_arc(state, read, write, float(arc.weight), arc.nextstate)
        weight = float(fst.final(state))
        if weight < math.inf:
            made.set_final(state, weight)
    return made


def relation(automaton):
    """Return {(inputs, outputs): summed weight} of an acyclic automaton."""
    found = {}
    for path in automaton.paths():
        key = path.inputs, path.outputs
        found[key] = automaton.semiring.plus(found.get(key, automaton.semiring.zero), path.weight)
    return found


def assert_same(ours, theirs, semiring):
    """Assert that both accept the same pairs with the same weights."""
    expected = relation(from_pynini(theirs, semiring))
    got = relation(ours)
    assert got.keys() == expected.keys()
    for key, weight in expected.items():
        assert got[key] == pytest.approx(weight, abs=ARC_TYPES[semiring][1], rel=1e-5)


def cases(seed, semiring, **settings):
    """Yield random automata."""
    rng = np.random.default_rng(seed)
    for _ in range(N_CASES):
        yield random_automaton(rng, semiring, **settings)


@both
def test_composition(semiring, seed):
    """Pairs of transducers with epsilons on both sides: no path counts twice, none is lost."""
    n_pairs = 0
    for first, second in zip(cases(seed, semiring), cases(seed + 1, semiring), strict=True):
        theirs = pynini.compose(to_pynini(first).arcsort("olabel"), to_pynini(second))
        assert_same(compose(first, second), theirs, semiring)
        n_pairs += len(relation(compose(first, second)))
    assert n_pairs > 20  # the cases are not empty


@both
def test_intersection(semiring, seed):
    """Automata without outputs."""
    settings = {"pair": False, "labels": (1, 2), "epsilons": 0.0}
    for first, second in zip(cases(seed, semiring, **settings), cases(seed + 1, semiring, **settings), strict=True):
        theirs = pynini.intersect(to_pynini(first).arcsort("olabel"), to_pynini(second))
        assert_same(intersect(first, second), theirs, semiring)


@both
def test_simple_operations(semiring, seed):
    """Union, inversion, projection, connection, removal of epsilons, pushing."""
    for first, second in zip(cases(seed, semiring), cases(seed + 1, semiring), strict=True):
        fst = to_pynini(first)
        assert_same(union(first, second), pynini.union(fst, to_pynini(second)), semiring)
        assert_same(invert(first), pynini.invert(fst), semiring)
        assert_same(project(first, "input"), pynini.project(fst, "input"), semiring)
        assert_same(project(first, "output"), pynini.project(fst, "output"), semiring)
        connected = fst.copy().connect()
        assert (connect(first).n_states, connect(first).n_arcs) == (connected.num_states(), count_arcs(connected))
        bare = remove_epsilons(first)
        assert not bare.has_epsilons
        assert_same(bare, pynini.rmepsilon(fst), semiring)
        assert_same(
            push(first), pynini.push(fst.copy().connect(), push_weights=True, reweight_type="to_initial"), semiring
        )


def count_arcs(fst):
    """Return the number of arcs."""
    return sum(fst.num_arcs(state) for state in fst.states())


@both
def test_pushed_states_sum_to_one(semiring, seed):
    """After pushing, the paths from every state but the start sum to one."""
    for automaton in cases(seed, semiring):
        pushed = push(automaton)
        to_end = distance_to_end(pushed)
        assert [w for s, w in enumerate(to_end) if s != pushed.start] == pytest.approx(
            [0.0] * (pushed.n_states - 1), abs=1e-9
        )
        assert total_weight(pushed) == pytest.approx(total_weight(automaton), abs=1e-9)


@both
def test_determinisation(semiring, seed):
    """Deterministic, and the same weights; epsilons are removed first."""
    for automaton in cases(seed, semiring, pair=False, labels=(1, 2), n_arcs=12):
        made = determinise(automaton)
        assert made.is_deterministic
        theirs = pynini.determinize(pynini.rmepsilon(to_pynini(automaton)), delta=1e-9)
        assert_same(made, theirs, semiring)
        assert made.n_states == theirs.num_states()


@both
@pytest.mark.parametrize("acyclic", [True, False], ids=["acyclic", "cyclic"])
def test_shortest_distance(semiring, acyclic, seed):
    """From the start and to the end, with and without cycles."""
    tolerance = max(ARC_TYPES[semiring][1], 1e-7)
    for automaton in cases(seed, semiring, acyclic=acyclic):
        fst = to_pynini(automaton)
        for ours, reverse in [(distance_from_start(automaton), False), (distance_to_end(automaton), True)]:
            theirs = [float(weight) for weight in pynini.shortestdistance(fst, reverse=reverse, delta=1e-12)]
            theirs += [math.inf] * (automaton.n_states - len(theirs))
            assert ours == pytest.approx(theirs, abs=tolerance)


@pytest.mark.parametrize("acyclic", [True, False], ids=["acyclic", "cyclic"])
def test_shortest_paths(acyclic, seed):
    """The costs of the best, the n best paths, and the n best sequences."""
    for automaton in cases(seed, TROPICAL, acyclic=acyclic, pair=False, n_arcs=12):
        fst = to_pynini(automaton)
        for n in (1, 4):
            best = pynini.shortestpath(fst, nshortest=n)
            expected = sorted(path.weight for path in from_pynini(best, TROPICAL).paths())
            assert [path.weight for path in n_shortest(automaton, n)] == pytest.approx(expected, abs=1e-5)
        first = shortest_path(automaton)
        assert (first.weight if first else math.inf) == pytest.approx(total_weight(automaton), abs=1e-5)
        if acyclic:
            unique = n_shortest(automaton, 3, unique=True)
            expected = sorted(relation(automaton).values())[:3]
            assert [path.weight for path in unique] == pytest.approx(expected, abs=1e-9)
            assert len({path.inputs for path in unique}) == len(unique)


@both
def test_att_text_is_read_by_openfst(semiring, seed):
    """OpenFst compiles our text into the same automaton, and we read what it prints."""
    for automaton in cases(seed, semiring):
        arc_type, _ = ARC_TYPES[semiring]
        compiler = pywrapfst.Compiler(arc_type=arc_type)
        numbers = {EPSILON: 0, 1: 1, 2: 2, 3: 3}
        compiler.write(to_att(automaton, numbers))
        compiled = compiler.compile()
        assert_same(automaton, compiled, semiring)
        again = from_att(compiled.print(), semiring, numbers)
        assert_same(again, compiled, semiring)
