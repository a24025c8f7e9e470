"""`vcrf classes`, and training with what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import Call
from vcrf import load
from vcrf.classes import read_classes
from vcrf.data import Corpus


@pytest.fixture(scope="module")
def raw(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The invented corpus without labels."""
    path = tmp_path_factory.mktemp("raw") / "raw.txt"
    path.write_text("\n".join(map(" ".join, corpus.tokens)), encoding="utf-8")
    return path


def test_from_raw_text_to_labels(raw: Path, treebank_file: Path, tmp_path: Path, call: Call) -> None:
    """Classes are written, trained with, and in the model."""
    classes, model = tmp_path / "words.classes", tmp_path / "m.vcrf"
    report = json.loads(call("classes", raw, "-o", classes, "--number", 8, "--min-count", 2, "--json").stdout)
    table = read_classes(classes)
    assert report["n_words"] == len(table)
    assert report["n_classes"] == len(table.names) == 8
    assert set(report) == {
        "n_words", "n_classes", "n_rounds", "log_likelihood", "is_interrupted", "classes", "seconds",
    }  # fmt: skip
    call("train", treebank_file, "--split", "train", "-o", model, "--word-classes", classes, "--affix", 2)
    classes.unlink()
    assert load(model).word_classes == table
    assert "class[+1]" in call("show", model).stdout
    tagged = call("tag", model, raw).stdout
    assert tagged


def test_what_it_says_goes_to_stderr(raw: Path, tmp_path: Path, call: Call) -> None:
    """Rounds and the result; nothing on stdout. Several files are one text."""
    result = call("classes", raw, raw, "-o", tmp_path / "c", "--number", 4)
    assert result.stdout == ""
    assert "round   1" in result.stderr
    assert "words in 4 classes" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["no.txt", "-o", "c"], "no.txt: expected a readable file"),
        (["{raw}", "-o", "{raw}"], "is also a file of raw text"),
        (["{raw}", "-o", "c", "--min-count", "100000"], "smaller --min-count"),
    ],
)
def test_wrong_calls(args: list[str], message: str, raw: Path, tmp_path: Path, call: Call) -> None:
    """The message says what to do; nothing is written."""
    given = [str(tmp_path / "c") if arg == "c" else arg.replace("{raw}", str(raw)) for arg in args]
    before = raw.read_bytes()
    assert message in call("classes", *given, code=2).stderr
    assert not (tmp_path / "c").exists()
    assert raw.read_bytes() == before


def test_a_wrong_class_file_is_named_before_training(treebank_file: Path, tmp_path: Path, call: Call) -> None:
    """With its line; and it is not written over."""
    bad = tmp_path / "bad"
    bad.write_text("a\tb\nc\n", encoding="utf-8")
    model = tmp_path / "m.vcrf"
    found = call("train", treebank_file, "-o", model, "--word-classes", bad, code=2)
    assert "bad:2: expected word TAB class" in found.stderr
    good = tmp_path / "good"
    good.write_text("a\tb\n", encoding="utf-8")
    found = call("train", treebank_file, "-o", good, "--word-classes", good, code=2)
    assert "the file of word classes, which would be overwritten" in found.stderr
