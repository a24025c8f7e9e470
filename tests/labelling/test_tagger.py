"""Prediction with constraints and probabilities, through the estimators."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from vcrf import VCRF
from vcrf.arguments import inputs
from vcrf.compat import CRF
from vcrf.decoding import Constraints, probability
from vcrf.errors import InputError, NotFittedError
from vcrf.families import Family, Template, transition_families
from vcrf.metrics import entities

X = [
    ["Ada", "Lovelace", "saw", "Paris"],
    ["New", "York", "saw", "Ada"],
    ["Paris", "slept"],
    ["Ada", "saw", "New", "York"],
]
Y = [
    ["B-PER", "I-PER", "O", "B-LOC"],
    ["B-LOC", "I-LOC", "O", "B-PER"],
    ["B-LOC", "O"],
    ["B-PER", "O", "B-LOC", "I-LOC"],
]
NEW = [["York", "saw", "Lovelace"], ["Lovelace", "York"], [], ["slept", "York", "Ada", "New"], ["York"]]


@pytest.fixture(scope="module", params=[1, 2, 3])
def tagger(request: pytest.FixtureRequest) -> VCRF:
    """Small model whose tag patterns have 1, 2 or 3 labels."""
    families = [Family("word", (Template(((0, "word"),)),)), *transition_families(request.param)]
    return VCRF(recipe="paper", families=families, base_strength=0.01, n_jobs=1).fit(X, Y)


def all_sequences(tagger: VCRF, sentences: list[list[str]], **options: Any) -> list[list[tuple[list[Any], float]]]:
    """Every label sequence with its probability: k best with k beyond their number."""
    return tagger.predict_kbest(sentences, k=len(tagger.classes_) ** max(map(len, sentences)), **options)


def is_bio(labels: list[str]) -> bool:
    """Whether no I stands without its beginning."""
    before = ["O", *labels]
    return all(b[0] != "I" or a in (b, "B" + b[1:]) for a, b in zip(before, labels, strict=False))


def test_scheme_is_kept_where_it_was_broken(tagger: VCRF) -> None:
    """Words seen only inside spans would be labelled I at the start."""
    free = tagger.predict(NEW)
    assert not all(map(is_bio, free))
    bound = tagger.predict(NEW, constraints="BIO")
    assert all(map(is_bio, bound))
    assert [len(y) for y in bound] == [len(x) for x in NEW]


def test_constrained_results_are_those_of_the_allowed_sequences(tagger: VCRF) -> None:
    """Filter and renormalise all sequences: best, k best, marginals, probabilities."""
    free, bound = all_sequences(tagger, NEW), all_sequences(tagger, NEW, constraints="BIO")
    best, marginals = tagger.predict(NEW, constraints="BIO"), tagger.predict_marginals(NEW, constraints="BIO")
    for i, sentence in enumerate(NEW):
        kept = [(y, p) for y, p in free[i] if is_bio(y)]
        total = sum(p for _, p in kept)
        # Sequences of equal probability come in any order: rounding decides.
        expected_of = {tuple(y): p / total for y, p in kept}
        assert {tuple(y): p for y, p in bound[i]} == pytest.approx(expected_of)
        assert [p for _, p in bound[i]] == pytest.approx(sorted(expected_of.values(), reverse=True))
        assert expected_of[tuple(best[i])] == pytest.approx(max(expected_of.values()))
        for t in range(len(sentence)):
            expected = {label: sum(p for y, p in bound[i] if y[t] == label) for label in tagger.classes_}
            assert marginals[i][t] == pytest.approx(expected, abs=1e-12)


def test_samples_keep_the_constraints(tagger: VCRF) -> None:
    """Every draw is allowed, and frequencies are the conditional probabilities."""
    (draws,) = tagger.sample([NEW[1]], n=2000, random_state=0, constraints="BIO", allowed=[[None, {"O", "I-LOC"}]])
    assert all(is_bio(y) and y[1] in ("O", "I-LOC") for y in draws)
    (bound,) = all_sequences(tagger, [NEW[1]], constraints="BIO", allowed=[[None, {"O", "I-LOC"}]])
    for y, p in bound:
        assert np.mean([draw == y for draw in draws]) == pytest.approx(p, abs=0.05)


def test_parameter_is_used_everywhere_and_can_be_overridden(tagger: VCRF) -> None:
    """The estimator's own constraints unless a call brings others; [] is none."""
    own = clone(tagger).set_params(constraints="BIO").fit(X, Y)
    assert own.predict(NEW) == tagger.predict(NEW, constraints="BIO")
    assert own.predict_marginals(NEW) == tagger.predict_marginals(NEW, constraints="BIO")
    assert own.predict_kbest(NEW, 3) == tagger.predict_kbest(NEW, 3, constraints="BIO")
    assert own.sample(NEW, 2, 0) == tagger.sample(NEW, 2, 0, constraints="BIO")
    assert own.predict(NEW, constraints=[]) == tagger.predict(NEW)
    pairs = [("O", "O")]
    assert own.predict(NEW, constraints=pairs) == tagger.predict(NEW, constraints=pairs)
    truth = tagger.predict(NEW, constraints="BIO")
    assert own.score(NEW, truth) == 1.0 > tagger.score(NEW, truth)


def test_forbidden_pairs_starts_and_ends(tagger: VCRF) -> None:
    """None of them occurs, whatever the model wants."""
    given = Constraints(forbidden=[("O", "B-LOC")], forbidden_starts=["B-PER"], forbidden_ends=["O"])
    for y in tagger.predict([*X, *NEW], constraints=given):
        assert ("O", "B-LOC") not in list(itertools.pairwise(y))
        assert not y or (y[0] != "B-PER" and y[-1] != "O")


def test_allowed_and_forced_labels(tagger: VCRF) -> None:
    """Forced labels are predicted, the others have probability 0."""
    allowed = [["O", None, {"B-LOC", "I-PER"}], None, [], [None] * 4, ["I-LOC"]]
    predicted = tagger.predict(NEW, allowed=allowed)
    assert predicted[0][0] == "O"
    assert predicted[0][2] in ("B-LOC", "I-PER")
    assert predicted[4] == ["I-LOC"]
    assert predicted[1] == tagger.predict(NEW)[1]
    marginals = tagger.predict_marginals(NEW, allowed=allowed)
    assert marginals[0][0] == {label: pytest.approx(float(label == "O")) for label in tagger.classes_}
    assert marginals[0][2]["B-LOC"] + marginals[0][2]["I-PER"] == pytest.approx(1.0)


def test_sentence_without_allowed_sequence_is_named(tagger: VCRF, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its number in X, also when the text is worked off in blocks; by every method."""
    monkeypatch.setattr(inputs, "TOKENS_PER_BLOCK", 4)
    sentences = [["Ada", "saw"]] * 9
    allowed: list[Any] = [None] * 9
    allowed[7] = ["O", "I-PER"]
    for method in (tagger.predict, tagger.predict_marginals, tagger.predict_kbest, tagger.sample):
        assert len(method(sentences, allowed=allowed)) == 9
        with pytest.raises(InputError, match=r"Sentence 7: the constraints leave no label sequence; .* token 1 "):
            method(sentences, constraints="BIO", allowed=allowed)
    with pytest.raises(InputError, match="allowed needs one entry a sentence: got 1 for 9"):
        tagger.predict(sentences, allowed=[None])


def test_blocks_do_not_change_anything(tagger: VCRF, monkeypatch: pytest.MonkeyPatch) -> None:
    """Constraints, sequences and spans stay with their sentences."""
    sentences = NEW * 3
    allowed = [[None if (i + t) % 2 else "O" for t in range(len(x))] for i, x in enumerate(sentences)]
    y = tagger.predict(sentences, allowed=allowed)
    spans = [[(0, 0, ["O"])] if x else [] for x in sentences]

    def everything() -> list[Any]:
        return [
            tagger.predict(sentences, allowed=allowed),
            tagger.predict_marginals(sentences, allowed=allowed),
            tagger.sequence_probability(sentences, y),
            tagger.span_probability(sentences, spans),
        ]

    whole = everything()
    monkeypatch.setattr(inputs, "TOKENS_PER_BLOCK", 3)
    monkeypatch.setattr(probability, "_TOKENS_AT_ONCE", 2)
    for a, b in zip(whole, everything(), strict=True):
        assert a == b


def test_sequence_probability(tagger: VCRF) -> None:
    """As the k best have it; logs too; 0 for what cannot be."""
    for options in ({}, {"constraints": "BIO"}):
        for i, ranked in enumerate(all_sequences(tagger, NEW, **options)):
            sequences = [y for y, _ in ranked]
            found = tagger.sequence_probability([NEW[i]] * len(sequences), sequences, **options)
            assert found == pytest.approx([p for _, p in ranked], rel=1e-9)
            logs = tagger.sequence_probability([NEW[i]] * len(sequences), sequences, log=True, **options)
            assert np.exp(logs) == pytest.approx(found, rel=1e-9)
    assert tagger.sequence_probability([["Ada"]], [["B-ORG"]]) == [0.0]
    assert tagger.sequence_probability([["Ada"]], [["I-PER"]], constraints="BIO") == [0.0]
    assert tagger.sequence_probability([["Ada"]], [["I-PER"]], constraints="BIO", log=True) == [-np.inf]


def test_span_probability(tagger: VCRF) -> None:
    """Sum over the sequences with these labels there; one token is the marginal."""
    spans = [[(0, 1, ["B-LOC", "O"]), (2, 2, ["O"]), (1, 1, "O")], [], [], [(1, 3, ["O"] * 3)], [(0, 0, ["B-ORG"])]]
    for options in ({}, {"constraints": "BIO"}):
        every = all_sequences(tagger, NEW, **options)
        found = tagger.span_probability(NEW, spans, **options)
        for i, sentence_spans in enumerate(spans):
            expected = [sum(p for y, p in every[i] if y[a : b + 1] == [*z][: b + 1 - a]) for a, b, z in sentence_spans]
            assert found[i] == pytest.approx(expected, rel=1e-9, abs=1e-300)
        assert found[0][1] == pytest.approx(tagger.predict_marginals(NEW, **options)[0][2]["O"])
    logs = tagger.span_probability(NEW, spans, log=True)
    assert np.exp(logs[0]) == pytest.approx(tagger.span_probability(NEW, spans)[0])


@pytest.mark.parametrize("constraints", [None, "BIO"])
def test_entity_probability_by_enumeration(tagger: VCRF, constraints: str | None) -> None:
    """Every possible entity: sum over the sequences that have it, read strictly."""
    every = all_sequences(tagger, NEW, constraints=constraints)
    spans = [
        [(a, b, kind) for a in range(len(x)) for b in range(a, len(x)) for kind in ("PER", "LOC", "ORG")] for x in NEW
    ]
    found = tagger.entity_probability(NEW, spans, constraints=constraints)
    for i, sentence_spans in enumerate(spans):
        expected = [sum(p for y, p in every[i] if span in entities(y, "BIO")) for span in sentence_spans]
        assert found[i] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_entity_probability_of_bilou() -> None:
    """The same with U, B, I and L; E and S are other names."""
    bilou = [["B-PER", "L-PER", "O", "U-LOC"], ["B-LOC", "I-LOC", "L-LOC", "U-PER"], ["U-LOC", "O"]]
    bioes = [[y.replace("U-", "S-").replace("L-PER", "E-PER").replace("L-LOC", "E-LOC") for y in s] for s in bilou]
    sentence = [["York", "saw", "Ada"]]
    spans = [[(a, b, kind) for a in range(3) for b in range(a, 3) for kind in ("PER", "LOC")]]
    first = VCRF(recipe="paper", base_strength=0.02).fit(X[:3], bilou)
    found = first.entity_probability(sentence, spans, scheme="BILOU", constraints="BILOU")
    (every,) = all_sequences(first, sentence, constraints="BILOU")
    expected = [sum(p for y, p in every if span in entities(y, "BILOU")) for span in spans[0]]
    assert found[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert len(every) < 4**3
    second = VCRF(recipe="paper", base_strength=0.02, tol=1e-6).fit(X[:3], bioes)
    again = second.entity_probability(sentence, spans, scheme="BIOES", constraints="BIOES")
    assert again[0] == pytest.approx(found[0], abs=1e-2)


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[(0, 1)]], r"Sentence 0, span .*: expected .first token, last token, what they are"),
        ([["abc"]], "expected .first token, last token"),
        ([[(0, 5, ["O"])]], "tokens run from 0 to 1"),
        ([[(1, 0, ["O"])]], "the first comes before the last"),
        ([[(0, 1, ["O"])]], "expected 2 labels, one a token, got 1"),
        ([], "one list of spans a sentence: got 0 for 1"),
    ],
)
def test_wrong_spans_are_named(tagger: VCRF, spans: list[Any], message: str) -> None:
    """With the sentence and the span."""
    with pytest.raises(InputError, match=message):
        tagger.span_probability([["Ada", "saw"]], spans)


def test_wrong_constraints_are_refused_before_training() -> None:
    """A scheme that does not fit the labels costs no training."""
    with pytest.raises(InputError, match="got 'DET'"):
        VCRF(constraints="BIO").fit([["the"]], [["DET"]])
    with pytest.raises(InputError, match="IOB1"):
        VCRF(recipe="paper", base_strength=0.1).fit(X, Y).entity_probability([["a"]], [[]], scheme="IOB1")
    with pytest.raises(NotFittedError):
        VCRF().sequence_probability(X, Y)


def test_compat_crf_takes_constraints_too() -> None:
    """Feature dicts, and a class without the parameter."""
    dicts = [[{"w": w} for w in x] for x in X]
    crf = CRF(c1=0.01, c2=0.01).fit(dicts, Y)
    new = [[{"w": w} for w in x] for x in NEW]
    assert all(map(is_bio, crf.predict(new, constraints="BIO")))
    assert crf.sequence_probability(dicts, crf.predict(dicts))[0] > 0.5


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_k_is_a_positive_integer(tagger: VCRF, k: Any) -> None:
    """Refused before any lattice is built."""
    with pytest.raises(InputError, match="k must be a positive integer"):
        tagger.predict_kbest(NEW, k)


def test_model_knows_its_norm() -> None:
    """Also when it was not given."""
    assert VCRF().fit(X, Y).model_.norm == "elastic"
    assert VCRF(recipe="paper", base_strength=0.01).fit(X, Y).model_.norm == "l1"
    assert VCRF(recipe="paper", norm="l2").fit(X, Y).model_.norm == "l2"


@pytest.mark.parametrize("wrong", ["one", -1, 0.5, {}])
def test_a_wrong_seed_is_refused(wrong: Any) -> None:
    """Where it is given: to the draws, or to the estimator, before it trains."""
    fitted = VCRF(recipe="paper", base_strength=0.1, n_jobs=1).fit(X, Y)
    with pytest.raises(InputError, match="`random_state` must be None, an integer of at least 0, a numpy Generator or"):
        fitted.sample(NEW, random_state=wrong)
    with pytest.raises(InputError, match="`random_state` must be"):
        fitted.predict_mbr(NEW, "edit", n_samples=3, random_state=wrong)
    for patience in (None, 2):
        with pytest.raises(InputError, match="`random_state` must be"):
            VCRF(recipe="paper", base_strength=0.1, n_jobs=1, random_state=wrong, patience=patience).fit(X * 10, Y * 10)
