"""Labels that are bundles, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import Call
from vcrf.data import SyntheticLanguage
from vcrf.data.partial import read_partial
from vcrf.data.readers import read_corpus, read_with_layout

NAMES = {"A": "NOUN", "B": "NOUN", "C": "VERB", "D": "ADP"}
FEATS = {"A": "Case=Nom|Number=Sing", "B": "Case=Acc|Number=Plur", "C": "Mood=Ind|Number=Sing", "D": "_"}


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An invented treebank with UPOS, XPOS and FEATS."""
    corpus = SyntheticLanguage(n_labels=4, n_stems=30).sample(40, seed=2)
    labels = dict(zip(sorted(corpus.label_set), "ABCD", strict=True))
    lines = []
    for number, (tokens, tags) in enumerate(zip(corpus.tokens, corpus.labels, strict=True)):
        lines.append(f"# split = {'train' if number < 30 else 'test'}")
        for i, (token, tag) in enumerate(zip(tokens, tags, strict=True), 1):
            name = labels[tag]
            lines.append(f"{i}\t{token}\t_\t{NAMES[name]}\t{name}\t{FEATS[name]}\t_\t_\t_\t_")
        lines.append("")
    path = tmp_path_factory.mktemp("morphology") / "invented.conllu"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def model(treebank: Path) -> Path:
    """A model of UPOS and FEATS."""
    path = treebank.parent / "bundles.vcrf"
    Call()("train", treebank, "--split", "train", "--tag", "upos+feats", "-o", path, "--recipe", "paper")
    return path


def test_columns_are_written_back(model: Path, treebank: Path, tmp_path: Path) -> None:
    """Protects the columns of a bundle: both are labelled, and nothing else changes."""
    bare, done = tmp_path / "bare.conllu", tmp_path / "done.conllu"
    lines = [line.split("\t") for line in treebank.read_text().splitlines()]
    bare.write_text("\n".join("\t".join([*f[:3], "_", f[4], "_", *f[6:]] if len(f) > 1 else f) for f in lines) + "\n")
    Call()("tag", model, bare, "-o", done)
    again = read_corpus(done, "upos+feats")
    assert again.label_set <= read_corpus(treebank, "upos+feats").label_set
    assert read_corpus(done, "xpos").labels == read_corpus(treebank, "xpos").labels
    text = Call()("tag", model, "-", given="nu mi\n").stdout.splitlines()
    assert "=" not in text[1].split("\t")[3]


def test_parts_are_evaluated(model: Path, treebank: Path) -> None:
    """Protects the accuracies of columns and features, in JSON and for people."""
    call = Call()
    found = json.loads(call("eval", model, treebank, "--split", "test", "--json").stdout)
    shares = found["morphology"]
    assert shares["label"] == pytest.approx(1.0 - found["token_error"])
    assert shares["label"] <= min(shares["UPOS"], shares["UFeats"])
    assert set(shares["features"]) == {"Case", "Mood", "Number"}
    shown = call("eval", model, treebank, "--split", "test").stdout
    assert "UFeats" in shown
    assert "Case" in shown


def test_a_column_that_holds_no_label_is_refused(treebank: Path, tmp_path: Path) -> None:
    """Protects the message about options."""
    error = Call()("train", treebank, "--tag", "upos+form", "-o", tmp_path / "x.vcrf", code=2).stderr
    assert "--tag" in error
    assert "upos+feats" in error


def test_labels_that_cannot_be_split_have_no_components(treebank: Path, tmp_path: Path) -> None:
    """Protects the message that names the label, and the options that help."""
    error = Call()("train", treebank, "--components", "all", "-o", tmp_path / "x.vcrf", code=2).stderr
    assert "'ADP' is no bundle" in " ".join(error.split())
    assert "--tag upos+feats" in " ".join(error.split())
    assert "--components" in error


def test_known_labels_are_said_and_counted(treebank: Path, tmp_path: Path) -> None:
    """Protects `--known-labels`: said in training and by `show`, counted by `eval`, seen in `explain`."""
    model, call = tmp_path / "known.vcrf", Call()
    said = call("train", treebank, "--split", "train", "--tag", "upos+feats", "--known-labels", "2", "-o", model).stderr
    assert "Known labels:" in said
    assert "seen at least 2 times" in " ".join(call("show", model).stdout.split())
    found = json.loads(call("eval", model, treebank, "--split", "test", "--json").stdout)["known_labels"]
    assert 0 <= found["excluded"] < found["restricted"]
    assert f"at {found['excluded']}" in " ".join(call("eval", model, treebank, "--split", "test").stdout.split())
    word = read_corpus(treebank, "upos", split="train").tokens[0][0]
    assert "known label" in call("explain", model, word).stdout


def test_two_tagsets_at_once(treebank: Path, tmp_path: Path) -> None:
    """Protects `--partial`: labels of a file without features stand for all that agree with them."""
    text, call = treebank.read_text(), Call()
    bare = tmp_path / "bare.conllu"
    lines = [line.split("\t") for line in text.splitlines()]
    bare.write_text("\n".join("\t".join([*f[:5], "_", *f[6:]]) if len(f) > 1 else f[0] for f in lines) + "\n")
    model, usual = tmp_path / "both.vcrf", ["--tag", "upos+feats", "--recipe", "paper", "--split", "train"]
    said = call("train", treebank, "--partial", f"{bare}=upos", *usual, "-o", model).stderr
    assert "words may have several labels" in " ".join(said.split())
    found = json.loads(call("eval", model, treebank, "--split", "test", "--json").stdout)
    assert found["morphology"]["UPOS"] > 0.5
    assert json.loads(call("show", model, "--json").stdout)["labels"] == sorted(
        read_corpus(treebank, "upos+feats", split="train").label_set
    )
    warned = call("train", treebank, bare, *usual, "-o", model).stderr
    assert "--partial FILE=upos" in " ".join(warned.split())
    for columns, message in (("xpos", "some of the columns"), ("upos+feats", "not all"), ("", "FILE=COLUMNS")):
        error = call("train", treebank, "--partial", f"{bare}={columns}", *usual, "-o", model, code=2).stderr
        assert message in " ".join(error.split())
    error = call("train", treebank, "--partial", f"{bare}=upos", "-o", model, code=2).stderr
    assert "--tag with several columns" in " ".join(error.split())


def test_a_file_with_features_alone_says_all_of_them(tmp_path: Path) -> None:
    """Protects `--partial FILE=feats`: a word without features stands for the labels without any."""
    path = tmp_path / "x.conllu"
    path.write_text(
        "1\ta\t_\tNOUN\t_\tCase=Nom\t_\t_\t_\t_\n2\tb\t_\tADP\t_\t_\t_\t_\t_\t_\n3\tc\t_\tADV\t_\t_\t_\t_\t_\t_\n\n"
    )
    whole, layout = read_with_layout(str(path), "upos+feats")
    for columns in ("feats", "FEATS"):
        part, own = read_partial(f"{path}={columns}", whole, layout)
        assert part.labels == [["UPOS=NOUN|Case=Nom", *[frozenset(["UPOS=ADP", "UPOS=ADV"])] * 2]]
        assert not own


@pytest.mark.parametrize("option", ["--components", "--component-pairs"])
def test_no_names_of_components_are_refused(treebank: Path, tmp_path: Path, option: str) -> None:
    """Protects the message: it says what is expected."""
    error = Call()("train", treebank, "--tag", "upos+feats", option, "", "-o", tmp_path / "x.vcrf", code=2).stderr
    assert f"{option} must be 'all', " in " ".join(error.split())


def test_empty_features_are_told(treebank: Path, tmp_path: Path, call: Call) -> None:
    """A file without FEATS gives a tagger of UPOS: its name, the column, and what was learnt instead."""
    lines = [line.split("\t") for line in treebank.read_text().splitlines()]
    bare = tmp_path / "bare.conllu"
    bare.write_text("\n".join("\t".join([*f[:5], "_", *f[6:]] if len(f) > 1 else f) for f in lines) + "\n")
    usual = ["--recipe", "paper", "-o", tmp_path / "m.vcrf"]
    said = call("train", bare, "--tag", "upos+feats", *usual).stderr
    assert f"{bare}: column FEATS is empty for every word" in said
    assert "labels are those of --tag upos" in said
    assert "FEATS is empty" not in call("train", treebank, "--tag", "upos+feats", *usual).stderr
