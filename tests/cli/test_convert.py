"""Old models: pickles and CRFsuite files to ours and back, on the command line too; nothing in a pickle is run."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import joblib
import pytest

from commands import Call
from vcrf import load
from vcrf.compat import CRF
from vcrf.compat.conversion import read_any
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError

sklearn_crfsuite = pytest.importorskip("sklearn_crfsuite")
pycrfsuite = pytest.importorskip("pycrfsuite")

CORPUS = SyntheticLanguage(n_labels=4, seed=5, mean_length=6.0, n_stems=60).sample(40, seed=6)
X = [[{"w": w, "s": w[-2:], "n": len(w) / 8} for w in tokens] for tokens in CORPUS.tokens]


@pytest.fixture(scope="module")
def old() -> Any:
    """A model of sklearn_crfsuite."""
    return sklearn_crfsuite.CRF(c1=0.1, c2=0.2, all_possible_transitions=True).fit(X[:30], CORPUS.labels[:30])


@pytest.mark.parametrize("form", ["pickle", "pickle0", "joblib", "zlib", "gzip", "bz2", "xz", "lzma"])
def test_old_models_tag_as_before(old: Any, form: str, tmp_path: Path, call: Call) -> None:
    """However it was written: the same labels and marginals after `vcrf convert`, parameters kept."""
    path = tmp_path / "old.model"
    if form.startswith("pickle"):
        path.write_bytes(pickle.dumps(old, protocol=0 if form == "pickle0" else pickle.HIGHEST_PROTOCOL))
    else:
        joblib.dump(old, path, compress=0 if form == "joblib" else (form, 3))
    call("convert", path, tmp_path / "new.vcrf")
    new = load(tmp_path / "new.vcrf")
    assert new.predict(X) == [list(labels) for labels in old.predict(X)]
    assert (new.c1, new.c2, new.all_possible_transitions) == (0.1, 0.2, True)
    for mine, other in zip(new.predict_marginals(X), old.predict_marginals(X), strict=True):
        for row, other_row in zip(mine, other, strict=True):
            assert row == pytest.approx(other_row, abs=1e-9)


def test_there_and_back_again(old: Any, tmp_path: Path, call: Call) -> None:
    """From CRFsuite to ours and back is the same file; python-crfsuite opens what we trained."""
    first, ours, last = tmp_path / "a.crfsuite", tmp_path / "b.vcrf", tmp_path / "c.crfsuite"
    first.write_bytes(Path(old.modelfile.name).read_bytes())
    report = json.loads(call("convert", first, ours, "--json").stdout)
    assert report["n_labels"] == len(old.classes_)
    call("convert", ours, last)
    assert last.read_bytes() == first.read_bytes()
    crf = CRF(c1=0.1, c2=0.1).fit(X, CORPUS.labels)
    crf.save(ours)
    call("convert", ours, last)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(last))
    assert [tagger.tag(sentence) for sentence in X] == crf.predict(X)


def test_a_calibration_that_is_lost_is_told(tmp_path: Path, call: Call) -> None:
    """CRFsuite's files have no place for it: probabilities are those before."""
    crf = CRF(c1=0.1, c2=0.1).fit(X[:30], CORPUS.labels[:30])
    before = crf.predict_marginals(X[30:32])
    crf.calibrate(X[30:], CORPUS.labels[30:]).save(tmp_path / "a.vcrf")
    said = call("convert", tmp_path / "a.vcrf", tmp_path / "b.crfsuite").stderr
    assert "without the calibration, which CRFsuite's files have no place for: its probabilities" in said
    assert read_any(tmp_path / "b.crfsuite").predict_marginals(X[30:32]) == [
        [pytest.approx(row, abs=1e-9) for row in rows] for rows in before
    ]
    assert "without" not in call("convert", tmp_path / "a.vcrf", tmp_path / "c.vcrf").stderr


def test_commands_on_a_converted_model(old: Any, tmp_path: Path, call: Call) -> None:
    """`show`, `explain` and `tag` work; `tag` reads CRFsuite's data and writes what its own command writes."""
    (tmp_path / "a.crfsuite").write_bytes(Path(old.modelfile.name).read_bytes())
    model = tmp_path / "b.vcrf"
    call("convert", tmp_path / "a.crfsuite", model)
    assert "transitions" in call("show", model).stdout
    explained = json.loads(call("explain", model, json.dumps(X[0]), "--json").stdout)
    assert [token["label"] for token in explained["tokens"]] == list(old.predict_single(X[0]))
    assert "the labels of its neighbours" in call("explain", model, json.dumps(X[0]), "--top", 50).stdout
    data = tmp_path / "data.txt"
    lines = [[f"?\tw\\:{t['w']}\ts\\:{t['s']}\tn:{t['n']}" for t in sentence] for sentence in X]
    data.write_text("\n".join("\n".join([*sentence, ""]) for sentence in lines), encoding="utf-8")
    expected = "".join("\n".join([*old.predict_single(sentence), "", ""]) for sentence in X)
    assert call("tag", model, data, "--input-format", "attributes").stdout == expected
    call("tag", model, data, "--input-format", "attributes", "--marginals", "-o", tmp_path / "out")
    label, probability = (tmp_path / "out").read_text().split("\n")[0].split("\t")
    assert float(probability) == pytest.approx(old.predict_marginals_single(X[0])[0][label], abs=1e-5)


class Evil:
    """Would write a file if it were unpickled as pickle does it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (Path(self.path),)


def test_nothing_in_a_pickle_is_run(tmp_path: Path, call: Call) -> None:
    """A call that a pickle asks for is not made; the file is refused."""
    path = tmp_path / "evil.pickle"
    path.write_bytes(pickle.dumps([Evil(str(tmp_path / "touched")), b"lCRF no model"]))
    result = call("convert", path, tmp_path / "new.vcrf", code=2)
    assert "the CRFsuite file is not valid" in result.stderr
    assert not (tmp_path / "touched").exists()
    assert not (tmp_path / "new.vcrf").exists()
    pickle.loads(path.read_bytes())
    assert (tmp_path / "touched").exists()  # as it would be otherwise


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read as a pickle"),
        (b"text", "cannot be read as a pickle"),
        (b"\x80\x04\x95", "cannot be read as a pickle"),
        (b"\x1f\x8bno gzip", "cannot be read as a pickle"),
        (pickle.dumps({"a": 1}), "found 0 CRFsuite models"),
        (pickle.dumps(sklearn_crfsuite.CRF()), "found 0 CRFsuite models"),
        (b"lCRF", "the CRFsuite file is not valid"),
    ],
)
def test_other_files_are_refused(content: bytes, message: str, tmp_path: Path, call: Call) -> None:
    """With the name of the file and what is expected; exit code 2."""
    path = tmp_path / "in"
    path.write_bytes(content)
    result = call("convert", path, tmp_path / "out.vcrf", code=2)
    assert message in result.stderr
    assert str(path) in result.stderr.replace("\n", "")


def test_the_call_is_checked(tmp_path: Path, call: Call) -> None:
    """An output without a known suffix, or that is the input; lines that are no attributes."""
    path = tmp_path / "m.vcrf"
    CRF().fit(X[:3], CORPUS.labels[:3]).save(path)
    assert "ends in .vcrf or .crfsuite" in call("convert", path, tmp_path / "out", code=2).stderr
    assert "also the input" in call("convert", path, path, code=2).stderr
    (tmp_path / "bad.txt").write_text("A\tw:x:1\n\nB\tn:2\nB\tn:two\n")
    result = call("tag", path, tmp_path / "bad.txt", "--input-format", "attributes", code=2)
    assert "bad.txt:1: expected `name` or `name:value`" in result.stderr
    assert "expected a JSON list" in call("explain", path, "[", code=2).stderr
    assert read_any(path).predict(X[:1])


def test_a_pickle_of_ours_is_told_what_to_do(tmp_path: Path, call: Call) -> None:
    """It is not run; `load` of a pickle names `vcrf convert`."""
    path = tmp_path / "ours.pkl"
    path.write_bytes(pickle.dumps(CRF(c2=0.5).fit(X[:5], CORPUS.labels[:5])))
    assert "call `crf.save('new.vcrf')`" in call("convert", path, tmp_path / "new.vcrf", code=2).stderr.replace(
        "\n", " "
    )
    with pytest.raises(InputError, match=r"`vcrf convert old\.pkl new\.vcrf`"):
        load(path)
