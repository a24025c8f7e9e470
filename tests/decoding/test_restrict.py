"""Decoding under drawn constraints against enumeration of every label sequence, at orders 1 to 4."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
import strategies
from vcrf.decoding.constraints import AllowedMoves
from vcrf.decoding.potentials import Potentials
from vcrf.decoding.probability import Event, log_probabilities
from vcrf.decoding.restrict import allowed_masks, restrict
from vcrf.errors import InputError

Bools = np.ndarray


@st.composite
def restricted(draw: st.DrawFn) -> tuple[Potentials, AllowedMoves, Bools]:
    """Potentials with drawn moves and masks, from nearly free to nearly impossible."""
    scores = draw(strategies.potentials())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = draw(st.sampled_from([0.5, 0.8, 0.95]))
    n = scores.n_labels
    moves = AllowedMoves(rng.random(n) < share, rng.random(n) < share, rng.random((n, n)) < share)
    if draw(st.booleans()):
        moves = moves._replace(pairs=np.ones((n, n), bool))  # at order 1 nothing raises the order then
    return scores, moves, rng.random(scores.node.shape) < share


def allowed_sequences(n_positions: int, moves: AllowedMoves, masks: Bools, is_whole: bool = True) -> Bools:
    """Which label sequences of one sentence, or of its beginning, the constraints allow."""
    sequences = oracles.all_sequences(n_positions, len(moves.first))
    allowed = np.ones(len(sequences), bool)
    for t in range(n_positions):
        allowed &= masks[t, sequences[:, t]]
        if t == 0:
            allowed &= moves.first[sequences[:, 0]]
        else:
            allowed &= moves.pairs[sequences[:, t - 1], sequences[:, t]]
        if t == n_positions - 1 and is_whole:
            allowed &= moves.last[sequences[:, t]]
    return allowed


def dead_end(scores: Potentials, moves: AllowedMoves, masks: Bools) -> tuple[int, int] | None:
    """First sentence without an allowed sequence and the token that none gets past."""
    for i in range(len(scores)):
        first, last = scores.sent_ptr[i : i + 2]
        for t in range(last - first):
            is_whole = t == last - first - 1
            if not allowed_sequences(t + 1, moves, masks[first : first + t + 1], is_whole).any():
                return i, t
    return None


@given(restricted(), st.integers(1, 6))
def test_everything_agrees_with_enumeration(drawn: tuple[Potentials, AllowedMoves, Bools], k: int) -> None:
    """Best sequence (ties by labels), k best, partition function and marginals of the allowed sequences."""
    scores, moves, masks = drawn
    expected_end = dead_end(scores, moves, masks)
    if expected_end is not None:
        with pytest.raises(InputError, match=rf"Sentence {expected_end[0] + 7}: .* past token {expected_end[1]} "):
            restrict(scores, moves, masks, first_sentence=7)
        return
    check_all(restrict(scores, moves, masks), scores, moves, masks, k)


def check_all(found: Potentials, scores: Potentials, moves: AllowedMoves, masks: Bools, k: int) -> None:
    """Everything about the restricted scores is that of the allowed sequences."""
    decoded, marginals, log_z = found.decode(), found.label_marginals(), found.log_partitions()
    for i in range(len(scores)):
        first, last = scores.sent_ptr[i : i + 2]
        n = int(last - first)
        allowed = allowed_sequences(n, moves, masks[first:last])
        expected = np.where(allowed, oracles.potentials_scores(scores, i), -np.inf)
        sequences = oracles.all_sequences(n, scores.n_labels)
        assert decoded[i].tolist() == sequences[oracles.best(expected)].tolist()
        assert log_z[i] == pytest.approx(oracles.log_partition(expected), rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(
            marginals[i], oracles.pattern_marginals(expected, n, scores.n_labels, 1), rtol=1e-9, atol=1e-12
        )
        is_possible = oracles.pattern_marginals(np.where(allowed, 0.0, -np.inf), n, scores.n_labels, 1) > 0.0
        assert np.all(marginals[i][~is_possible] == 0.0)  # exactly
        best, values = found.lattice(i).kbest(k)
        ranks = oracles.kbest(expected, k)
        assert best.tolist() == sequences[ranks].tolist()
        np.testing.assert_allclose(values, expected[ranks], atol=1e-9)


@given(restricted(), st.integers(0, 2**32 - 1), st.sampled_from([0.3, 0.7]))
def test_what_is_preferred_holds_where_something_is_left(
    drawn: tuple[Potentials, AllowedMoves, Bools], seed: int, share: float
) -> None:
    """Sentence by sentence: preferred labels alone if they have a sequence, else all that are allowed."""
    scores, moves, masks = drawn
    preferred = np.random.default_rng(seed).random(masks.shape) < share
    expected = masks.copy()
    for i in range(len(scores)):
        first, last = scores.sent_ptr[i : i + 2]
        both = masks[first:last] & preferred[first:last]
        if allowed_sequences(int(last - first), moves, both).any():
            expected[first:last] = both
    end = dead_end(scores, moves, expected)
    if end is not None:
        with pytest.raises(InputError, match=rf"Sentence {end[0] + 7}: .* past token {end[1]} "):
            restrict(scores, moves, masks, 7, preferred)
        return
    check_all(restrict(scores, moves, masks, preferred=preferred), scores, moves, expected, 3)


@given(restricted(), st.data())
def test_probability_of_events_by_enumeration(
    drawn: tuple[Potentials, AllowedMoves, Bools], data: st.DataObject
) -> None:
    """P(labels of some tokens lie in given sets | constraints), possible or not."""
    scores, moves, masks = drawn
    if dead_end(scores, moves, masks) is not None:
        return
    found = restrict(scores, moves, masks)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    events = []
    for _ in range(data.draw(st.integers(0, 6))):
        i = int(rng.integers(len(scores)))
        n = int(scores.sent_ptr[i + 1] - scores.sent_ptr[i])
        first = int(rng.integers(n + 1))
        size = int(rng.integers(n - first + 1))
        events.append(Event(i, first, rng.random((size, scores.n_labels)) < 0.5))
    probabilities = np.exp(log_probabilities(found, events))
    assert probabilities.shape == (len(events),)
    for event, probability in zip(events, probabilities, strict=True):
        start, stop = scores.sent_ptr[event.sentence : event.sentence + 2]
        allowed = allowed_sequences(stop - start, moves, masks[start:stop])
        expected = np.where(allowed, oracles.potentials_scores(scores, event.sentence), -np.inf)
        sequences = oracles.all_sequences(stop - start, scores.n_labels)
        inside = np.ones(len(sequences), bool)
        for t, mask in enumerate(event.masks):
            inside &= mask[sequences[:, event.first + t]]
        assert probability == pytest.approx(oracles.probabilities(expected)[inside].sum(), rel=1e-9, abs=1e-12)


@given(strategies.potentials(), st.data())
def test_taken_sentences_score_as_before(scores: Potentials, data: st.DataObject) -> None:
    """In any order, some twice, some not at all."""
    chosen = data.draw(st.lists(st.integers(0, len(scores) - 1), max_size=5))
    taken = scores.take(np.array(chosen, np.int64))
    assert len(taken) == len(chosen)
    for j, i in enumerate(chosen):
        np.testing.assert_array_equal(oracles.potentials_scores(taken, j), oracles.potentials_scores(scores, i))


def test_masks_from_labels() -> None:
    """None allows all, a label itself, a collection its members; a sentence may be None as a whole."""
    found = allowed_masks([[None, "B", {"A", "C"}], None, [], [("B", "unknown")]], [3, 2, 0, 1], ["A", "B", "C"])
    assert found.masks.astype(int).tolist() == [[1, 1, 1], [0, 1, 0], [1, 0, 1], [1, 1, 1], [1, 1, 1], [0, 1, 0]]
    assert found.is_given.astype(int).tolist() == [0, 1, 1, 0, 0, 1]
    found = allowed_masks([[1, {0}, {0, 1}]], [3], [0, 1])
    assert found.masks.astype(int).tolist() == [[0, 1], [1, 0], [1, 1]]
    assert found.is_given.all()


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        ([["A"]], "Sentence 4: allowed needs one entry a token, got 1 for 2 tokens"),
        (["AB"], "Sentence 4: allowed needs None or one entry a token, got 'AB'"),
        (
            [[None, "X"]],
            "Sentence 4, token 1: allowed must name a label that the model has, got 'X'. Its labels are A, B",
        ),
        ([[None, set()]], "Sentence 4, token 1: allowed must name a label"),
        ([[None, 1.5]], "Sentence 4, token 1: allowed is None, a label or a set of labels, got 1.5"),
    ],
)
def test_wrong_masks_are_named(allowed: list[object], message: str) -> None:
    """With sentence and token."""
    with pytest.raises(InputError, match=message):
        allowed_masks(allowed, [2], ["A", "B"], first=4)
