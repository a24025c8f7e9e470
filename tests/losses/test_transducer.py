"""Transducers as losses: against the built-in losses, against pynini's determinisation, and their errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import oracles
from vcrf.automata import EPSILON, EXPECTATION, LOG, PROBABILITY, TROPICAL, Automaton, convert
from vcrf.errors import BudgetError, InputError
from vcrf.losses import EditLoss, IndefiniteLossWarning, NgramCountLoss, TransducerLoss

pynini = pytest.importorskip("pynini")

INDEFINITE = pytest.mark.filterwarnings("ignore::vcrf.losses.IndefiniteLossWarning")


def edit_transducer(labels, insertion=1.0, deletion=1.0, substitution=1.0, semiring=TROPICAL):
    """Return the transducer of the edit distance: one state."""
    arcs = [(0, a, b, 0.0 if a == b else substitution, 0) for a in labels for b in labels]
    arcs += [(0, a, EPSILON, deletion, 0) for a in labels] + [(0, EPSILON, a, insertion, 0) for a in labels]
    return Automaton.from_arcs(arcs, [0], semiring)


def bigram_transducer(labels):
    """Return the transducer that counts pairs of equal bigrams: skip, skip, match two labels, skip, skip."""
    arcs = [(0, EPSILON, EPSILON, 1.0, 1), (3, EPSILON, EPSILON, 1.0, 4)]
    for a in labels:
        arcs += [(0, a, EPSILON, 1.0, 0), (1, EPSILON, a, 1.0, 1), (1, a, a, 1.0, 2)]
        arcs += [(2, a, a, 1.0, 3), (3, a, EPSILON, 1.0, 3), (4, EPSILON, a, 1.0, 4)]
    return Automaton.from_arcs(arcs, [4], PROBABILITY)


def random_transducer(rng, n_labels, semiring, n_states=2, n_extra=10):
    """Return a transducer that accepts every pair of equal length; weights are multiples of 1/4."""
    labels = range(n_labels)
    arcs = [(q, a, b, 0.25 * rng.integers(1, 9), q) for q in range(n_states) for a in labels for b in labels]
    for _ in range(n_extra):
        read, write = (int(b) if b < n_labels else EPSILON for b in rng.integers(n_labels + 1, size=2))
        source, to = sorted(rng.integers(n_states, size=2).tolist())
        if read != EPSILON or write != EPSILON or source < to:
            arcs.append((source, read, write, 0.25 * rng.integers(1, 9), to))
    return Automaton.from_arcs(arcs, {q: 0.25 * rng.integers(1, 5) for q in range(n_states)}, semiring)


def test_tropical_transducer_is_edit_distance(seed):
    """Composition and determinisation give the automaton of the full distance, minimal too."""
    rng = np.random.default_rng(seed)
    for n_labels, length in [(2, 5), (3, 4), (4, 3), (3, 0)]:
        reference = rng.integers(n_labels, size=length)
        ours = TransducerLoss(edit_transducer(range(n_labels), 1.0, 0.75, 1.25)).automaton(reference, n_labels)
        expected = EditLoss(1.0, 0.75, 1.25, band=None).automaton(reference, n_labels)
        sequences = oracles.all_sequences(length, n_labels)
        np.testing.assert_allclose(ours.path_costs(sequences), expected.path_costs(sequences), atol=1e-12)
        assert ours.n_states == expected.n_states


@INDEFINITE
@pytest.mark.parametrize("semiring", [PROBABILITY, LOG], ids=str)
def test_counting_transducer_is_the_rational_loss(semiring, seed):
    """Sums over paths, in both semirings that have them."""
    rng = np.random.default_rng(seed)
    for n_labels, length in [(2, 5), (3, 5), (4, 4)]:
        reference = rng.integers(n_labels, size=length)
        loss = TransducerLoss(convert(bigram_transducer(range(n_labels)), semiring), kappa=0.5)
        ours = loss.automaton(reference, n_labels)
        expected = NgramCountLoss(2, 0.5).automaton(reference, n_labels)
        sequences = oracles.all_sequences(length, n_labels)
        np.testing.assert_allclose(ours.path_costs(sequences), expected.path_costs(sequences), atol=1e-7)
        np.testing.assert_allclose(loss(sequences[7], reference), expected.path_cost(sequences[7]), atol=1e-7)


def pynini_weights(transducer, reference, n_labels):
    """Return {candidate: weight} by OpenFst: compose, project, remove epsilons, keep the length, determinise."""
    arc_type = "log64" if transducer.semiring is not TROPICAL else "standard"
    machine = convert(transducer, LOG) if transducer.semiring is not TROPICAL else transducer
    fst = pynini.Fst(arc_type=arc_type)
    for _ in range(machine.n_states):
        fst.add_state()
    fst.set_start(machine.start)
    for state, arc in machine.all_arcs():
        read, write = (0 if label == EPSILON else label + 1 for label in (arc.input, arc.output))
        fst.add_arc(state, pynini.Arc(read, write, pynini.Weight(fst.weight_type(), arc.weight), arc.to))
    for state, weight in machine.final.items():
        fst.set_final(state, pynini.Weight(fst.weight_type(), weight))
    lines = [chain([[int(b)] for b in reference], arc_type), chain([range(n_labels)] * len(reference), arc_type)]
    candidates = pynini.project(pynini.compose(fst.arcsort("olabel"), lines[0]), "input").rmepsilon()
    layered = pynini.intersect(candidates.arcsort("olabel"), lines[1])
    return paths_of(pynini.determinize(layered, delta=1e-9))


def chain(labels, arc_type):
    """Return pynini's automaton of sequences with one of the given labels at each position."""
    fst = pynini.Fst(arc_type=arc_type)
    states = [fst.add_state() for _ in range(len(labels) + 1)]
    fst.set_start(0)
    fst.set_final(states[-1])
    for t, choices in enumerate(labels):
        for b in choices:
            fst.add_arc(t, pynini.Arc(b + 1, b + 1, pynini.Weight.one(fst.weight_type()), t + 1))
    return fst


def paths_of(fst):
    """Return {labels: weight} of a deterministic automaton."""
    found, todo = {}, [(fst.start(), (), 0.0)]
    while todo:
        state, labels, weight = todo.pop()
        end = float(fst.final(state))
        if end < math.inf:
            assert labels not in found
            found[labels] = weight + end
        todo += [(a.nextstate, (*labels, a.ilabel - 1), weight + float(a.weight)) for a in fst.arcs(state)]
    return found


@pytest.mark.parametrize("semiring", [TROPICAL, PROBABILITY], ids=str)
def test_determinised_transducer_is_that_of_pynini(semiring, seed):
    """Random transducers with epsilons: every candidate has the weight that OpenFst gives it."""
    rng = np.random.default_rng(seed)
    for n_labels, length in [(2, 4), (3, 3), (3, 4), (4, 3)]:
        transducer = random_transducer(rng, n_labels, semiring)
        reference = rng.integers(n_labels, size=length)
        expected = pynini_weights(transducer, reference, n_labels)
        # The weight itself: a random transducer is no loss, so the last step is asked for directly.
        loss = TransducerLoss(transducer, function=None if semiring is TROPICAL else lambda weight, _: -np.log(weight))
        built = loss._automaton(reference, n_labels).minimal()
        sequences = oracles.all_sequences(length, n_labels)
        assert len(expected) == len(sequences)
        got = built.path_costs(sequences)
        # pynini gives weights with nine digits, and a path has up to ten of them; the definition is exact.
        np.testing.assert_allclose(got, [expected[tuple(y)] for y in sequences.tolist()], rtol=1e-6, atol=2e-8)
        np.testing.assert_allclose(got, [loss(y, reference) for y in sequences], rtol=1e-9, atol=1e-9)


def test_named_labels():
    """A transducer over names gets the estimator's labels."""
    loss = TransducerLoss(edit_transducer(["DET", "NOUN", "VERB"]), largest=2.0).for_labels(["DET", "NOUN", "VERB"])
    assert loss(["DET", "VERB"], ["DET", "NOUN"]) == 1.0
    assert loss.automaton([0, 1], 3).path_cost([0, 2]) == 1.0
    assert loss.bound(2, 3) == 2.0
    numbered = TransducerLoss(edit_transducer(range(3)))
    assert numbered.for_labels(["DET", "NOUN", "VERB"]) is numbered


def test_errors():
    """Nothing accepted, labels outside the alphabet, a loss that is infinite, negative or not 0 at the truth."""
    with pytest.raises(InputError, match="accepts nothing"):
        TransducerLoss(Automaton.from_arcs([(0, 0, 0, 0.0, 1)], []))
    edit = TransducerLoss(edit_transducer(range(2)))
    with pytest.raises(InputError, match="label 2 at position 1, outside the transducer's alphabet: it writes 0, 1"):
        edit.automaton([0, 2], 3)
    with pytest.raises(InputError, match="does not read 2"):
        edit.automaton([0, 1], 3)
    with pytest.raises(InputError, match="label 2 at position 0, outside"):
        edit([0], [2])
    only_equal = Automaton.from_arcs([(0, b, b, 0.0, 0) for b in range(2)], [0])
    with pytest.raises(InputError, match=r"infinite: it accepts no sequence .* position 1 of 2"):
        TransducerLoss(only_equal).automaton([0, 1], 2)
    with pytest.raises(InputError, match="infinite: the transducer does not accept this pair"):
        TransducerLoss(only_equal)([0], [1])
    short = Automaton.from_arcs([(0, b, b, 0.0, 1) for b in range(2)], [1])
    with pytest.raises(InputError, match="accepts no sequence for this reference"):
        TransducerLoss(short).automaton([0, 1], 2)
    gain = edit_transducer(range(2), substitution=-1.0)
    with pytest.raises(InputError, match="is negative, -2, for some sequence"):
        TransducerLoss(gain).automaton([0, 1], 2)
    offset = Automaton.from_arcs([(0, a, b, float(a != b), 0) for a in range(2) for b in range(2)], {0: 0.5})
    with pytest.raises(InputError, match=r"is 0.5 for the reference itself"):
        TransducerLoss(offset).automaton([0, 1], 2)
    with pytest.raises(InputError, match="got expectation"):
        TransducerLoss(convert(only_equal, EXPECTATION))
    with pytest.raises(InputError, match="pass largest="):
        edit.bound(3, 2)
    with pytest.raises(InputError, match="needs a positive number as kappa"):
        TransducerLoss(only_equal, kappa=0.0)
    with pytest.raises(InputError, match="function is for sums"):
        TransducerLoss(only_equal, function=max)
    with pytest.raises(InputError, match="infinite or not a number"):
        TransducerLoss(bigram_transducer(range(2)), function=lambda u, _: math.inf if u == 0 else 0.0).automaton(
            [0, 1], 2
        )


def test_budget_names_the_knob():
    """Too many states: the error says what to change, at once."""
    reference = np.arange(16) % 5
    with pytest.raises(BudgetError, match=r"max_states=1000 states at position .* Raise max_states"):
        TransducerLoss(edit_transducer(range(5)), max_states=1_000).automaton(reference, 5)
    with pytest.raises(BudgetError, match="max_states=50"):
        TransducerLoss(bigram_transducer(range(5)), max_states=50).automaton(reference, 5)


def test_indefinite_loss_warns():
    """A wrong sequence that costs nothing: once for each loss."""
    free = Automaton.from_arcs([(0, a, b, float(a != b and b == 0), 0) for a in range(2) for b in range(2)], [0])
    loss = TransducerLoss(free)
    with pytest.warns(IndefiniteLossWarning, match="0 for a sequence that differs"):
        loss.automaton([1, 1], 2)
    loss.automaton([0, 1], 2)  # silent: said before
