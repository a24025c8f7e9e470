"""`vcrf eval`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import Call
from vcrf.data import Corpus
from vcrf.labelling.loading import load_tagger
from vcrf.metrics import evaluate

KEYS = {
    "model", "token_error", "token_error_interval", "sentence_error", "sentence_error_interval", "unknown_word_error",
    "unknown_word_error_interval", "tokens", "sentences", "unknown_words", "tokens_per_second", "confusions",
    "entities",
}  # fmt: skip


def test_json_agrees_with_the_library(model: Path, treebank_file: Path, corpus: Corpus, call: Call) -> None:
    """On the test part, unknown words being those that training did not have."""
    found = json.loads(call("eval", model, treebank_file, "--split", "test", "--json").stdout)
    assert set(found) == KEYS
    train, test = corpus[:60], corpus[60:]
    vocabulary = {word for sentence in train.tokens for word in sentence}
    expected = evaluate(test.labels, load_tagger(model).predict(test.tokens), test.tokens, vocabulary)
    assert found["token_error"] == expected.token_error.rate
    assert found["token_error_interval"] == [expected.token_error.low, expected.token_error.high]
    assert found["sentence_error"] == expected.sentence_error.rate
    assert expected.unknown_word_error is not None
    assert found["unknown_word_error"] == expected.unknown_word_error.rate
    assert found["unknown_words"] == expected.unknown_word_error.n > 0
    assert (found["tokens"], found["sentences"]) == (test.n_tokens, 20)
    assert found["tokens_per_second"] > 0.0
    assert found["confusions"] == [c._asdict() for c in expected.confusions]


def test_the_column_of_training_is_evaluated(xpos_model: Path, treebank_file: Path, call: Call) -> None:
    """Against UPOS everything would be wrong."""
    found = json.loads(call("eval", xpos_model, treebank_file, "--json").stdout)
    assert found["token_error"] < 0.9
    against = json.loads(call("eval", xpos_model, treebank_file, "--tag", "upos", "--json").stdout)
    assert against["token_error"] == 1.0


def test_two_models_are_compared(model: Path, treebank_file: Path, tmp_path: Path, call: Call) -> None:
    """The difference, its interval, and a test."""
    weak = tmp_path / "weak.vcrf"
    call("train", treebank_file, "--split", "train", "-o", weak, "--recipe", "paper", "--base-strength", 0.5)
    found = json.loads(call("eval", model, weak, treebank_file, "--split", "test", "--json").stdout)
    a, b = found["models"]
    comparison = found["comparison"]
    assert comparison["difference"] == pytest.approx(a["token_error"] - b["token_error"])
    assert comparison["low"] <= comparison["difference"] <= comparison["high"] < 0.0
    assert comparison["p_value"] < 0.05
    text = call("eval", model, weak, treebank_file, "--split", "test").stdout
    assert "first less second: -" in text


def test_the_table_names_errors_and_mistakes(model: Path, treebank_file: Path, call: Call) -> None:
    """For people."""
    text = call("eval", model, treebank_file, "--split", "test").stdout
    for word in ("tokens", "sentences", "unknown words", "most frequent mistakes", "tokens a second", "95 % interval"):
        assert word in text


@pytest.mark.parametrize("n", [1, 4])
def test_too_few_or_too_many_files(n: int, model: Path, call: Call) -> None:
    """One or two models and the data."""
    assert "one model, or two" in call("eval", *[model] * n, code=2).stderr


def test_bad_data_are_named(model: Path, tmp_path: Path, call: Call) -> None:
    """File and line."""
    path = tmp_path / "d"
    path.write_text("1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n2\tb\n")
    assert f"{path}:2: expected 10" in call("eval", model, path, code=2).stderr


def test_no_label_in_common_is_said(model: Path, treebank_file: Path, call: Call) -> None:
    """One line on stderr, with the option that helps; nothing when there are some."""
    hint = "have no label in common: is the label in another column? Pass it with --tag."
    assert hint in call("eval", model, treebank_file, "--tag", "xpos").stderr
    assert hint not in call("eval", model, treebank_file).stderr


def test_labels_left_open_are_refused(model: Path, tmp_path: Path, call: Call) -> None:
    """They would count as errors; the line is named."""
    data = tmp_path / "part.jsonl"
    data.write_text('{"tokens": ["a", "b"], "labels": ["NOUN", null]}\n')
    result = call("eval", model, data, code=2)
    assert "part.jsonl" in result.stderr
    assert "Give every token a label" in result.stderr


def test_sentences_of_the_training_are_said(model: Path, treebank_file: Path, call: Call) -> None:
    """A file with all parts in it is easily given whole; the error then looks too small."""
    whole = call("eval", model, treebank_file).stderr
    assert "sentences of 5 tokens or more are ones that the model was trained on" in whole
    assert "the error on new text is larger. Evaluate others: --split NAME" in whole
    assert "are ones that the model was trained on" not in call("eval", model, treebank_file, "--split", "test").stderr
