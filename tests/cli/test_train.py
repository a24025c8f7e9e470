"""`vcrf train`."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from commands import Call, conllu, feed, start
from vcrf import load
from vcrf.data import Corpus, SyntheticLanguage
from vcrf.data.layout import Layout
from vcrf.model.file import load_model
from vcrf.surrogates.smooth import SmoothObjective

KEYS = {
    "objective", "gap", "relative_gap", "kkt_violation", "n_candidates", "n_columns", "n_active", "seconds",
    "seconds_reading", "seconds_solving", "status", "n_passes", "model",
}  # fmt: skip


def test_json_has_the_facts_and_nothing_else_is_on_stdout(treebank_file: Path, tmp_path: Path, call: Call) -> None:
    """They agree with the model that was written."""
    path = tmp_path / "m.vcrf"
    result = call(
        "train", treebank_file, "--split", "train", "-o", path, "--recipe", "paper", "--base-strength", "0.05", "--json"
    )
    report = json.loads(result.stdout)
    assert set(report) == KEYS
    tagger = load(path)
    assert (report["objective"], report["gap"]) == (tagger.objective_, tagger.gap_)
    assert (report["n_active"], report["n_candidates"]) == (tagger.n_active_, tagger.n_candidates_)
    assert report["relative_gap"] <= 1e-3
    assert report["seconds"] >= report["seconds_solving"] > 0.0
    assert "relative gap" in result.stderr


def test_options_reach_the_estimator(treebank_file: Path, tmp_path: Path, call: Call) -> None:
    """Each under its own name."""
    path = tmp_path / "m.vcrf"
    call(
        "train", treebank_file, "-o", path, "--families", "paper", "--words", 1, "--tags", 2, "--affix", 0,
        "--recipe", "paper", "--complexity-strength", 0.1, "--base-strength", 0.05, "--norm", "elastic",
        "--l1-ratio", 0.9,
        "--loss", "hamming", "--tol", 0.1, "--max-passes", 500, "--threads", 1, "--seed", 7,
        "--complexities", "feature", "--count-power", 0.2, "--no-factors",
    )  # fmt: skip
    found = load(path).get_params()
    expected = {
        "recipe": "paper", "families": "paper", "words": 1, "tags": 2, "affix": 0,
        "complexity_strength": 0.1, "base_strength": 0.05,
        "norm": "elastic", "l1_ratio": 0.9, "loss": "hamming", "tol": 0.1, "max_passes": 500, "n_jobs": 1,
        "random_state": 7, "complexities": "feature", "count_power": 0.2, "factors": False,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected


def test_the_estimate_has_two_names(treebank_file: Path, tmp_path: Path, call: Call) -> None:
    """As in the library."""
    path = tmp_path / "m.vcrf"
    call(
        "train", treebank_file, "-o", path, "--complexities", "estimate", "--recipe", "paper", "--complexity-strength",
        0.1, "--affix", 0,
    )  # fmt: skip
    assert load(path).complexities == "estimate"


def test_surrogates_and_losses_by_name(corpus: Corpus, tmp_path: Path, call: Call) -> None:
    """Each surrogate trains its own estimator, with its own defaults where nothing is given."""
    data, path = tmp_path / "a.conllu", tmp_path / "m.vcrf"
    data.write_text(conllu(corpus[:12]))
    expected = {
        "crf": ("VCRF", None),
        "exponential": ("VExponential", "hamming"),
        "structsvm": ("StructSVM", "hamming"),
        "crf-max": ("MaxCRF", "hamming"),
    }
    for surrogate, (name, loss) in expected.items():
        call(
            "train", data, "-o", path, "--surrogate", surrogate, "--recipe", "paper", "--norm", "elastic",
            "--base-strength", 0.05,
        )  # fmt: skip
        tagger = load(path)
        assert (type(tagger).__name__, tagger.loss_) == (name, loss)
        assert tagger.gap_ <= tagger.tol_ * tagger.objective_
    call(
        "train", data, "-o", path, "--surrogate", "m3n", "--loss", "ngram", "--recipe", "paper", "--base-strength", 0.2,
        "--tol", 0.05,
    )  # fmt: skip
    assert (load(path).loss, load(path).tol) == ("ngram", 0.05)


def test_norms_and_the_constrained_form(treebank_file: Path, tmp_path: Path, call: Call) -> None:
    """Options as in the library; what cannot be combined is refused by the options' names."""
    path = tmp_path / "m.vcrf"
    common = "train", treebank_file, "-o", path, "--affix", 0, "--tags", 1, "--words", 0, "--tol", 0.05
    call(*common, "--norm", "lp", "--power", 1.7, "--norm-of", "word=l1", "--norm-of", "lower=l2")
    assert (load(path).norm, load(path).power, load(path).norms) == ("lp", 1.7, {"word": "l1", "lower": "l2"})
    call(*common, "--norm", "l1", "--radius", 3, "--complexity-strength", 1, "--base-strength", 0)
    assert load(path).radius == 3.0
    for options, words in (
        (["--norm-of", "word"], "--norm-of word: expected FAMILY=NORM"),
        (["--norm-of", "nothing=l1"], "there is no family 'nothing'"),
        (["--norm", "lp", "--surrogate", "m3n"], "--norm lp is not there for m3n"),
        (["--norm", "group", "--radius", "2"], "--radius needs a norm of single weights"),
    ):
        assert words in " ".join(call(*common, *options, code=2).stderr.split())


def test_several_files_and_development_data(corpus: Corpus, tmp_path: Path, call: Call) -> None:
    """Files are read one after the other; the error on the development data is told."""
    for name, part in (("a", corpus[:20]), ("b", corpus[20:40]), ("dev", corpus[40:60])):
        (tmp_path / f"{name}.conllu").write_text(conllu(part))
    a, b, dev, model = (tmp_path / name for name in ("a.conllu", "b.conllu", "dev.conllu", "m.vcrf"))
    report = json.loads(
        call("train", a, b, "--dev", dev, "-o", model, "--recipe", "paper", "--base-strength", 0.05, "--json").stdout
    )
    low, high = report["dev_token_error_interval"]
    assert low < report["dev_token_error"] < high
    facts = load_model(model).facts
    assert facts is not None
    assert facts.n_sentences == 40
    result = call("train", a, "--dev", dev, "--patience", 50, "-o", model)
    assert "development token error" in result.stdout
    assert "development error" in result.stderr
    assert "development error" in call("train", a, b, "--patience", 3, "-o", model).stderr
    facts = load_model(model).facts
    assert facts is not None
    assert facts.n_sentences == 36  # a tenth is held out
    assert "Leave --patience out" in call("train", a, "--tune", "--patience", 3, "-o", model, code=2).stderr


def test_the_way_of_summing_does_not_change_the_model(treebank_file: Path, tmp_path: Path, call: Call) -> None:
    """Over all histories or over the patterns in use."""
    objectives = []
    for inference in ("dense", "patterns"):
        how = (
            "--tags", 3, "--recipe", "paper", "--base-strength", 0.01, "--norm", "elastic", "--inference", inference,
            "--tol", 1e-6,
        )  # fmt: skip
        report = call("train", treebank_file, *how, "-o", tmp_path / "m.vcrf", "--json").stdout
        objectives.append(json.loads(report)["objective"])
    assert objectives[0] == pytest.approx(objectives[1], rel=2e-6)
    assert objectives[0] != objectives[1]  # two ways: rounding differs
    said = call("train", treebank_file, "--inference", "fast", "-o", tmp_path / "n.vcrf", code=2).stderr
    assert "'auto', 'dense', 'patterns'" in said.replace("\n", " ")


def test_the_split_of_the_same_file_can_be_the_development_data(
    treebank_file: Path, tmp_path: Path, call: Call
) -> None:
    """As in treebanks that are one file."""
    args = ("train", treebank_file, "--split", "train", "--dev-split", "test", "-o", tmp_path / "m", "--json")
    assert "dev_token_error" in json.loads(call(*args, "--recipe", "paper", "--base-strength", 0.05).stdout)


@pytest.mark.parametrize("by_folds", [True, False])
def test_tune_chooses_the_strengths(by_folds: bool, treebank_file: Path, tmp_path: Path, call: Call) -> None:
    """By folds or on development data; what is given stays, and the picture is drawn."""
    model, picture = tmp_path / "m.vcrf", tmp_path / "p.svg"
    how = ("--folds", 2) if by_folds else ("--dev-split", "test")
    result = call(
        "train", treebank_file, "--split", "train", "--tune", *how, "--plot", picture, "-o", model, "--json",
        "--recipe", "paper", "--complexity-strength", 0,
    )  # fmt: skip
    report = json.loads(result.stdout)
    rows, best = report["tuning"], report["best"]
    assert len(rows) > 1
    assert best["error"] == min(row["error"] for row in rows)
    assert {row["complexity_strength"] for row in rows} == {0.0}
    assert {row["n_folds"] for row in rows} == ({2} if by_folds else {1})
    assert load(model).base_strength == best["base_strength"]
    assert report["relative_gap"] <= 1e-3
    assert "<svg" in picture.read_text()
    assert "**" not in result.stderr
    assert f"{best['base_strength']:.3g} " in result.stderr
    n_points = len(rows) * (2 if by_folds else 1)
    assert f"tuning 1/{n_points} " in result.stderr
    parts = [report[f"seconds_{what}"] for what in ("reading", "tuning", "solving")]
    assert min(parts) > 0.0
    assert sum(parts) <= report["seconds"]
    assert report["seconds_tuning"] >= sum(row["seconds"] for row in rows)


def test_the_model_remembers_the_columns(corpus: Corpus, tmp_path: Path, call: Call) -> None:
    """A column file from standard input."""
    rows = ["".join(f"{a}\tx\t{b}\n" for a, b in zip(s.tokens, s.labels, strict=True)) for s in corpus]
    path = tmp_path / "m.vcrf"
    call("train", "-", "-o", path, "--recipe", "paper", "--base-strength", 0.05, given="\n".join(rows))
    facts = load_model(path).facts
    assert facts is not None
    assert facts.layout == Layout("columns", 0, 2, 3)


@pytest.mark.parametrize(
    ("content", "args", "message"),
    [
        ("1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n1\tb\t_\tX\t_\t_\t_\t_\t_\t_\n", [], r"d:2: expected ID 2"),
        ("1\ta\t_\t_\tX\t_\t_\t_\t_\t_\n", [], "d:1: expected a label in UPOS, got '_'. XPOS has 'X' here: pass --tag"),
        ("", [], "d: no sentences"),
        ("a\tX\n", ["--tag", "xpos"], "--tag xpos, but a column file has no named columns"),
        ("a\tX\n", ["--split", "train"], "--split train expects sentences with a comment"),
        ("a\tX\n", ["--loss", "nonsense"], "--loss nonsense: expected one of none, auto, hamming, ngram, edit"),
        ("a\tX\n", ["--loss", "nonsense"], "Parameters of a loss follow a colon, as in edit:band=2"),
        ("a\tX\n", ["--loss", "ngram:m=3"], "ngram has no parameter m: it has n, normalised."),
        ("a\tX\n", ["--l1-ratio", "0"], "--l1-ratio must be a number between 0 and 1, both excluded"),
        ("a\tX\n", ["--l1-ratio", "1"], "(at 0 the elastic norm would be --norm l2, at 1 --norm l1), got 1.0."),
        ("a\tX\n", ["--surrogate", "nonsense"], "'--surrogate': 'nonsense' is not one of 'crf', 'structboost'"),
        ("a\tX\n", ["--tol", "-1"], "--tol must be a positive number"),
        ("a\tX\n", ["--constraints", "nonsense"], "nonsense"),
    ],
)  # fmt: skip
def test_bad_data_and_options_are_refused(
    content: str, args: list[str], message: str, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, the place and what to do; no file is left."""
    monkeypatch.chdir(tmp_path)
    Path("d").write_text(content)
    result = call("train", "d", "-o", "m.vcrf", *args, code=2)
    assert message in result.stderr
    assert result.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


def test_the_output_is_checked_before_training(treebank_file: Path, tmp_path: Path, call: Call) -> None:
    """Not after an hour."""
    result = call("train", treebank_file, "-o", tmp_path / "nowhere" / "m", code=2)
    assert "there is no directory" in result.stderr
    assert "sentences" not in result.stderr


def test_what_the_library_warns_of_is_said(treebank_file: Path, tmp_path: Path, call: Call) -> None:
    """The limit on passes is a warning, not a failure."""
    result = call("train", treebank_file, "-o", tmp_path / "m", "--max-passes", 2)
    assert "raise --max-passes" in result.stderr
    assert (tmp_path / "m").exists()


@pytest.fixture(scope="module")
def long_training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data that take many seconds to learn."""
    path = tmp_path_factory.mktemp("long") / "long.conllu"
    path.write_text(conllu(SyntheticLanguage().sample(600)), encoding="utf-8")
    return path


def wait_for_progress(process: object) -> None:
    """Wait until the solver has made a round or two."""
    assert process.stderr is not None  # type: ignore[attr-defined]
    for _ in range(3):
        while b"training" not in (line := process.stderr.readline()):  # type: ignore[attr-defined]
            assert line, "the command ended before it made progress"


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_saves_the_best_model_so_far(long_training: Path, tmp_path: Path) -> None:
    """Exit code 130, the file is a model, and the message says so."""
    path = tmp_path / "m.vcrf"
    with start("train", long_training, "-o", path, "--recipe", "paper", "--base-strength", 1e-4, "--json") as process:
        wait_for_progress(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"Interrupted: the model is the best so far" in err
    assert json.loads(out)["status"] == "INTERRUPTED"
    tagger = load(path)
    assert tagger.status_.name == "INTERRUPTED"
    assert len(tagger.predict([["a", "b"]])[0]) == 2


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_second_ctrl_c_does_not_lose_the_model(long_training: Path, tmp_path: Path) -> None:
    """The first is answered at once; the others change nothing."""
    path = tmp_path / "m.vcrf"
    with start("train", long_training, "-o", path, "--recipe", "paper", "--base-strength", 1e-4) as process:
        wait_for_progress(process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        while b"Interrupted: finishing and writing the model" not in (line := process.stderr.readline()):
            assert line, "the command ended without a word about Ctrl-C"
        for _ in range(20):  # until it ends: while it certifies, builds and writes
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                time.sleep(0.05)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"Interrupted: the model is the best so far" in err
    assert load(path).status_.name == "INTERRUPTED"


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_in_the_search_and_again_in_the_training(long_training: Path, tmp_path: Path) -> None:
    """The first ends the search, the second the training at its best point."""
    path = tmp_path / "m.vcrf"
    args = ("--tune", "--folds", 2, "--recipe", "paper", "--complexity-strength", 0, "--tol", 1e-9)
    with start("train", long_training, "-o", path, *args) as process:
        assert process.stderr is not None
        for sign in (b"tuning 3/", b"training"):
            while sign not in process.stderr.readline():
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"Interrupted: the model is the best so far" in err
    assert load(path).status_.name == "INTERRUPTED"


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("norm", ["l1", "group"])
def test_ctrl_c_in_the_first_scan_writes_nothing(norm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver has no weights yet: what it answers is no model."""
    scan, calls = SmoothObjective.scan, []

    def interrupted(*args: object, **options: object) -> object:
        calls.append(1)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)
        return scan(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(SmoothObjective, "scan", interrupted)
    # These tests may have been started in the background, where Ctrl-C is ignored.
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.default_int_handler)
    data = tmp_path / "few.conllu"
    data.write_text(conllu(SyntheticLanguage().sample(5)), encoding="utf-8")
    result = Call()(
        "train", data, "-o", tmp_path / "m.vcrf", "--recipe", "paper", "--norm", norm, "--threads", 1, code=130
    )
    assert calls
    assert "Interrupted: no file was written." in result.stderr
    assert not (tmp_path / "m.vcrf").exists()


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_before_there_is_a_model_writes_nothing(tmp_path: Path) -> None:
    """While data are being read."""
    with start("train", "-", "-o", tmp_path / "m.vcrf") as process:
        feed(process, b"a\tX\n")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Interrupted: no file was written." in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_kill_leaves_the_old_model(long_training: Path, model: Path, tmp_path: Path) -> None:
    """The file is the old one, whole."""
    path = tmp_path / "m.vcrf"
    path.write_bytes(model.read_bytes())
    with start("train", long_training, "-o", path, "--recipe", "paper", "--base-strength", 1e-4) as process:
        wait_for_progress(process)
        process.kill()
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert path.read_bytes() == model.read_bytes()
    assert load_model(path).n_labels == 5


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["a", "b", "-o", "b"], "--output b is also a file of training data, which would be overwritten"),
        (["a", "-o", "./link"], "--output link is also a file of training data"),
        (["a", "--dev", "b", "-o", "b"], "--output b is also the development data"),
        (["a", "-o", "m", "--tune", "--plot", "a"], "--plot a is also a file of training data"),
        (["a", "-o", "m.png", "--tune", "--plot", "m.png"], "--plot m.png is also the model"),
        (["a", "-o", "m", "--tune", "--plot", "p.xyz"], "ends in .png, .svg, .pdf, got '.xyz'"),
        (["a", "-o", "m", "--plot", "p.png"], "--plot belongs to --tune"),
        (["a", "-o", "m", "--folds", "3"], "--folds belongs to --tune"),
        (
            ["a", "-o", "m", "--complexities", "massart"],
            "--complexities massart is what --complexity-strength multiplies",
        ),
        (
            ["a", "-o", "m", "--complexities", "vc"],
            "'paper', 'general', 'massart', 'rademacher', 'estimate', 'feature'",
        ),
        (["a", "-o", "m", "--dev-split", "dev"], "say which part to train on with --split NAME"),
        (["a", "-o", "m", "--split", "dev", "--dev-split", "dev"], "data a are trained on too"),
        (["a", "-o", "m", "--dev", "link"], "data link are trained on too"),
        (["a", "-o", "m", "--dev", "a", "--split", "x"], "data a are trained on too"),
    ],
)
def test_calls_that_cost_data_or_hours_are_refused_at_once(
    args: list[str], message: str, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, before data are read; every file is as it was."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(name).write_text("x\tX\n")
    Path("link").symlink_to("a")
    result = call("train", *args, code=2)
    assert message in result.stderr
    assert "sentences," not in result.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(("a", "b", "link"), "x\tX\n")


def test_a_picture_without_matplotlib_is_refused_at_once(
    treebank_file: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not after the tuning."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    result = call("train", treebank_file, "--tune", "--plot", tmp_path / "p.png", "-o", tmp_path / "m", code=2)
    assert "pip install '.[plots]'" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_picture_that_fails_leaves_the_model(
    treebank_file: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes last, and is written whole or not at all."""

    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    call(
        "train", treebank_file, "--tune", "--folds", 2, "--plot", tmp_path / "p.png", "-o", tmp_path / "m",
        "--recipe", "paper", "--complexity-strength", 0, "--tol", 0.1, code=1,
    )  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert load_model(tmp_path / "m").n_labels == 5


def test_many_labels_are_told_before_the_training(tmp_path: Path) -> None:
    """In the words of the command line, while nothing is there to wait for yet."""
    data = tmp_path / "many.tsv"
    data.write_text("".join(f"w{i}\tL{i}\n" + "\n" * (i % 10 == 9) for i in range(3000)), encoding="utf-8")
    with start("train", data, "-o", tmp_path / "m.vcrf", "--threads", 1, "--inference", "dense") as process:
        assert process.stderr is not None
        while b"3,000 labels in tag patterns" not in (line := process.stderr.readline()):
            assert line, "the command ended without a word"
        process.kill()
    assert b"Use fewer labels (a coarser column of tags), --tags 1, or fewer sentences." in line


def test_too_many_labels_are_refused_with_the_option(tmp_path: Path, call: Call) -> None:
    """The library's parameter is `tags`."""
    data = tmp_path / "many.tsv"
    data.write_text("".join(f"w{i}\tL{i}\n" + "\n" * (i % 10 == 9) for i in range(70_000)), encoding="utf-8")
    result = call("train", data, "-o", tmp_path / "m.vcrf", code=1)
    assert "Lower --tags (now 2) or use fewer labels" in result.stderr
