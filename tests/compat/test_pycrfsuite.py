"""The stand-in for python-crfsuite: trainer, tagger, items, logs and dumps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vcrf.compat import CRF
from vcrf.compat import pycrfsuite as ours
from vcrf.compat.pycrfsuite.trainer import _Told
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError

theirs = pytest.importorskip("pycrfsuite")

CORPUS = SyntheticLanguage(n_labels=4, seed=5, mean_length=6.0, n_stems=60).sample(30, seed=6)
X = [[{"w": w, "s": w[-2:], "long": len(w) > 8} for w in tokens] for tokens in CORPUS.tokens]
MIXED = [{"a": {"b": "c", "n": -0.5}, "l": ["x", "y"]}, ["p", "q:1"], {"flag": False, "é": b"\xc3\xa9"}, {}, []]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of a model that the stand-in trained."""
    path = str(tmp_path_factory.mktemp("model") / "m.crfsuite")
    trainer = ours.Trainer("lbfgs", {"c1": 0.1, "c2": 0.2, "feature.possible_transitions": True}, verbose=False)
    for sentence, labels in zip(X, CORPUS.labels, strict=True):
        trainer.append(sentence, labels)
    trainer.train(path)
    return path


def test_trainer_trains_the_crf(path: str) -> None:
    """Parameters have the meaning they have in CRF."""
    crf = CRF(c1=0.1, c2=0.2, all_possible_transitions=True).fit(X, CORPUS.labels)
    with ours.Tagger().open(path) as tagger:
        assert tagger.info().state_features == crf.state_features_
        assert tagger.info().transitions == crf.transition_features_


def test_both_taggers_agree(path: str, tmp_path: Path) -> None:
    """Labels, probabilities, marginals and what a dump tells."""
    mine, other = ours.Tagger(), theirs.Tagger()
    mine.open(path), other.open(path)
    assert mine.labels() == other.labels()
    for sentence in [*X, MIXED]:
        assert mine.tag(sentence) == other.tag(sentence)
        assert mine.tag() == other.tag()
        labels = other.tag()
        assert mine.probability(labels) == pytest.approx(other.probability(labels), abs=1e-9)
        assert mine.marginal(labels[0], 0) == pytest.approx(other.marginal(labels[0], 0), abs=1e-9)
    info, expected = mine.info(), other.info()
    assert (info.labels, info.attributes) == (expected.labels, expected.attributes)
    assert info.header.items() <= expected.header.items() | {("size", info.header["size"])}
    assert info.state_features == pytest.approx(expected.state_features, abs=1e-6)
    mine.dump(str(tmp_path / "dump"))
    parser = ours.CRFsuiteDumpParser()
    for line in (tmp_path / "dump").read_text().splitlines(keepends=True):
        parser.feed(line)
    assert parser.result.transitions == pytest.approx(expected.transitions, abs=1e-6)
    assert parser.result.labels == expected.labels


def test_items_are_flattened_alike() -> None:
    """Texts, numbers, lists, nested dicts and attribute lists."""
    mine, other = ours.ItemSequence(MIXED), theirs.ItemSequence(MIXED)
    assert mine.items() == other.items()
    assert len(mine) == len(other) == 5
    assert repr(mine) == repr(other)
    assert ours.ItemSequence(mine.items()).items() == mine.items()


def test_a_tagger_that_is_closed_says_so(path: str) -> None:
    """No model, no sentence, no such label or file."""
    tagger = ours.Tagger()
    with pytest.raises(ValueError, match=r"call open\(path\)"):
        tagger.tag(X[0])
    with pytest.raises(RuntimeError, match="closed"):
        tagger.info()
    with pytest.raises(OSError):
        tagger.open("no such file")
    with pytest.raises(InputError, match="the bytes given: the CRFsuite file is not valid"):
        tagger.open_inmemory(b"lCRFabc")
    with tagger.open_inmemory(Path(path).read_bytes()):
        with pytest.raises(InputError, match="No sentence"):
            tagger.tag()
        tagger.set(X[0])
        with pytest.raises(InputError, match="no label 'Q' at token 0"):
            tagger.marginal("Q", 0)
        with pytest.raises(InputError, match="at token 99"):
            tagger.marginal(tagger.labels()[0], 99)
    with pytest.raises(ValueError):
        tagger.labels()


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd", "ap", "pa", "arow"])
def test_parameters_are_those_of_python_crfsuite(algorithm: str) -> None:
    """The same names, and values of the same kinds; text is read."""
    mine, other = ours.Trainer(algorithm), theirs.Trainer(algorithm)
    assert set(mine.params()) == set(other.params())
    assert {name: type(value) for name, value in mine.get_params().items()} == {
        name: type(value) for name, value in other.get_params().items()
    }
    mine.set("feature.minfreq", "2")
    assert mine.get("feature.minfreq") == 2.0
    with pytest.raises(InputError, match="is a float, got 'two'"):
        mine.set("feature.minfreq", "two")
    with pytest.raises(InputError, match="Parameter not found: 'foo'"):
        mine.help("foo")


@pytest.mark.parametrize("algorithm", ["averaged-perceptron", "pa", "arow"])
def test_other_algorithms_are_refused_when_they_train(algorithm: str, tmp_path: Path) -> None:
    """With what to use."""
    trainer = ours.Trainer(algorithm)
    trainer.append(X[0], CORPUS.labels[0])
    with pytest.raises(InputError, match="Use algorithm='lbfgs'"):
        trainer.train(str(tmp_path / "m"))
    assert not (tmp_path / "m").exists()


def test_events_of_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Methods are called in their order, with the held-out group's accuracy; state needs no __init__."""

    class Listener(ours.Trainer):
        def __init__(self) -> None:
            self.seen: list[Any] = []

        def on_start(self, log: str) -> None:
            self.seen.append(("start", log))

        def on_iteration(self, log: str, info: dict[str, Any] | None) -> None:
            self.seen.append(("iteration", (log, info)))

        def on_end(self, log: str) -> None:
            self.seen.append(("end", log))

    trainer = Listener()
    for i, (sentence, labels) in enumerate(zip(X, CORPUS.labels, strict=True)):
        trainer.append(sentence, labels, group=int(i >= 20))
    trainer.train(str(tmp_path / "m"), holdout=1)
    names = [name for name, _ in trainer.seen]
    assert (names[0], names[-1]) == ("start", "end")
    assert set(names[1:-1]) == {"iteration"}
    last = trainer.logparser.last_iteration
    expected = CRF().fit(X[:20], CORPUS.labels[:20])
    assert last["item_accuracy_float"] == expected.score(X[20:], CORPUS.labels[20:])
    assert last["loss"] == pytest.approx(expected.objective_, abs=1e-5)
    assert "L-BFGS optimization" in capsys.readouterr().out


@pytest.mark.parametrize("holdout", [-1, 1])
def test_iterations_are_told_while_it_trains(holdout: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each after its round, before the next: a listener that raises ends the training there, and no file is written."""

    class Enough(Exception):
        pass

    class Impatient(ours.Trainer):
        def on_featgen_end(self, log: str) -> None:  # noqa: ARG002
            numbers.append(f"{self.logparser.featgen_num_features} features")

        def on_iteration(self, log: str, info: dict[str, Any] | None) -> None:  # noqa: ARG002
            assert info is not None
            numbers.append(info["num"])
            if info["num"] == 2:
                raise Enough

    numbers: list[Any] = []
    rounds: list[int] = []
    told = _Told._tell_of
    monkeypatch.setattr(_Told, "_tell_of", lambda *args: (rounds.append(1), told(*args))[1])
    trainer = Impatient()
    trainer.set("c1", 0.1)
    for i, (sentence, labels) in enumerate(zip(X, CORPUS.labels, strict=True)):
        trainer.append(sentence, labels, group=int(i >= 20))
    with pytest.raises(Enough):
        trainer.train(str(tmp_path / "m"), holdout=holdout)
    assert numbers[0].endswith(" features")
    assert numbers[1:] == [1, 2]
    # With a group that is held out an iteration is open until the next one.
    assert len(rounds) == (2 if holdout < 0 else 3)
    assert not (tmp_path / "m").exists()


def test_logs_of_crfsuite_are_read(tmp_path: Path) -> None:
    """The log of python-crfsuite itself: as its own parser reads it."""
    trainer = theirs.Trainer(verbose=False)
    for i, (sentence, labels) in enumerate(zip(X, CORPUS.labels, strict=True)):
        trainer.append(sentence, labels, i % 2)
    trainer.train(str(tmp_path / "m"), holdout=1)
    parser = ours.TrainLogParser()
    for piece in trainer.logparser.log:
        parser.feed(piece)
    expected = trainer.logparser
    assert parser.events == expected.events
    assert parser.last_log == expected.last_log
    for mine, other in zip(parser.iterations, expected.iterations, strict=True):
        assert {k: v for k, v in mine.items() if k != "scores"} == {k: v for k, v in other.items() if k != "scores"}
        assert {k: tuple(v) for k, v in mine["scores"].items()} == {k: tuple(v) for k, v in other["scores"].items()}
    for name in ("featgen_num_features", "featgen_percent", "training_seconds"):
        assert getattr(parser, name) == getattr(expected, name)


def test_wrong_sentences_and_nothing_to_train(tmp_path: Path) -> None:
    """Lengths and kinds are checked at once; no sentences give CRFsuite's empty file."""
    trainer = ours.Trainer(verbose=False)
    with pytest.raises(InputError, match="one label a token, got 2 tokens and 1"):
        trainer.append([{}, {}], ["A"])
    with pytest.raises(InputError, match="labels that are text, got 1"):
        trainer.append([{}], [1])
    with pytest.raises(InputError, match="no algorithm 'foo'"):
        trainer.select("foo")
    trainer.append(X[0], CORPUS.labels[0])
    trainer.clear()
    trainer.train(str(tmp_path / "mine"))
    theirs.Trainer(verbose=False).train(str(tmp_path / "other"))
    assert (tmp_path / "mine").read_bytes() == (tmp_path / "other").read_bytes()
