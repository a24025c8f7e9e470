"""Every loss: path costs of its automaton are the loss for every sequence; its bound holds; errors are clear."""

# ruff: noqa: ARG005 (each row of the table of losses takes the same arguments)

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import oracles
import task_losses
from vcrf.errors import BudgetError, InputError
from vcrf.losses import (
    AlignedNgramLoss,
    ClippedNgramLoss,
    EditLoss,
    HammingLoss,
    IndefiniteLossWarning,
    Loss,
    LossAutomaton,
    MarkovLoss,
    NgramCountLoss,
    SmithWatermanLoss,
    WeightedHammingLoss,
    ZeroOneLoss,
    get_loss,
)


def costs_of(n_labels):
    """Return an asymmetric cost matrix."""
    matrix = 0.5 + np.arange(n_labels * n_labels).reshape(n_labels, n_labels) % 5
    return matrix * (1 - np.eye(n_labels))


def insertions(n_labels):
    """Return a cost for each label, multiples of 1/4."""
    return 1 + np.arange(n_labels) / 4


def deletions(n_labels):
    """Return other costs for each label."""
    return 1.5 - np.arange(n_labels) / 4


def late_cost(t, window, reference):
    """Return a cost that grows with the position."""
    return (t + 1) * 0.1 * (window != reference)


def edit_costs(y, r, d):
    """Return the edit distance with the costs above."""
    matrix = costs_of(d).tolist()
    costs = (insertions(d).tolist().__getitem__, deletions(d).tolist().__getitem__, lambda a, b: matrix[a][b])
    return task_losses.edit_distance(y, r, *costs)


def log_ratio(y, r, n, kappa):
    """Return the rational n-gram loss."""
    own = task_losses.shared_ngrams(r, r, n)
    return np.log((own + kappa) / (min(task_losses.shared_ngrams(y, r, n), own) + kappa))


# name -> (the loss, its definition), both given the number of labels
LOSSES = {
    "hamming": (lambda d: HammingLoss(), lambda y, r, d: task_losses.hamming(y, r) / len(r)),
    "hamming count": (lambda d: HammingLoss(normalised=False), lambda y, r, d: task_losses.hamming(y, r)),
    "matrix": (
        lambda d: WeightedHammingLoss(costs_of(d), normalised=False),
        lambda y, r, d: task_losses.weighted(y, r, costs_of(d)),
    ),
    "matrix mean": (
        lambda d: WeightedHammingLoss(costs_of(d)),
        lambda y, r, d: task_losses.weighted(y, r, costs_of(d)) / len(r),
    ),
    "class weights": (
        lambda d: WeightedHammingLoss(np.arange(1.0, d + 1), normalised=False),
        lambda y, r, d: sum(b + 1 for a, b in zip(y, r, strict=True) if a != b),
    ),
    "ngram 1": (lambda d: AlignedNgramLoss(1), lambda y, r, d: task_losses.hamming(y, r) / len(r)),
    "ngram": (lambda d: AlignedNgramLoss(), lambda y, r, d: task_losses.aligned_ngram(y, r, 2) / len(r)),
    "ngram 3 count": (
        lambda d: AlignedNgramLoss(3, normalised=False),
        lambda y, r, d: task_losses.aligned_ngram(y, r, 3),
    ),
    "zero-one": (lambda d: ZeroOneLoss(), lambda y, r, d: task_losses.zero_one(y, r)),
    "markov": (
        lambda d: MarkovLoss(2, late_cost),
        lambda y, r, d: sum(
            late_cost(t, tuple(y[max(0, t - 1) : t + 1]), tuple(r[max(0, t - 1) : t + 1])) for t in range(len(r))
        ),
    ),
    "markov table": (
        lambda d: MarkovLoss(1, costs_of(d), normalised=True),
        lambda y, r, d: task_losses.weighted(y, r, costs_of(d)) / len(r),
    ),
    "ngram counts": (lambda d: NgramCountLoss(), lambda y, r, d: log_ratio(y, r, 2, 1.0)),
    "ngram counts 3": (lambda d: NgramCountLoss(3, 0.5), lambda y, r, d: log_ratio(y, r, 3, 0.5)),
    "unigram counts": (
        lambda d: NgramCountLoss(1, 0.5, normalised=True),
        lambda y, r, d: log_ratio(y, r, 1, 0.5) / np.log1p(task_losses.shared_ngrams(r, r, 1) / 0.5),
    ),
    "clipped 1": (lambda d: ClippedNgramLoss(1), lambda y, r, d: task_losses.clipped_ngrams(y, r, 1)),
    "clipped": (lambda d: ClippedNgramLoss(), lambda y, r, d: task_losses.clipped_ngrams(y, r, 2)),
    "edit": (lambda d: EditLoss(), lambda y, r, d: task_losses.edit_distance(y, r, band=1)),
    "edit full": (lambda d: EditLoss(band=None), lambda y, r, d: task_losses.edit_distance(y, r)),
    "edit share": (
        lambda d: EditLoss(band=2, normalised=True),
        lambda y, r, d: task_losses.edit_distance(y, r, band=2) / len(r),
    ),
    "edit cap": (lambda d: EditLoss(band=None, cap=2), lambda y, r, d: min(2, task_losses.edit_distance(y, r))),
    "edit costs": (lambda d: EditLoss(insertions(d), deletions(d), costs_of(d), band=None), edit_costs),
    "edit band 0": (lambda d: EditLoss(band=0), lambda y, r, d: task_losses.hamming(y, r)),
    "alignment": (
        lambda d: SmithWatermanLoss(),
        lambda y, r, d: 2 * len(r) - task_losses.local_alignment(y, r),
    ),
    "alignment share": (
        lambda d: SmithWatermanLoss(3.0, 1.0, 0.5, normalised=True),
        lambda y, r, d: 1 - task_losses.local_alignment(y, r, 3.0, 1.0, 0.5) / (3 * len(r)),
    ),
    "sum": (
        lambda d: AlignedNgramLoss() + 0.25 * ZeroOneLoss(),
        lambda y, r, d: task_losses.aligned_ngram(y, r, 2) / len(r) + 0.25 * task_losses.zero_one(y, r),
    ),
}


def cases(seed):
    """Yield (number of labels, reference): 2..4 labels, lengths 1..6, and a constant reference."""
    rng = np.random.default_rng(seed)
    for n_labels, length in [(2, 1), (2, 4), (2, 6), (3, 2), (3, 5), (4, 1), (4, 3), (4, 6)]:
        yield n_labels, rng.integers(n_labels, size=length)
    yield 3, np.ones(4, np.int64)


# Counts of runs do not see where they stand.
INDEFINITE = pytest.mark.filterwarnings("ignore::vcrf.losses.IndefiniteLossWarning")


@INDEFINITE
@pytest.mark.parametrize("name", LOSSES)
def test_path_costs_are_the_loss(name, seed):
    """For every label sequence: the automaton, the call and the definition agree; the bound holds."""
    make, definition = LOSSES[name]
    for n_labels, reference in cases(seed):
        loss = make(n_labels)
        sequences = oracles.all_sequences(len(reference), n_labels)
        expected = np.array([definition(y, reference.tolist(), n_labels) for y in sequences.tolist()])
        automaton = loss.automaton(reference, n_labels)
        np.testing.assert_allclose(automaton.path_costs(sequences), expected, atol=1e-12)
        np.testing.assert_allclose(automaton.with_values().path_costs(sequences), expected, atol=1e-12)
        sample = sequences[:: max(1, len(sequences) // 50)]
        np.testing.assert_allclose([loss(y, reference) for y in sample], expected[:: max(1, len(sequences) // 50)])
        assert automaton.largest() == pytest.approx(expected.max())
        assert automaton.least() == pytest.approx(0.0)
        assert expected.max() <= loss.bound(len(reference), n_labels) + 1e-12
        if name != "markov":
            assert loss.bound(len(reference)) == loss.bound(len(reference), n_labels)


@INDEFINITE
@pytest.mark.parametrize("name", LOSSES)
def test_automaton_is_pushed(name, seed):
    """Costs are not negative, nothing is left at the end, the reference is free: init is 0."""
    make, _ = LOSSES[name]
    for n_labels, reference in cases(seed):
        automaton = make(n_labels).automaton(reference, n_labels)
        assert automaton.init == pytest.approx(0.0)
        assert automaton.cost.min() >= 0.0
        assert not automaton.final.any()
        assert automaton.path_cost(reference) == pytest.approx(0.0)


@INDEFINITE
@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_copied_without_their_automata(name):
    """Clones and pickles give the same losses, small."""
    loss = LOSSES[name][0](3)
    loss.automaton([0, 1, 2, 1, 0, 1, 1, 2], 3)
    assert len(pickle.dumps(loss)) < 1_000
    for copied in [copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))]:
        assert copied([0, 1], [1, 1]) == loss([0, 1], [1, 1])


def test_automaton_is_cached():
    """The same reference gives the same object, another one does not."""
    loss = HammingLoss()
    first = loss.automaton([0, 1], 3)
    assert loss.automaton(np.array([0, 1]), 3) is first
    assert loss.automaton([0, 1], 4) is not first
    assert loss.automaton([1, 1], 3) is not first


@INDEFINITE
@pytest.mark.parametrize(
    ("loss", "n_states"),
    [
        (HammingLoss(), 6),
        (AlignedNgramLoss(), 10),
        (NgramCountLoss(kappa=1.0), 22),
        (EditLoss(band=None), 22),
        (EditLoss(), 22),
        (EditLoss(band=None, cap=2), 12),
        (SmithWatermanLoss(), 47),
        (ZeroOneLoss(), 10),
    ],
)
def test_golden_sizes(loss, n_states):
    """States of the minimal automata of one reference, computed by hand or by another program."""
    assert loss.automaton([0, 1, 2, 1, 0], 3).n_states == n_states


@pytest.mark.parametrize("loss", [HammingLoss(), AlignedNgramLoss(), ZeroOneLoss()])
def test_any_labels_where_only_equality_counts(loss):
    """Names, mixed types: the value depends on which are equal."""
    assert loss(["DET", "NOUN", None], ["DET", "VERB", None]) == loss([0, 1, 2], [0, 3, 2])


def test_empty_sequence():
    """A sentence without tokens has one label sequence, which is right."""
    for name in LOSSES:
        loss = LOSSES[name][0](3)
        automaton = loss.automaton([], 3)
        assert (automaton.length, automaton.n_states, automaton.path_cost([])) == (0, 1, 0.0)
        assert loss([], []) == 0.0


def test_named_costs():
    """Costs by label follow the order of the labels; what is not named costs 1."""
    loss = WeightedHammingLoss({"B": 5.0, ("A", "C"): 3.0}, normalised=False).for_labels(["A", "B", "C"])
    assert loss.matrix.tolist() == [[0, 5, 3], [1, 0, 1], [1, 5, 0]]
    assert loss([0, 0], [1, 2]) == 8.0


def test_get_loss():
    """Names give losses, losses and None pass."""
    assert get_loss(None) is None
    assert get_loss("hamming") == HammingLoss(normalised=True)
    assert get_loss("ngram") == AlignedNgramLoss(2)
    assert get_loss("ngram:n=3,normalised=False") == AlignedNgramLoss(3, normalised=False)
    assert repr(get_loss("edit:band=2, cap=3")) == repr(EditLoss(band=2, cap=3))
    for text in ["edit:bond=2", "edit:band=two", "edit:band"]:
        with pytest.raises(InputError, match="Cannot read the loss 'edit:"):
            get_loss(text)
    with pytest.raises(InputError, match=r"edit has no parameter bond: it has insertion, deletion, substitution, band"):
        get_loss("edit:bond=2")
    with pytest.raises(InputError, match="zero-one has no parameter n: it has none"):
        get_loss("zero-one:n=2")
    loss = ZeroOneLoss()
    assert get_loss(loss) is loss
    with pytest.raises(InputError, match="one of hamming"):
        get_loss("hinge")


def test_wrong_arguments():
    """Each message says what was expected."""
    with pytest.raises(InputError, match="equal length, got 2 labels for 3"):
        HammingLoss()([0, 1], [0, 1, 2])
    with pytest.raises(InputError, match="label 3, but n_labels is 3"):
        HammingLoss().automaton([0, 3], 3)
    with pytest.raises(InputError, match=r"labels from 0 on, got -1"):
        HammingLoss()([0, -1], [0, 1])
    with pytest.raises(InputError, match="needs numbers of labels"):
        WeightedHammingLoss([1.0, 2.0])(["A"], ["B"])
    with pytest.raises(InputError, match=r"needs numbers of labels.*'A'"):
        HammingLoss().automaton(["A"], 3)
    with pytest.raises(InputError, match="defined for 2 labels, got n_labels=3"):
        WeightedHammingLoss([1.0, 2.0]).automaton([0], 3)
    with pytest.raises(InputError, match="finite and at least 0, got -1"):
        WeightedHammingLoss([-1.0, 2.0]).automaton([0], 2)
    with pytest.raises(InputError, match="finite and at least 0, got inf"):
        WeightedHammingLoss([np.inf, 2.0]).automaton([0], 2)
    with pytest.raises(InputError, match=r"costs\[1, 1\] is 2"):
        WeightedHammingLoss(np.diag([0.0, 2.0])).automaton([0], 2)
    with pytest.raises(InputError, match="square matrix"):
        WeightedHammingLoss(np.ones((2, 3))).automaton([0], 2)
    with pytest.raises(InputError, match=r"for_labels"):
        WeightedHammingLoss({"A": 2.0}).automaton([0], 2)
    with pytest.raises(InputError, match="'C', which is not among the labels"):
        WeightedHammingLoss({"C": 2.0}).for_labels(["A", "B"]).automaton([0], 2)
    with pytest.raises(InputError, match="n must be a positive integer, got 0"):
        AlignedNgramLoss(0)
    with pytest.raises(InputError, match="factor of at least 0, got -1"):
        HammingLoss() * -1.0
    with pytest.raises(InputError, match=r"table .* needs 4 axes of equal length .* got shape \(2, 2\)"):
        MarkovLoss(2, np.zeros((2, 2)))
    with pytest.raises(InputError, match="pass n_labels"):
        MarkovLoss(1, late_cost).bound(3)
    with pytest.raises(InputError, match="pass largest="):
        MarkovLoss(3, late_cost).bound(20, 17)
    with pytest.raises(InputError, match=r"needs a positive number as kappa, got 0: .* infinite"):
        NgramCountLoss(kappa=0)
    with pytest.raises(InputError, match="match must be a positive number"):
        SmithWatermanLoss(match=0.0)
    with pytest.raises(InputError, match=r"different numbers of labels: \['2', '3'\]"):
        (WeightedHammingLoss([1.0, 1.0]) + WeightedHammingLoss([1.0, 1.0, 1.0])).automaton([0], 2)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (lambda t, a, b: np.inf * (a != b) if a != b else 0.0, "infinite or not a number"),
        (lambda t, a, b: np.nan, "infinite or not a number"),
        (lambda t, a, b: -float(a != b), "negative, -3, for some sequence"),
        (lambda t, a, b: 1.0, "3 for the reference itself"),
    ],
)
def test_what_is_no_loss_is_refused(cost, message):
    """Infinite, undefined, negative, or not 0 at the truth: a clear error."""
    with pytest.raises(InputError, match=message):
        MarkovLoss(1, cost).automaton([0, 1, 0], 2)


def test_an_indefinite_loss_warns_once():
    """A wrong sequence that is free: a warning with the remedy, which works."""
    loss = NgramCountLoss(1)
    with pytest.warns(IndefiniteLossWarning, match=r"\+ 0.01 \* HammingLoss"):
        loss.automaton([0, 1], 2)
    loss.automaton([1, 0], 2)
    mended = loss + 0.01 * HammingLoss()
    assert mended.automaton([0, 1], 2).n_zero_paths() == 1


def test_budgets_name_the_knob():
    """Too many states: the error says so before memory is spent, and names what to change."""
    reference = np.arange(40) % 9
    with pytest.raises(BudgetError, match=r"max_states=50000 .* up to 10 labels"):
        ClippedNgramLoss(1).automaton(reference, 9)
    with pytest.raises(BudgetError, match=r"max_states=50000 .* up to 10 labels"):
        ClippedNgramLoss(2).automaton(np.arange(60) ** 2 % 61, 61)
    with pytest.raises(BudgetError, match=r"max_states=1000 .* raise max_states"):
        NgramCountLoss(max_states=1_000).automaton(reference, 9)
    with pytest.raises(BudgetError, match="lower order"):
        MarkovLoss(8, late_cost).automaton(reference, 9)
    with pytest.raises(BudgetError, match="max_states=10"):
        EditLoss().automaton(reference, 9).with_values(max_states=10)


def test_cache_has_a_limit(monkeypatch):
    """The oldest automata go first."""
    loss = HammingLoss()
    size = loss.automaton([0, 1], 2).n_bytes
    monkeypatch.setattr("vcrf.losses.loss._CACHE_BYTES", 3 * size)
    kept = [loss.automaton([a, b], 2) for a in (0, 1) for b in (0, 1)]
    assert loss.automaton([1, 1], 2) is kept[3]
    assert loss.automaton([0, 1], 2) is not kept[1]


def test_automaton_as_a_tropical_automaton():
    """The same costs for other tools, a constant included."""
    automaton = EditLoss().automaton([0, 1, 2], 3)
    shifted = LossAutomaton(3, automaton.state_ptr, automaton.next, automaton.cost, automaton.final, 0.5)
    for made, extra in [(automaton.to_automaton("xyz"), 0.0), (shifted.to_automaton("xyz"), 0.5)]:
        costs = {path.inputs: path.weight for path in made.paths()}
        assert len(costs) == 27
        assert all(
            weight == automaton.path_cost(["xyz".index(b) for b in labels]) + extra for labels, weight in costs.items()
        )


def test_wrong_paths():
    """Sequences of another length, labels that are not there, arrays that do not fit."""
    automaton = HammingLoss().automaton([0, 1], 2)
    with pytest.raises(InputError, match="sequences of 2 labels, got 3"):
        automaton.path_cost([0, 1, 1])
    with pytest.raises(InputError, match=r"labels 0 \.\. 1, got 0 \.\. 2"):
        automaton.path_costs([[0, 2]])
    with pytest.raises(InputError, match="lengths or numbers of labels differ"):
        automaton.plus(HammingLoss().automaton([0], 2))
    with pytest.raises(InputError, match="needs next and cost of shape"):
        LossAutomaton(3, automaton.state_ptr, automaton.next, automaton.cost, automaton.final)
    with pytest.raises(InputError, match="one state in layer 0"):
        LossAutomaton(2, np.array([0, 2]), np.empty((0, 2), np.int64), np.empty((0, 2)), np.zeros(2))


def test_losses_do_not_wait_for_numba():
    """Importing the losses imports no compiler."""
    import subprocess
    import sys

    code = "import sys, vcrf.losses; sys.exit(any(name in sys.modules for name in ('numba', 'scipy', 'sklearn')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_base_class_is_a_loss():
    """A user's loss derives from Loss."""
    assert isinstance(HammingLoss(), Loss)
