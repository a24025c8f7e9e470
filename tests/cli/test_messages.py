"""Messages name the file that they are about, and options instead of the library's parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Call
from vcrf import VCRF


@pytest.fixture(scope="module")
def of_dicts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that does not read words."""
    path = tmp_path_factory.mktemp("dicts") / "dicts.vcrf"
    VCRF().fit([[{"w": "a"}]], [["X"]]).save(path)
    return path


@pytest.mark.parametrize(
    "command", ["tag {model} {data}", "eval {model} {data}", "bound {model} {data}", "explain {model} a"]
)
def test_a_model_that_reads_no_words_is_named(command: str, of_dicts: Path, treebank_file: Path, call: Call) -> None:
    """Which of the files is meant is in the message."""
    result = call(*command.format(model=of_dicts, data=treebank_file).split(), code=2)
    assert f"{of_dicts}: the model was trained on feature dicts" in result.stderr


def test_constraints_without_an_answer_name_the_line(tmp_path: Path, call: Call) -> None:
    """Not the number of the sentence in some block."""
    path, data = tmp_path / "m.vcrf", tmp_path / "data.tsv"
    tagger = VCRF(constraints=[("B-X", "B-X"), ("B-X", "I-X"), ("I-X", "B-X"), ("I-X", "I-X")])
    tagger.fit([["a"], ["b"]], [["B-X"], ["I-X"]]).save(path)
    data.write_text("a\tB-X\n\nb\tI-X\n\na\tB-X\nb\tI-X\n\n")
    for command in (["tag", path, data, "--tag", 1], ["eval", path, data]):
        result = call(*command, code=2)
        assert f"{data}:5: the constraints leave no label sequence" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--constraints BMES", "--constraints BMES: A scheme is one of"),
        ("--constraints BIO", "--constraints BIO: Labels of spans are"),
        ("--split test --patience 2", "--patience without a development set"),
        ("--tune --folds 9 --split few", "--folds must be an integer from 2 to the number of sentences, 2: got 9"),
        ("--split none", "no sentence of split none"),
        ("--split none", "or leave --split out"),
        ("--split few --dev-split none", "or leave --dev-split out"),
        ("--tune --patience 2", "of its own, got --patience 2 too. Leave --patience out"),
        ("--tag 3 --form 0", "or choose other columns with --form and --tag"),
    ],
)  # fmt: skip
def test_parameters_are_options(options: str, message: str, tmp_path: Path, call: Call) -> None:
    """A user of the command line has never heard of X_dev."""
    word = "1\ta\t_\tNOUN\t_\t_\t_\t_\t_\t_\n\n"
    data = tmp_path / "data.conllu"
    data.write_text(("# split = few\n" + word) * 2 + ("# split = test\n" + word) * 3, encoding="utf-8")
    if "--form" in options:
        data = tmp_path / "data.tsv"
        data.write_text("a\tb\tc\tX\na\tb\tc\t\n", encoding="utf-8")
    result = call("train", data, "-o", tmp_path / "m", *options.split(), code=2)
    assert message in result.stderr
    assert "X_dev" not in result.stderr


def test_too_little_text_for_classes_is_named(tmp_path: Path, call: Call) -> None:
    """With the option that helps."""
    text = tmp_path / "few.txt"
    text.write_text("a b\n")
    result = call("classes", text, "-o", tmp_path / "c", code=2)
    assert f"{text}: Word classes need two words" in result.stderr
    assert "a smaller --min-count" in result.stderr


def test_a_limit_on_passes_names_the_options(treebank_file: Path, tmp_path: Path, call: Call) -> None:
    """All three."""
    result = call("train", treebank_file, "-o", tmp_path / "m", "--max-passes", 2)
    assert "raise --max-passes or the strengths; if it will do, --tol." in result.stderr


def test_what_is_no_labelled_text_is_called_by_its_name(model: Path, tmp_path: Path, call: Call) -> None:
    """A model is no file in another encoding, and sentences are no lines with wrong columns."""
    new, said = tmp_path / "m.vcrf", f"{model}: expected text, got a vcrf model"
    for args in (("train", model, "-o", new), ("tag", model, model), ("eval", model, model)):
        assert said in call(*args, code=2).stderr
    text = tmp_path / "new.txt"
    for between in ("\n", "\n\n"):
        text.write_text(between.join(("the cat sleeps on the old mat .", "a dog barks at it for an hour .")) + "\n")
        found = call("train", text, "-o", new, code=2).stderr
        assert "expected 8 columns" in found
        assert "Is this text without labels?" in found
    text.write_text("a\tb\tc\td\tX\n" * 3 + "a\tb\tc\tX\n")
    assert "Correct the line" in call("train", text, "-o", new, code=2).stderr
