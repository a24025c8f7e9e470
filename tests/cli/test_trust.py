"""`vcrf calibrate`, `trust`, `suggest`, and what `tag` does with a calibrated model."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import pytest

from commands import Call, conllu
from vcrf import load
from vcrf.data import SyntheticLanguage

LANGUAGE = SyntheticLanguage(n_labels=5, n_stems=60, mean_length=6.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, call: Call) -> Path:
    """A model, and the same calibrated, with files to calibrate, test and label."""
    where = tmp_path_factory.mktemp("trust")
    corpus = LANGUAGE.sample(420, seed=5)
    for name, part in (("train", corpus[:60]), ("dev", corpus[60:360]), ("test", corpus[360:])):
        (where / f"{name}.conllu").write_text(conllu(part), encoding="utf-8")
    (where / "new.txt").write_text("\n".join(" ".join(x) for x in corpus[360:].tokens) + "\n", encoding="utf-8")
    call("train", where / "train.conllu", "-o", where / "plain.vcrf")
    call("calibrate", where / "plain.vcrf", where / "dev.conllu", "-o", where / "model.vcrf")
    return where


def test_calibrate_prints_and_writes(folder: Path, call: Call) -> None:
    """JSON agrees with the model that was written; the old model has nothing."""
    found = json.loads(
        call("calibrate", folder / "plain.vcrf", folder / "dev.conllu", "-o", folder / "again.vcrf", "--json").stdout
    )
    again = load(folder / "again.vcrf")
    assert found["calibration_temperature"] == again.model_.calibration.calibration_temperature
    assert [p["max_error"] for p in found["promises"]] == [0.005, 0.01, 0.02, 0.05, 0.1, 0.2]
    assert found["sentences"] == 300
    assert load(folder / "plain.vcrf").model_.calibration is None
    assert "with 300 sentences, at temperature" in call("show", folder / "again.vcrf").stdout
    for name, is_calibrated in (("plain", False), ("again", True)):
        shown = json.loads(call("show", folder / f"{name}.vcrf", "--json").stdout)
        assert (shown["calibration"] is not None) == is_calibrated
    assert (folder / "again.vcrf").read_bytes() == (folder / "model.vcrf").read_bytes()


def test_the_strictest_promise_that_can_be_kept_is_named(folder: Path, call: Call) -> None:
    """By the same procedure as every other, on fixed levels; a choice among the rows has less confidence."""
    asked = ("calibrate", folder / "plain.vcrf", folder / "dev.conllu", "-o", folder / "levels.vcrf")
    found = json.loads(call(*asked, "--json").stdout)
    tagger = load(folder / "levels.vcrf")
    kept = [level for level in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2) if tagger.acceptance(level).is_any]
    assert kept
    assert kept[0] > 0.005
    assert found["strictest"] == {
        "max_error": kept[0], "share": tagger.acceptance(kept[0]).share, "confidence": 0.95,
        "confidence_if_chosen_afterwards": pytest.approx(0.7),
    }  # fmt: skip
    text = " ".join(call(*asked).stdout.split())
    assert f"--max-error {100.0 * kept[0]:g}%" in text
    assert "chosen because of what it accepts the confidence is at least 70 %" in text
    few = folder / "few.conllu"
    few.write_text("".join((folder / "dev.conllu").read_text(encoding="utf-8").partition("\n\n")[:2]), encoding="utf-8")
    none = ("calibrate", folder / "plain.vcrf", few, "-o", folder / "levels.vcrf")
    assert json.loads(call(*none, "--json").stdout)["strictest"] is None
    assert "None of these can be kept" in call(*none).stdout


def test_tag_marks_what_is_to_be_checked(folder: Path, call: Call) -> None:
    """In every format; --review has just those sentences; the promise is said on stderr."""
    tagger = load(folder / "model.vcrf")
    X = [line.split() for line in (folder / "new.txt").read_text(encoding="utf-8").splitlines()]
    expected = tagger.predict_selective(X, 0.1, 0.9)
    assert expected.acceptance.is_any
    checks = [[not ok for ok in row] for row in expected.accepted]
    asked = ("tag", folder / "model.vcrf", folder / "new.txt", "--max-error", "10%", "--confidence", "90%")
    result = call(*asked, "--review", folder / "review.conllu")
    assert "with 90 % confidence at most 10 % of them are wrong" in result.stderr
    rows = [line.split("\t") for line in result.stdout.splitlines() if line and line[0] != "#"]
    assert [row[9] == "Check=Yes" for row in rows] == [c for row in checks for c in row]
    n_review = (folder / "review.conllu").read_text(encoding="utf-8").count("# text")
    assert n_review == sum(map(any, checks))
    as_json = [json.loads(line) for line in call(*asked, "--format", "json").stdout.splitlines()]
    assert [row["check"] for row in as_json] == checks
    tsv = [line.split("\t") for line in call(*asked, "--format", "tsv").stdout.splitlines() if line]
    assert [row[2] == "Yes" for row in tsv] == [c for row in checks for c in row]


def test_tag_writes_label_sets_and_a_report(folder: Path, call: Call) -> None:
    """Sets as the library gives them; errors expected with an interval that holds the true number."""
    tagger = load(folder / "model.vcrf")
    X = [line.split() for line in (folder / "new.txt").read_text(encoding="utf-8").splitlines()]
    result = call(
        "tag", folder / "model.vcrf", folder / "new.txt", "--label-sets", "5%", "--format", "json", "--report"
    )
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["label_sets"] for row in rows] == tagger.predict_sets(X, 0.05).sets
    for text in (
        "--max-error 1%:",
        "--max-error 5%:",
        "Expected wrong labels:",
        "No sign that this text differs",
        "least sure: line",
    ):
        assert text in result.stderr
    said = next(line for line in result.stderr.splitlines() if "95 % interval" in line)
    low, high = said.split("95 % interval ")[1].split(",")[0].split(" to ")
    wrong = json.loads(call("eval", folder / "model.vcrf", folder / "test.conllu", "--json").stdout)
    assert int(low) <= round(wrong["token_error"] * wrong["tokens"]) <= int(high)


def test_drift_sets_off_the_alarm(folder: Path, call: Call) -> None:
    """Words of another language."""
    other = SyntheticLanguage(n_labels=5, n_stems=60, mean_length=6.0, seed=9).sample(60)
    text = "\n".join(" ".join(x) for x in other.tokens)
    result = call("tag", folder / "model.vcrf", "--report", given=text + "\n")
    assert "The guarantee was made for other text" in result.stderr


def test_trust_shows_the_table(folder: Path, call: Call) -> None:
    """All pairs, and the picture."""
    picture = folder / "trust.svg"
    asked = ("trust", folder / "model.vcrf", folder / "test.conllu", "--max-error", "10%", "--max-error", "0.2")
    found = json.loads(call(*asked, "--plot", picture, "--json").stdout)
    assert [(row["max_error"], row["confidence"]) for row in found["promises"]] == [
        (a, c) for a in (0.1, 0.2) for c in (0.9, 0.95, 0.99)
    ]
    assert picture.stat().st_size > 1000
    assert "tokens accepted" in call(*asked).stdout


def test_pooled_promises(folder: Path, call: Call) -> None:
    """--average pooled marks what Python does not accept, and says how the tokens are counted."""
    tagger = load(folder / "model.vcrf")
    X = [line.split() for line in (folder / "new.txt").read_text(encoding="utf-8").splitlines()]
    asked = ("--max-error", "20%", "--average", "pooled", "--longest", 9)
    result = call("tag", folder / "model.vcrf", folder / "new.txt", *asked, "--format", "json")
    found = tagger.predict_selective(X, 0.2, average="pooled", longest=9)
    assert [json.loads(line)["check"] for line in result.stdout.splitlines()] == [
        [not a for a in row] for row in found.accepted
    ]
    assert "of at most 9 tokens" in result.stderr
    table = json.loads(call("trust", folder / "model.vcrf", folder / "test.conllu", *asked, "--json").stdout)
    assert table["average"] == "pooled"
    assert {row["longest"] for row in table["promises"]} == {9}


def test_suggestions_go_out_and_come_back(folder: Path, call: Call) -> None:
    """The same sentences in every format, and what a tool answers can be trained on."""
    asked = ("suggest", folder / "model.vcrf", folder / "new.txt", "-n", 5)
    lines = [json.loads(line) for line in call(*asked, "--to", "jsonl").stdout.splitlines()]
    assert len(lines) == 5
    scores = [line["usefulness"] for line in lines]
    assert scores == sorted(scores, reverse=True)
    studio = json.loads(call(*asked, "--to", "label-studio").stdout)
    assert [task["data"]["tokens"] for task in studio] == [line["tokens"] for line in lines]
    assert [task["predictions"][0]["score"] for task in studio] == [line["probability"] for line in lines]
    for task in studio:
        task["annotations"] = task.pop("predictions")
    (folder / "answers.json").write_text(json.dumps(studio), encoding="utf-8")
    call("train", folder / "train.conllu", folder / "answers.json", "-o", folder / "more.vcrf", "--tol", 0.1)
    assert load(folder / "more.vcrf").model_.facts.n_sentences == 65
    assert call(*asked).stdout.count("# text = ") == 5
    assert len(call(*asked, "--to", "prodigy").stdout.splitlines()) == 5


def test_seen_sentences_are_told(folder: Path, call: Call) -> None:
    """Half of the training file is refused with its name; --allow-seen takes it, and says so on stderr."""
    sentences = (folder / "train.conllu").read_text(encoding="utf-8").strip().split("\n\n")
    (folder / "half.conllu").write_text("\n\n".join(sentences[::2]) + "\n\n", encoding="utf-8")
    asked = ("calibrate", folder / "plain.vcrf", folder / "half.conllu", "-o", folder / "seen.vcrf")
    message = call(*asked, code=2).stderr
    assert f"{folder / 'half.conllu'}: " in message
    assert "that the model was trained on" in message
    assert "pass --allow-seen." in message
    assert not (folder / "seen.vcrf").exists()
    result = call(*asked, "--allow-seen", "--json")
    shown = json.loads(result.stdout)
    assert shown["sentences"] == 30
    assert shown["seen"]["sentences"] == shown["seen"]["of"] > 0
    n = shown["seen"]["of"]
    assert f"{n} of the {n} sentences that are compared were seen in training." in call(*asked, "--allow-seen").stdout
    assert "promises look better than they are" in result.stderr


def test_text_is_written_compressed(folder: Path, call: Call) -> None:
    """--output, --review and what `suggest` writes, by their names; and can be read again."""
    asked = ("tag", folder / "model.vcrf", folder / "new.txt", "--max-error", "0.1%")
    plain = call(*asked).stdout
    call(*asked, "-o", folder / "out.conllu.gz", "--review", folder / "check.conllu.xz")
    assert gzip.decompress((folder / "out.conllu.gz").read_bytes()).decode() == plain
    assert lzma.decompress((folder / "check.conllu.xz").read_bytes()).decode().startswith("# text")
    call("suggest", folder / "model.vcrf", folder / "out.conllu.gz", "-n", 2, "-o", folder / "next.conllu.gz")
    assert gzip.decompress((folder / "next.conllu.gz").read_bytes()).count(b"# usefulness = ") == 2
    for name in ("new.vcrf.gz", "new.vcrf.XZ"):  # models are not text
        for asked in (("train", folder / "train.conllu"), ("calibrate", folder / "plain.vcrf", folder / "dev.conllu")):
            assert "a model file is not compressed" in call(*asked, "-o", folder / name, code=2).stderr


def test_guesses_that_nobody_answered_are_not_trained_on(folder: Path, call: Call) -> None:
    """In the formats of tools; where some are answered the others are counted."""
    asked = ("suggest", folder / "model.vcrf", folder / "new.txt", "-n", 3)
    for to in ("prodigy", "jsonl"):
        path = folder / f"{to}.jsonl"
        call(*asked, "--to", to, "-o", path)
        assert "no task has an answer yet" in call("train", path, "-o", folder / "no.vcrf", code=2).stderr
        first, *others = path.read_text(encoding="utf-8").splitlines()
        answer = json.dumps({**json.loads(first), "answer": "accept"})
        path.write_text("\n".join([answer, *others]) + "\n", encoding="utf-8")
        result = call("eval", folder / "model.vcrf", path, "--json")
        assert json.loads(result.stdout)["sentences"] == 1
        assert f"{path}: 2 of 3 tasks have no answer yet and are left out." in result.stderr
        assert "JSON, as annotation tools write it" in call("suggest", folder / "model.vcrf", path, code=2).stderr
    path = folder / "guessed.conllu"
    call(*asked, "-o", path)
    assert "no sentence has an answer yet" in call("train", path, "-o", folder / "no.vcrf", code=2).stderr
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("# answer = none", "# answer = accept", 2), encoding="utf-8")
    result = call("eval", folder / "model.vcrf", path, "--json")
    assert json.loads(result.stdout)["sentences"] == 2
    assert f"{path}: 1 of 3 sentences have no answer yet and are left out." in result.stderr


def test_open_labels_are_named_by_their_place(folder: Path, call: Call) -> None:
    """Calibration needs every label: the task without one is named."""
    path = folder / "open.jsonl"
    path.write_text('{"tokens": ["a"], "labels": ["X"]}\n\n{"tokens": ["a"], "labels": [null]}\n', encoding="utf-8")
    for command in ("calibrate", "trust"):
        assert f"{path}:3, token 0: a label must be" in call(command, folder / "model.vcrf", path, code=2).stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("tag", "plain.vcrf", "new.txt", "--max-error", "1%"), "vcrf calibrate plain.vcrf DATA"),
        (("tag", "plain.vcrf", "new.txt", "--report"), "vcrf calibrate plain.vcrf DATA"),
        (("trust", "plain.vcrf", "test.conllu"), "vcrf calibrate plain.vcrf DATA"),
        (("tag", "model.vcrf", "new.txt", "--max-error", "2"), "expected a share between 0 and 1"),
        (("tag", "model.vcrf", "new.txt", "--max-error", "1%", "--nbest", "2"), "about the best labels"),
        (("tag", "model.vcrf", "new.txt", "--review", "x"), "add --max-error"),
        (("tag", "model.vcrf", "new.txt", "--max-error", "1%", "--unit", "span"), "--unit span needs labels"),
        (("tag", "model.vcrf", "new.txt", "--average", "pooled"), "add --max-error"),
        (("tag", "model.vcrf", "new.txt", "--label-sets", "5%", "--confidence", "90%"), "add --max-error"),
        (("tag", "model.vcrf", "new.txt", "--unit", "sentence"), "add one of these"),
        (("tag", "model.vcrf", "new.txt", "--max-error", "5%", "--review", "x", "-o", "x"), "is also --output"),
        (("tag", "model.vcrf", "new.txt", "--max-error", "1%", "--longest", "9"), "--longest is for"),
        (("trust", "model.vcrf", "test.conllu", "--longest", "9"), "--longest is for"),
        (("calibrate", "plain.vcrf", "train.conllu"), "was trained on"),
        (("train", "nothere.conllu", "--start", "nothere.vcrf", "-o", "x.vcrf"), "nothere.vcrf"),
        (("suggest", "model.vcrf", "new.txt", "--by", "span"), "--by span needs labels"),
    ],
)
def test_wrong_calls_say_what_to_do(
    folder: Path, call: Call, args: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, no traceback."""
    monkeypatch.chdir(folder)
    assert message in call(*args, code=2).stderr
