"""Entities on the command line: scores with intervals, probabilities of spans, constraints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import Call
from vcrf.labelling.loading import load_tagger
from vcrf.metrics import entity_intervals, entity_scores

SENTENCES = [
    ("Ada Lovelace saw Paris", "B-PER I-PER O B-LOC"),
    ("New York slept", "B-LOC I-LOC O"),
    ("Ada slept", "B-PER O"),
    ("Paris slept", "B-LOC O"),
]
NEW = [("York saw Lovelace", "B-LOC O B-PER"), ("Ada saw Paris", "B-PER O B-LOC")]


def columns(sentences: list[tuple[str, str]]) -> str:
    """Token and label, tab between."""
    return "\n".join(
        "".join(f"{t}\t{b}\n" for t, b in zip(x.split(), y.split(), strict=True)) for x, y in sentences
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, call: Call) -> Path:
    """A model of entities without constraints."""
    where = tmp_path_factory.mktemp("entities")
    (where / "train.tsv").write_text(columns(SENTENCES * 3), encoding="utf-8")
    (where / "new.tsv").write_text(columns(NEW * 3), encoding="utf-8")
    call("train", where / "train.tsv", "-o", where / "m.vcrf")
    return where


def test_eval_has_entities_with_intervals(folder: Path, call: Call) -> None:
    """As the library counts them; a tagger of other labels has none."""
    found = json.loads(call("eval", folder / "m.vcrf", folder / "new.tsv", "--json").stdout)["entities"]
    X, y = ([x.split() for x, _ in NEW * 3], [labels.split() for _, labels in NEW * 3])
    predicted = load_tagger(folder / "m.vcrf").predict(X)
    overall = entity_scores(y, predicted).overall
    assert (found["f1"], found["precision"], found["recall"]) == (overall.f1, overall.precision, overall.recall)
    assert found["intervals"]["f1"] == list(entity_intervals(y, predicted).f1)
    assert set(found["by_kind"]) >= {"LOC", "PER"}
    text = call("eval", folder / "m.vcrf", folder / "new.tsv").stdout
    assert "precision" in text
    assert "95 % intervals: precision" in text


def test_intervals_hold_the_score() -> None:
    """Around it, 0 to 1 for one sentence, and all right is 1 to 1."""
    y = [labels.split() for _, labels in SENTENCES] * 5
    wrong = [["O"] * len(labels) if i % 3 == 0 else labels for i, labels in enumerate(y)]
    score, found = entity_scores(y, wrong).overall, entity_intervals(y, wrong)
    assert found.recall[0] < score.recall < found.recall[1]
    assert found.f1[0] < score.f1 < found.f1[1]
    assert found.precision == (1.0, 1.0)
    assert entity_intervals(y[:1], y[:1]).f1 == (0.0, 1.0)


def test_tag_has_probabilities_of_spans(folder: Path, call: Call) -> None:
    """In json a list, in MISC and in a column at the first token; exact as the library's."""
    tagger = load_tagger(folder / "m.vcrf")
    text = "Ada saw Paris\n"
    row = json.loads(call("tag", folder / "m.vcrf", "--marginals", "--format", "json", given=text).stdout)
    spans = [(span["first"], span["last"], span["kind"]) for span in row["spans"]]
    assert spans
    expected = tagger.entity_probability([text.split()], [spans])[0]
    assert [span["probability"] for span in row["spans"]] == pytest.approx(expected, abs=1e-6)
    lines = call("tag", folder / "m.vcrf", "--marginals", given=text).stdout.splitlines()
    assert f"Span={expected[0]:.3f}" in lines[1 + spans[0][0]]


def test_constraints_are_given_when_tagging(folder: Path, call: Call) -> None:
    """Valid spans from a model that was trained without; they do not go with promises."""
    given = "York saw Lovelace\n"
    labels = json.loads(call("tag", folder / "m.vcrf", "--constraints", "BIO", "--format", "json", given=given).stdout)[
        "labels"
    ]
    assert labels == load_tagger(folder / "m.vcrf", "BIO").predict([given.split()])[0]
    assert labels[0][0] != "I"
    assert "--constraints BMES" in call("tag", folder / "m.vcrf", "--constraints", "BMES", given=given, code=2).stderr
    result = call("tag", folder / "m.vcrf", "--constraints", "BIO", "--report", given=given, code=2)
    assert "change what was calibrated" in result.stderr
    call("eval", folder / "m.vcrf", folder / "new.tsv", "--constraints", "BIO")
