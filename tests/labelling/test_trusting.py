"""Calibrated taggers: what they show, accept and promise, and what they say when they cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vcrf import VCRF, load
from vcrf.data import Corpus, SyntheticLanguage
from vcrf.errors import InputError, NotFittedError
from vcrf.estimators.voting import vote
from vcrf.labelling.loading import load_tagger

LANGUAGE = SyntheticLanguage(n_labels=5, n_stems=60, mean_length=6.0)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """120 sentences to train on, 400 to calibrate, 200 to test."""
    return LANGUAGE.sample(720, seed=3)


@pytest.fixture(scope="module")
def plain(corpus: Corpus) -> VCRF:
    """A tagger that nobody has calibrated."""
    return VCRF(n_jobs=1).fit(corpus[:120].tokens, corpus[:120].labels)


@pytest.fixture(scope="module")
def tagger(corpus: Corpus) -> VCRF:
    """The same tagger, calibrated."""
    return VCRF(n_jobs=1).fit(*part(corpus, 0, 120)).calibrate(*part(corpus, 120, 520))


def part(corpus: Corpus, first: int, last: int) -> tuple[list[list[str]], list[list[str]]]:
    """Tokens and labels of some sentences."""
    return corpus.tokens[first:last], corpus.labels[first:last]


def test_calibration_keeps_labels_and_mends_probabilities(plain: VCRF, tagger: VCRF, corpus: Corpus) -> None:
    """The likelihood of new sentences is not worse, and the labels are the same."""
    X, y = part(corpus, 520, 720)
    assert tagger.predict(X) == plain.predict(X)
    found = tagger.model_.calibration
    assert found.log_likelihood[1] >= found.log_likelihood[0] - 0.02
    before, after = (np.mean(t.sequence_probability(X, y, log=True)) for t in (plain, tagger))
    assert after >= before - 0.02
    assert plain.model_.calibration is None


def test_shown_probabilities_are_at_the_calibration_temperature(plain: VCRF, tagger: VCRF, corpus: Corpus) -> None:
    """The ratio of two sequences' probabilities is that of the plain tagger to the power 1 / T."""
    sentence = [corpus.tokens[600]]
    (own,), (shown,) = plain.predict_kbest(sentence, 2), tagger.predict_kbest(sentence, 2)
    power = 1.0 / tagger.model_.calibration.calibration_temperature
    assert shown[1][1] / shown[0][1] == pytest.approx((own[1][1] / own[0][1]) ** power, rel=1e-9)


def test_what_is_kept_is_what_the_tagger_said(plain: VCRF, tagger: VCRF, corpus: Corpus) -> None:
    """Sureness, errors and true probabilities of the calibration sentences, against the plain tagger's answers."""
    X, y = part(corpus, 120, 520)
    found = tagger.model_.calibration
    rows = [row for sentence in plain.predict_marginals(X) for row in sentence]
    flat = [label for labels in y for label in labels]
    best = [label for labels in plain.predict(X) for label in labels]
    np.testing.assert_allclose(found.true_probability, [row[t] for row, t in zip(rows, flat, strict=True)], rtol=1e-5)
    np.testing.assert_allclose(found.sureness, [row[b] for row, b in zip(rows, best, strict=True)], rtol=1e-5)
    assert found.is_wrong.tolist() == [int(a != b) for a, b in zip(flat, best, strict=True)]
    np.testing.assert_allclose(found.sequence_probability, [k[0][1] for k in plain.predict_kbest(X, 1)], rtol=1e-5)


@pytest.mark.parametrize("unit", ["token", "sentence"])
def test_accepted_units_are_those_above_the_threshold(tagger: VCRF, plain: VCRF, corpus: Corpus, unit: str) -> None:
    """By the plain tagger's probabilities."""
    X, _ = part(corpus, 520, 720)
    found = tagger.predict_selective(X, 0.1, 0.9, unit=unit)
    assert found.acceptance.is_any, found.message
    if unit == "sentence":
        expected = [
            [k[0][1] >= found.acceptance.threshold] * len(x) for k, x in zip(plain.predict_kbest(X, 1), X, strict=True)
        ]
    else:
        rows, labels = plain.predict_marginals(X), plain.predict(X)
        expected = [
            [row[b] >= found.acceptance.threshold for row, b in zip(r, y, strict=True)]
            for r, y in zip(rows, labels, strict=True)
        ]
    assert found.accepted == expected
    assert found.labels == plain.predict(X)
    assert "confidence at most 10 % of them are wrong" in found.message


def test_wrong_shares_are_named(tagger: VCRF) -> None:
    """Also those that are no numbers."""
    for miss in ("a", None, 0.0, 1.0, True):
        with pytest.raises(InputError, match="`miss` must be a number between 0 and 1"):
            tagger.predict_sets([["a"]], miss=miss)


def test_labels_left_open_have_no_part_in_the_score(plain: VCRF, corpus: Corpus) -> None:
    """None and sets; without any other label there is nothing to count."""
    X, y = part(corpus, 520, 560)
    partial = [[None, frozenset(row[1:2]), *row[2:]][: len(row)] for row in y]
    kept = [(p, t) for ps, ts in zip(plain.predict(X), y, strict=True) for p, t in zip(ps[2:], ts[2:], strict=True)]
    assert plain.score(X, partial) == pytest.approx(np.mean([p == t for p, t in kept]))
    with pytest.raises(InputError, match="at least one token with a label"):
        plain.score(X[:1], [[None] * len(X[0])])


def test_sets_hold_what_they_promise(tagger: VCRF, corpus: Corpus) -> None:
    """The predicted label first; more labels for a stricter promise."""
    X, y = part(corpus, 520, 720)
    loose, strict = (tagger.predict_sets(X, miss) for miss in (0.2, 0.02))
    assert [[s[0] for s in sets] for sets in loose.sets] == tagger.predict(X)
    sizes = [np.mean([len(s) for sets in found.sets for s in sets]) for found in (loose, strict)]
    assert sizes[0] <= sizes[1]
    missed = [np.mean([t not in s for t, s in zip(*pair, strict=True)]) for pair in zip(y, strict.sets, strict=True)]
    assert np.mean(missed) <= 0.02 + 3 * np.std(missed) / np.sqrt(len(missed))
    whole = tagger.predict_sets(X, 0.1, unit="sentence")
    assert "share of sentences" in whole.message


def test_the_table_tells_how_promises_are_kept(tagger: VCRF, corpus: Corpus) -> None:
    """Rows for all pairs; shares and errors are those of the accepted tokens."""
    X, y = part(corpus, 520, 720)
    table = tagger.trust(X, y, max_errors=[0.1, 0.05], confidences=[0.9])
    assert [row.acceptance.max_error for row in table.rows] == [0.05, 0.1]
    row = table.rows[1]
    found = tagger.predict_selective(X, 0.1, 0.9)
    kept = [np.mean(a) for a in found.accepted]
    wrong = [
        np.mean([a and p != t for a, p, t in zip(*rows, strict=True)])
        for rows in zip(found.accepted, found.labels, y, strict=True)
    ]
    assert row.share == pytest.approx(np.mean(kept))
    assert row.error == pytest.approx(np.mean(wrong) / np.mean(kept))
    assert row.low <= row.error <= row.high


def test_pooled_promises_count_every_token_alike(tagger: VCRF, corpus: Corpus) -> None:
    """The error in the table is that of all accepted tokens; long sentences are never accepted."""
    X, y = part(corpus, 520, 720)
    found = tagger.predict_selective(X, 0.15, 0.9, average="pooled", longest=8)
    assert found.acceptance.is_any, found.message
    assert any(len(x) > 8 for x in X)
    assert not any(any(row) for row, x in zip(found.accepted, X, strict=True) if len(x) > 8)
    (row,) = tagger.trust(X, y, [0.15], [0.9], average="pooled", longest=8).rows
    flat = [
        (a, p != t) for rows in zip(found.accepted, found.labels, y, strict=True) for a, p, t in zip(*rows, strict=True)
    ]
    assert row.share == pytest.approx(np.mean([a for a, _ in flat]))
    assert row.error == pytest.approx(np.mean([w for a, w in flat if a]))
    # By default twice the mean length of the training sentences, which calibration has not seen.
    facts = tagger.model_.facts
    usual = tagger.acceptance(0.15, 0.9, average="pooled").longest
    assert 2 * facts.n_tokens / facts.n_sentences <= usual < 2 * facts.n_tokens / facts.n_sentences + 1
    # A sentence is one unit: both averages are the same.
    assert tagger.acceptance(0.1, unit="sentence", average="pooled") == tagger.acceptance(0.1, unit="sentence")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"average": "mean"}, "`average` must be"),
        ({"average": "pooled", "longest": 0}, "`longest` must be a positive integer"),
        ({"longest": 9}, "`longest` is for average='pooled'"),
        ({"average": "pooled", "unit": "sentence", "longest": 9}, "`longest` is for average='pooled'"),
        ({"average": "pooled", "unit": "span"}, "needs `longest`, the most spans"),
    ],
)
def test_averages_that_cannot_be_are_refused(tagger: VCRF, asked: dict[str, Any], message: str) -> None:
    """By name."""
    with pytest.raises(InputError, match=message):
        tagger.predict_selective([["a"]], **asked)


def test_the_band_is_what_would_be_promised(tagger: VCRF, corpus: Corpus) -> None:
    """Each point is the threshold of its own promise; looser promises accept no less."""
    table = tagger.trust(*part(corpus, 520, 720), max_errors=[0.05, 0.1], confidences=[0.9])
    band = table.band(0.9)
    assert len(band.share) > 5
    # A promise of a row is on the band, unless a stricter one accepts as much.
    row = table.rows[0]
    assert row.acceptance.is_any
    assert np.any(np.isclose(band.share, row.share) & np.isclose(band.max_error, 0.05))
    assert np.all(np.diff(band.share) > 0)
    assert np.all(np.diff(band.max_error) > 0)
    nothing = tagger.trust(*part(corpus, 520, 720), max_errors=[1e-4], confidences=[0.9]).band(0.9)
    assert len(nothing.share) == len(nothing.max_error) == 0
    last = tagger.predict_selective(corpus.tokens[520:720], float(band.max_error[-1]), 0.9)
    assert band.share[-1] == pytest.approx(np.mean([np.mean(row) for row in last.accepted]))


def test_a_file_keeps_the_calibration(tagger: VCRF, corpus: Corpus, tmp_path: Any) -> None:
    """Same thresholds, sets and probabilities, from both ways to read a file; and the same bytes again."""
    tagger.save(tmp_path / "a.vcrf")
    X, _ = part(corpus, 520, 540)
    for again in (load(tmp_path / "a.vcrf"), load_tagger(tmp_path / "a.vcrf")):
        assert again.predict_marginals(X) == tagger.predict_marginals(X)
        assert again.predict_selective(X, 0.1) == tagger.predict_selective(X, 0.1)
        assert again.predict_sets(X) == tagger.predict_sets(X)
    load(tmp_path / "a.vcrf").save(tmp_path / "b.vcrf")
    assert (tmp_path / "a.vcrf").read_bytes() == (tmp_path / "b.vcrf").read_bytes()


def test_a_second_calibration_replaces_the_first(plain: VCRF, corpus: Corpus) -> None:
    """And does not look through the first: the result is that of a new tagger."""
    tagger = VCRF(n_jobs=1).fit(*part(corpus, 0, 120))
    once = tagger.calibrate(*part(corpus, 120, 320)).model_.calibration
    tagger.calibrate(*part(corpus, 320, 520))
    twice = tagger.calibrate(*part(corpus, 120, 320)).model_.calibration
    assert twice.calibration_temperature == once.calibration_temperature
    assert twice.sureness.tolist() == once.sureness.tolist()
    assert plain.model_.calibration is None


def test_what_is_not_calibrated_says_what_to_do(plain: VCRF) -> None:
    """For every promise; before `fit` it is the usual error."""
    for ask in (plain.predict_selective, plain.predict_sets):
        with pytest.raises(InputError, match="vcrf calibrate"):
            ask([["a"]])
    with pytest.raises(NotFittedError):
        VCRF().calibrate([["a"]], [["A"]])


def test_training_sentences_are_refused(plain: VCRF, corpus: Corpus) -> None:
    """They would make every promise void."""
    with pytest.raises(InputError, match="was trained on"):
        plain.calibrate(*part(corpus, 0, 120))
    for first, last in ((0, 300), (0, 121)):
        with pytest.raises(InputError, match="Among these are the sentences"):
            plain.calibrate(*part(corpus, first, last))
    X, y = part(corpus, 0, 300)
    with pytest.raises(InputError, match="Among these are the sentences"):
        plain.calibrate(X[120:] + X[:120], y[120:] + y[:120])
    with pytest.raises(InputError, match="got none"):
        plain.calibrate([[]], [[]])
    with pytest.raises(InputError, match="str or an int"):
        plain.calibrate([["a"]], [[None]])


def test_some_training_sentences_among_others_are_noticed(corpus: Corpus) -> None:
    """Whatever their number, order and labels: many are refused, few are told, and `allow_seen` takes any."""
    X, y = part(corpus, 120, 520)
    seen, own = part(corpus, 0, 120)
    tagger = VCRF(n_jobs=1).fit(seen, own)
    kept = [i for i, x in enumerate(seen) if len(x) >= 5][::-1]
    other = [own[0][:1] * len(x) for x in seen]
    n_long = sum(len(x) >= 5 for x in X)
    many = [seen[i] for i in kept[:40]]
    with pytest.raises(InputError, match=f"^40 of the {n_long + 40} sentences of 5 tokens or more are ones that the"):
        tagger.calibrate(X[:200] + many + X[200:], y[:200] + [other[i] for i in kept[:40]] + y[200:])
    with pytest.raises(InputError, match="pass `allow_seen`"):
        tagger.calibrate(seen[::2], own[::2])
    with pytest.warns(UserWarning, match=f"1 of the {n_long + 1} sentences of 5 tokens or more is one that the"):
        tagger.calibrate([*X, seen[kept[0]]], [*y, own[kept[0]]])
    with pytest.warns(UserWarning, match="promises look better than they are"):
        tagger.calibrate(seen, own, allow_seen=True)


def test_sentences_that_repeat_by_nature_are_taken() -> None:
    """Short ones count where there are no others, and no more than the training repeats itself, up to a half."""
    X, y = [[f"yes{i}", "."] for i in range(10)], [["A", "B"]] * 10
    new = [[f"no{i}", "."] for i in range(10)]
    with pytest.raises(InputError, match=r"2 of the 2 sentences are ones that .* 0 % may be by chance"):
        VCRF(n_jobs=1).fit(X, y).calibrate(X[:2], y[:2])
    tagger = VCRF(n_jobs=1).fit(X + X[:1], y + y[:1])  # 2 of 11 are there twice
    with pytest.raises(InputError, match=r"25 %; 18.2 % may be by chance"):
        tagger.calibrate(X[:2] + new[:6], y[:8])
    with pytest.warns(UserWarning, match="unless new text repeats as many"):
        tagger.calibrate(X[:1] + new[:4], y[:5])  # 20 %
    tagger.calibrate(X[:1] + new[:5], y[:6])  # 16.7 %
    for twice in (X * 2, X + X[:8]):  # to count more: no sign that new text repeats itself
        with pytest.raises(InputError, match=r"8 of the 12 sentences are ones that .* 50 % may be by chance"):
            VCRF(n_jobs=1).fit(twice, y[:1] * len(twice)).calibrate(X[:8] + new[:4], y[:1] * 12)


def test_training_sentences_of_attributes_are_noticed() -> None:
    """Whatever the order of the attributes of a token; another value is another sentence."""
    X = [[{"w": f"{i}{t}", "n": float(t)} for t in range(6)] for i in range(8)]
    y = [["A", "B"] * 3] * 8
    tagger = VCRF(n_jobs=1).fit(X, y)
    turned = [[dict(reversed(token.items())) for token in sentence] for sentence in X]
    with pytest.raises(InputError, match="3 of the 3 sentences"):
        tagger.calibrate(turned[2:5], y[2:5])
    tagger.calibrate([[{**token, "n": 9.0} for token in sentence] for sentence in X], y)


def test_votes_know_the_sentences_of_all(plain: VCRF, corpus: Corpus) -> None:
    """Once, though both taggers were trained on them."""
    voted = vote([plain, plain])
    assert voted.model_.sentences.tolist() == plain.model_.sentences.tolist()
    with pytest.raises(InputError, match="that the model was trained on"):
        voted.calibrate(*part(corpus, 10, 60))


def test_promises_are_not_judged_by_their_own_sentences(tagger: VCRF, corpus: Corpus) -> None:
    """The calibration sentences say nothing new, nor do some of them."""
    with pytest.raises(InputError, match="was calibrated with"):
        tagger.trust(*part(corpus, 120, 520))
    with pytest.raises(InputError, match="are ones that the model was calibrated with"):
        tagger.trust(*part(corpus, 420, 720))
    with pytest.warns(UserWarning, match="that the model was calibrated with"):
        tagger.trust(*part(corpus, 420, 720), allow_seen=True)


def test_eight_sentences_one_label_one_token_and_unknown_labels() -> None:
    """The smallest cases work, or say why not."""
    X, y = [["a"], ["b"]] * 4, [["A"], ["A"]] * 4
    tagger = VCRF(n_jobs=1).fit(X, y).calibrate([["c"]] * 8, [["A"]] * 8)
    found = tagger.predict_selective([["a"], []])
    assert found.accepted == [[False], []]
    assert "more calibration sentences than the 8" in found.message
    assert tagger.predict_sets([["a"]]).sets == [[["A"]]]
    assert tagger.predict_selective([["a"]], 0.5, 0.9).accepted == [[True]]
    # Labels that training has not seen are errors, and say nothing about the temperature.
    tagger.calibrate([["c"]] * 8, [["Z"]] * 8)
    assert tagger.model_.calibration.n_impossible == 8
    assert tagger.model_.calibration.calibration_temperature == 1.0
    assert tagger.acceptance(0.5).n_missing is None


def test_spans_are_units_where_labels_mark_them() -> None:
    """The probability of a predicted span, and tokens outside are not marked."""
    X = [["Ada", "Lovelace", "saw", "Paris"], ["New", "York", "slept"], ["Ada", "slept"], ["Paris", "slept"]] * 5
    y = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "I-LOC", "O"], ["B-PER", "O"], ["B-LOC", "O"]] * 5
    tagger = VCRF(n_jobs=1, constraints="BIO").fit(X, y)
    own = tagger.entity_probability([["Ada", "slept", "Paris"]], [[(0, 0, "PER")]])[0][0]
    tagger.calibrate([["Ada", "saw", "Paris"]] * 60, [["B-PER", "O", "B-LOC"]] * 60)
    found = tagger.predict_selective([["Ada", "slept", "Paris"]], 0.2, 0.9, unit="span")
    assert found.labels[0][:2] == ["B-PER", "O"]
    assert found.sureness[0][0] == pytest.approx(own, rel=1e-6)
    assert found.accepted[0][1] is True
    units = tagger.model_.calibration.units("span")
    assert units.ptr[-1] == 120
    # Where no span is accepted the tokens outside are still none of its business.
    nothing = tagger.predict_selective([["Ada", "slept", "Paris"]], 0.001, unit="span")
    assert not nothing.acceptance.is_any
    assert nothing.accepted == [[label == "O" for label in nothing.labels[0]]]
    assert nothing.sureness[0][1] == 1.0
    with pytest.raises(InputError, match="mark spans"):
        VCRF(n_jobs=1).fit([["a"]], [["A"]]).calibrate([["b"]], [["A"]]).acceptance(unit="span")
