"""Trees on the command line: train, eval, tag, explain, show, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import Call

WORDS = {"cats": ("NOUN", "nsubj"), "dogs": ("NOUN", "obj"), "see": ("VERB", "root"), "often": ("ADV", "advmod")}


def sentence(*words: str) -> str:
    """A tree in which all hang on the verb."""
    verb = words.index("see") + 1
    rows = [
        f"{i}\t{word}\t_\t{WORDS[word][0]}\t_\t_\t{0 if word == 'see' else verb}\t{WORDS[word][1]}\t_\t_"
        for i, word in enumerate(words, 1)
    ]
    return "\n".join(rows) + "\n\n"


@pytest.fixture
def treebank(tmp_path: Path) -> Path:
    """A few invented trees."""
    path = tmp_path / "trees.conllu"
    listed = [("cats", "see", "dogs"), ("cats", "often", "see", "dogs"), ("see", "dogs"), ("cats", "see")]
    path.write_text("".join(sentence(*words) for words in listed * 3), encoding="utf-8")
    return path


def test_the_commands_on_a_model_of_trees(treebank: Path, tmp_path: Path) -> None:
    """Trained, measured, used, explained and shown."""
    call, model = Call(), str(tmp_path / "deprel.vcrf")
    trained = call("train", str(treebank), "--structure", "tree", "-o", model, "--json")
    assert trained.exit_code == 0
    assert json.loads(trained.stdout)["relative_gap"] <= 1e-3
    measured = json.loads(call("eval", model, str(treebank), "--json").stdout)
    assert (measured["token_error"], measured["sentences"]) == (0.0, 12)
    blank = tmp_path / "new.conllu"
    blank.write_text("# text = x\n" + sentence("cats", "see", "dogs").replace("nsubj", "_"), encoding="utf-8")
    tagged = call("tag", model, str(blank), "--marginals").stdout.splitlines()
    assert tagged[0] == "# text = x"
    assert tagged[1].split("\t")[7] == "nsubj"
    assert tagged[1].split("\t")[9].startswith("Prob=")
    explained = json.loads(call("explain", model, str(blank), "--json").stdout)["tokens"]
    assert [token["label"] for token in explained] == ["nsubj", "root", "obj"]
    assert explained[0]["difference"] == pytest.approx(sum(c["value"] for c in explained[0]["contributions"]))
    assert "GraphCRF" in call("show", model).stdout
    bounded = json.loads(call("bound", model, str(treebank), "--json").stdout)
    assert (bounded["sentences"], bounded["tokens"], bounded["is_training_data"]) == (12, 33, True)
    assert bounded["empirical_risk"] == 0.0
    assert all(found["total"] > 0.0 for found in bounded["bounds"])
    other = tmp_path / "other.conllu"
    other.write_text(sentence("cats", "see").replace("nsubj", "vocative"), encoding="utf-8")
    refused = " ".join(call("bound", model, str(other), code=2).stderr.split())
    assert "other.conllu:1: this sentence has the label 'vocative'" in refused
    assert "--paper-constants is not for" in call("bound", model, str(other), "--paper-constants", code=2).stderr
    for command in ("calibrate", "trust", "suggest"):
        assert "is for models of sentences" in call(command, model, str(blank), code=2).stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tags", "3"], "--tags is not for --structure tree"),
        (["--tune"], "--tune"),
        (["--tag", "lemma"], "trees have labels in deprel, upos, feats, xpos"),
        (["--surrogate", "structsvm"], "not for trees"),
        (["--surrogate", "crf-max"], "--surrogate crf-max is not for trees"),
        (["--norm", "family"], "--norm family is for sequences"),
        (["--norm-of", "node=l2"], "--norm-of is not for --structure tree"),
    ],
)
def test_what_trees_do_not_take_is_refused(treebank: Path, tmp_path: Path, options: list[str], message: str) -> None:
    """By the name of the option, before anything is trained."""
    result = Call()("train", str(treebank), "--structure", "tree", "-o", str(tmp_path / "x.vcrf"), *options, code=2)
    assert message in " ".join(result.stderr.split())


def test_a_broken_tree_is_named(treebank: Path, tmp_path: Path) -> None:
    """File and line of a cycle."""
    text = treebank.read_text(encoding="utf-8").replace("1\tcats\t_\tNOUN\t_\t_\t2", "1\tcats\t_\tNOUN\t_\t_\t1", 1)
    treebank.write_text(text, encoding="utf-8")
    result = Call()("train", str(treebank), "--structure", "tree", "-o", str(tmp_path / "x.vcrf"), code=2)
    assert "trees.conllu:1" in result.stderr
    assert "cycle" in result.stderr
