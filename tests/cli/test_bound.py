"""`vcrf bound`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import Call


def test_bound_states_terms_shares_and_meaning(model: Path, treebank_file: Path, call: Call, tmp_path: Path) -> None:
    """One JSON object; the table says that it is vacuous; the picture is drawn."""
    picture = tmp_path / "bound.svg"
    done = call("bound", model, treebank_file, "--split", "train", "--json", "--plot", picture)
    found = json.loads(done.stdout)
    assert found["is_training_data"] is True
    assert found["sentences"] == 60
    assert found["loss_bound"] == 1.0
    for row in found["bounds"]:
        assert row["total"] == pytest.approx(row["empirical"] + row["complexity"] + row["confidence"])
        assert row["is_vacuous"] == (row["total"] >= 1.0)
        assert row["assumptions"]
        # Every row holds for the best margin, which was not fixed beforehand.
        assert not any("rho was fixed" in each for each in row["assumptions"])
        is_voted = row["name"].startswith("theorem 3")
        assert any("no example is longer" in each for each in row["assumptions"]) == is_voted
    assert found["is_vacuous"] is True
    assert sum(family["share"] for family in found["families"]) == pytest.approx(1.0)
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
    text = call("bound", model, treebank_file, "--split", "train", "--rho", "1").stdout
    assert "vacuous" in text
    assert "spends most" in text
    assert "theorem 3" in text


def test_bound_on_other_data_says_so(model: Path, treebank_file: Path, call: Call) -> None:
    """A held-out row, and a note on stderr."""
    done = call("bound", model, treebank_file, "--split", "test", "--loss", "edit:band=1")
    assert "held-out sample" in done.stdout
    assert "not the data the model was trained on" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rho", "0"], "--rho must be a positive"),
        (["--rho", "-1"], "--rho must be a positive"),
        (["--delta", "1"], "--delta must be a probability"),
        (["--loss", "nonsense"], "--loss nonsense: expected one of hamming"),
        (["--tag", "xpos"], "which the model does not have"),
        (["--plot", "bound.txt"], "ends in .png"),
    ],
)
def test_wrong_calls_are_named(model: Path, treebank_file: Path, call: Call, options: list[str], message: str) -> None:
    """Exit code 2."""
    assert message in call("bound", model, treebank_file, "--split", "train", *options, code=2).stderr


def test_a_model_trained_with_nothing_set_has_bounds(treebank_file: Path, call: Call, tmp_path: Path) -> None:
    """Its loss, three times the number of wrong labels, is for training: the risk is that of hamming."""
    path = tmp_path / "m.vcrf"
    call("train", treebank_file, "--split", "train", "-o", path)
    found = json.loads(call("bound", path, treebank_file, "--split", "train", "--json").stdout)
    assert (found["loss"], found["loss_bound"]) == ("HammingLoss", 1.0)


def test_a_bound_on_a_condition_names_it(model: Path, treebank_file: Path, call: Call) -> None:
    """The whole file has the training data in it: a held-out row must not be taken for a guarantee."""
    found = json.loads(call("bound", model, treebank_file, "--json", "--delta", "0.5").stdout)
    best = found["bounds"][0]
    assert (best["name"], best["is_vacuous"]) == ("held-out sample", False)
    assert f"This one holds if {best['condition']}" in found["meaning"]
    assert "had no part in training" in best["condition"]


def test_constraints_are_pointed_out(call: Call, tmp_path: Path) -> None:
    """The risk is that of the scores alone."""
    path = tmp_path / "m.vcrf"
    data = tmp_path / "spans.tsv"
    data.write_text("a\tB-X\nb\tI-X\nc\tO\n\nc\tO\na\tB-X\n\n")
    call("train", data, "-o", path, "--constraints", "BIO", "--recipe", "paper", "--base-strength", "0.01")
    assert "labels under constraints" in call("bound", path, data).stderr
