from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vcrf import VCRF, read_corpus
from vcrf.data import Corpus
from vcrf.data.layout import conllu_layout
from vcrf.errors import InputError, WriteError
from vcrf.web.annotating import RETRAINED, Annotating, PoolFile, open_annotating
from vcrf.web.limits import Refused
from vcrf.web.models import Models

from .conftest import N_TRAIN, opened

POOL = slice(N_TRAIN, N_TRAIN + 8)


@pytest.fixture
def pool(corpus: Corpus) -> list[tuple[list[str], str]]:
    """Sentences to label."""
    return [(tokens, f"pool.txt:{i}") for i, tokens in enumerate(corpus.tokens[POOL], 1)]


@pytest.fixture
def annotating(models: Any, pool: Any, corpus: Corpus, tmp_path: Path) -> Annotating:
    """A Label view with training data."""
    own = Models(list(models))
    return Annotating(own, pool, tmp_path / "answers.conllu", corpus[:N_TRAIN], conllu_layout("upos"))


def test_an_answer_is_in_the_file_at_once_and_a_new_service_goes_on(
    annotating: Annotating, pool: Any, corpus: Corpus, models: Any
) -> None:
    """The file is CoNLL-U that can be trained on; a service that starts with it leaves out what is answered."""
    for i in (0, 3):
        annotating.answer(pool[i][0], corpus.labels[POOL][i])
    read = read_corpus(annotating.path)
    assert (read.tokens, read.labels) == ([pool[0][0], pool[3][0]], [corpus.labels[POOL][i] for i in (0, 3)])
    again = Annotating(Models(list(models)), pool, annotating.path)
    view = again.view(50, "least-confidence", "sentence")
    assert (view["n_answers"], view["n_left"]) == (2, 6)
    assert pool[0][0] not in [task["tokens"] for task in view["tasks"]]
    assert again.export() == annotating.export() == annotating.path.read_text("utf-8")


def test_two_services_on_one_file_lose_nothing(annotating: Annotating, pool: Any, corpus: Corpus, models: Any) -> None:
    """Each takes in what the other has written; a file that was taken away is written whole."""
    other = Annotating(Models(list(models)), pool, annotating.path)
    for i, service in enumerate((annotating, other, annotating, other)):
        assert service.answer(pool[i][0], corpus.labels[POOL][i]) == {"n_answers": i + 1}
    assert read_corpus(annotating.path).tokens == [tokens for tokens, _ in pool[:4]]
    annotating.path.unlink()
    assert other.answer(pool[4][0], corpus.labels[POOL][4]) == {"n_answers": 5}


def test_a_second_answer_replaces_the_first(annotating: Annotating, pool: Any) -> None:
    """One answer a sentence."""
    tokens = pool[0][0]
    first, second = (annotating.models.get().tagger.classes_[i] for i in (0, 1))
    annotating.answer(tokens, [first] * len(tokens))
    assert annotating.answer(tokens, [second] * len(tokens)) == {"n_answers": 1}
    assert read_corpus(annotating.path).labels == [[second] * len(tokens)]


def test_a_full_disk_loses_no_answer(annotating: Annotating, pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be written is not counted, and what was written before stays."""
    label = annotating.models.get().tagger.classes_[0]
    annotating.answer(pool[0][0], [label] * len(pool[0][0]))
    kept = annotating.path.read_bytes()

    def full(_: Path) -> Any:
        raise WriteError("answers.conllu: cannot be written: No space left on device.")

    monkeypatch.setattr("vcrf.web.annotating.replacing_text", full)
    with pytest.raises(WriteError):
        annotating.answer(pool[1][0], [label] * len(pool[1][0]))
    assert annotating.path.read_bytes() == kept
    assert annotating.view(1, "margin", "sentence")["n_answers"] == 1
    for client in opened(annotating.models, annotating=annotating):
        reply = client.post("/api/v1/label/answers", json={"tokens": pool[1][0], "labels": [label] * len(pool[1][0])})
        assert (reply.status_code, "disk full" in reply.text, "conllu" in reply.text) == (507, True, False)


@pytest.mark.parametrize(
    ("tokens", "labels", "said"),
    [(["no", "such"], ["X", "X"], "a sentence of the pool"), (None, ["X"], "one of the model's labels")],
)
def test_answers_are_checked(annotating: Annotating, pool: Any, tokens: Any, labels: Any, said: str) -> None:
    """Only sentences of the pool, and labels of the model."""
    with pytest.raises(Refused, match=said):
        annotating.answer(tokens or pool[0][0], labels)


def test_training_takes_the_answers_in(annotating: Annotating, pool: Any, corpus: Corpus) -> None:
    """The new model is written, named, and suggests from then on."""
    with pytest.raises(Refused, match="no answers yet"):
        annotating.retrain()
    for i in range(3):
        annotating.answer(pool[i][0], corpus.labels[POOL][i])
    annotating.retrain()
    while annotating.retraining.is_running:
        time.sleep(0.05)
    assert annotating.retraining.message.startswith("Trained on 3 answers")
    assert annotating.model_path.exists()
    new = annotating.models.get(RETRAINED)
    assert new.facts is not None
    assert new.facts.n_sentences == N_TRAIN + 3
    assert annotating.view(1, "entropy", "token")["model"] == RETRAINED


def test_a_service_that_starts_again_goes_on_with_the_retrained_model(
    annotating: Annotating, pool: Any, corpus: Corpus, models: Any
) -> None:
    """It is read, listed and suggests; one with other labels is refused, and the name of another model is kept."""
    annotating.answer(pool[0][0], corpus.labels[POOL][0])
    annotating.retrain()
    while annotating.retraining.is_running:
        time.sleep(0.05)
    own = Models(list(models))
    again = Annotating(own, pool, annotating.path)
    assert [served.name for served in own] == ["good", "poor", RETRAINED]
    assert again.view(1, "entropy", "token")["model"] == RETRAINED
    taken = Models([replace(models.get("good"), name=RETRAINED)])
    assert Annotating(taken, pool, annotating.path).tagger_name() == f"{RETRAINED}-2"
    assert taken.get(RETRAINED).path != annotating.model_path
    labels = [["X", "Y"] for _ in range(4)]
    VCRF(recipe="paper").fit([["a", "b"]] * 4, labels).save(annotating.model_path)
    with pytest.raises(InputError, match="other labels than"):
        Annotating(Models(list(models)), pool, annotating.path)


def test_two_tabs_get_different_sentences(annotating: Annotating, pool: Any) -> None:
    """Each keeps its own when it asks again; the last ones are shared, and after a while everything is free."""
    first, second, again = (
        [tuple(task["tokens"]) for task in annotating.view(3, "entropy", "sentence", who)["tasks"]]
        for who in ("a", "b", "a")
    )
    assert not set(first) & set(second)
    assert first == again
    everything = annotating.view(50, "entropy", "sentence", "c")["tasks"]
    assert len(everything) == len(pool) - 6
    assert not any(task["is_shared"] for task in everything)
    rest = annotating.view(50, "entropy", "sentence", "d")["tasks"]
    assert len(rest) == len(pool)
    assert all(task["is_shared"] for task in rest)
    annotating.handing.seconds = 0.0
    assert not any(task["is_shared"] for task in annotating.view(50, "entropy", "sentence", "e")["tasks"])
    assert annotating.view(0, "entropy", "sentence", "e")["tasks"] == []


def test_without_training_data_it_says_so(models: Any, pool: Any, tmp_path: Path) -> None:
    """The button is off, and a request is refused."""
    found = Annotating(Models(list(models)), pool, tmp_path / "answers.conllu")
    assert found.view(1, "margin", "token")["can_retrain"] is False
    with pytest.raises(Refused, match="--train FILE"):
        found.retrain()


def test_files_that_are_something_else_are_refused(models: Any, pool: Any, treebank: Path, tmp_path: Path) -> None:
    """Answers never overwrite a treebank, and a pool has sentences."""
    with pytest.raises(InputError, match="is no file of answers"):
        Annotating(models, pool, treebank)
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n", encoding="utf-8")
    with pytest.raises(InputError, match="no sentences to label"):
        open_annotating(models, PoolFile(empty, tmp_path / "answers.conllu"))


def test_the_interface_of_the_label_view(models: Any, annotating: Annotating, pool: Any) -> None:
    """Tasks, answers, export and training over the wire."""
    for client in opened(models, annotating=annotating):
        view = client.get("/api/v1/label", params={"n": 2}).json()
        assert len(view["tasks"]) == 2
        task = view["tasks"][0]
        reply = client.post("/api/v1/label/answers", json={"tokens": task["tokens"], "labels": task["labels"]})
        assert reply.json() == {"n_answers": 1}
        assert client.get("/api/v1/label/export").text == annotating.path.read_text("utf-8")
        assert client.post("/api/v1/label/answers", json={"tokens": task["tokens"]}).status_code == 400
        assert client.post("/api/v1/label/retrain", json={}).status_code == 202
        while annotating.retraining.is_running:
            time.sleep(0.05)
        assert pool
