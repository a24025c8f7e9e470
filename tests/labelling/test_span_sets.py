"""Sets of spans: all that are probable enough, against a walk over every span; what they promise, on a tagger."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import Call
from vcrf import VCRF
from vcrf.labelling.observing import observe
from vcrf.labelling.span_sets import likely_spans, span_sets
from vcrf.labelling.tagger import ModelTagger

WORDS = ("ada", "lovelace", "saw", "new", "york", "of")


def corpus(n: int, seed: int, scheme: str = "BIO") -> tuple[list[list[str]], list[list[str]]]:
    """Invented sentences with people and places, whose borders the words do not settle."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words: list[str] = []
        labels: list[str] = []
        for _ in range(rng.integers(1, 4)):
            kind, size = rng.choice(["O", "PER", "LOC"], p=[0.5, 0.3, 0.2]), int(rng.integers(1, 4))
            start = {"O": 2, "PER": 0, "LOC": 3}[str(kind)]
            words += [WORDS[(start + int(rng.integers(0, 3))) % len(WORDS)] for _ in range(size)]
            labels += prefixed(str(kind), size, scheme)
        X.append(words)
        y.append(labels)
    return X, y


def prefixed(kind: str, size: int, scheme: str) -> list[str]:
    """Labels of one span."""
    if kind == "O":
        return ["O"] * size
    if scheme == "BILOU":
        return [f"U-{kind}"] if size == 1 else [f"B-{kind}", *[f"I-{kind}"] * (size - 2), f"L-{kind}"]
    return [f"B-{kind}", *[f"I-{kind}"] * (size - 1)]


@pytest.fixture(scope="module", params=["BIO", "BILOU", "BIO, constrained"])
def tagger(request: pytest.FixtureRequest) -> VCRF:
    """Calibrated, and often wrong."""
    scheme = request.param.partition(",")[0]
    constraints = "BIO" if "constrained" in request.param else None
    tagger = VCRF(n_jobs=1, constraints=constraints).fit(*corpus(200, 1, scheme))
    return tagger.calibrate(*corpus(300, 2, scheme))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([*WORDS, "unseen"]), min_size=1, max_size=7), st.sampled_from([0.002, 0.05, 0.3, 0.9]))
def test_all_that_are_probable_enough_are_found(tagger: VCRF, sentence: list[str], threshold: float) -> None:
    """Every span of every kind, by its exact probability."""
    (block,) = observe(tagger, [sentence, sentence[:1]])
    found = likely_spans(block.scores, tagger.model_.labels, threshold)
    plain = ModelTagger(replace(tagger.model_, calibration=None), tagger.constraints)
    n = len(sentence)
    spans = [(a, b, kind) for a in range(n) for b in range(a, n) for kind in ("LOC", "PER")]
    scheme = tagger.model_.calibration.scheme
    values = plain.entity_probability([sentence], [spans], scheme)[0]
    expected = {span: p for span, p in zip(spans, values, strict=True) if np.float32(p) >= np.float32(threshold)}
    assert {span[:3] for span in found[0]} == set(expected)
    for span in found[0]:
        assert span.probability == pytest.approx(expected[span[:3]], rel=1e-5)


def test_predicted_spans_come_first_and_stay(tagger: VCRF) -> None:
    """However improbable they are; the others follow by probability."""
    X, _ = corpus(20, 3, tagger.model_.calibration.scheme)
    for block in observe(tagger, X):
        alone = span_sets(block, tagger.model_, 2.0)
        more = span_sets(block, tagger.model_, 0.01)
        for few, many in zip(alone, more, strict=True):
            assert many[: len(few)] == few
            rest = [span.probability for span in many[len(few) :]]
            assert rest == sorted(rest, reverse=True)


def test_sets_hold_the_true_spans(tagger: VCRF) -> None:
    """Of new sentences that have one: the share that is missed is what was allowed, but for chance."""
    scheme = tagger.model_.calibration.scheme
    X, y = corpus(600, 4, scheme)
    found = tagger.predict_sets(X, 0.1, unit="span")
    missed = []
    for labels, spans in zip(y, found.sets, strict=True):
        true = true_spans(labels)
        if true:
            missed.append(np.mean([span not in {s[:3] for s in spans} for span in true]))
    assert np.mean(missed) <= 0.1 + 3 * np.std(missed) / np.sqrt(len(missed)) + 3 * 0.3 / np.sqrt(300)
    alone = tagger.predict_sets(X, 0.6, unit="span").sets
    assert sum(map(len, found.sets)) > sum(map(len, alone))


def true_spans(labels: list[str]) -> list[tuple[int, int, str]]:
    """By a walk of its own."""
    found: list[tuple[int, int, str]] = []
    for i, label in enumerate(labels):
        prefix, _, kind = label.partition("-")
        if prefix in ("B", "U"):
            found.append((i, i, kind))
        elif prefix in ("I", "L"):
            found[-1] = (found[-1][0], i, kind)
    return found


def test_the_command_line_writes_them(tmp_path: Path) -> None:
    """Kind and number of tokens where a span begins, and a list in JSON."""
    tagger = VCRF(n_jobs=1).fit(*corpus(200, 1)).calibrate(*corpus(300, 2))
    tagger.save(tmp_path / "m.vcrf")
    text = "ada york saw\nof\n"
    asked = ("tag", tmp_path / "m.vcrf", "--label-sets", "10%", "--unit", "span")
    result = Call()(*asked, "--format", "json", given=text)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    sets = tagger.predict_sets([line.split() for line in text.splitlines()], 0.1, unit="span").sets
    assert [[(s["first"], s["last"], s["kind"]) for s in row["span_set"]] for row in rows] == [
        [span[:3] for span in spans] for spans in sets
    ]
    assert "of the true spans of a sentence that has any" in result.stderr
    written = Call()(*asked, given=text).stdout.splitlines()
    begun = [f"{kind}:{last + 1}" for first, last, kind, _ in sets[0] if first == 0]
    assert written[1].split("\t")[9] == f"Spans={','.join(begun)}"
