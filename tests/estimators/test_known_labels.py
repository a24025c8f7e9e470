"""Known labels: what a frequent word was not seen with has probability 0, in training, in prediction and in a file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vcrf import M3N, VCRF, load
from vcrf.data import SyntheticLanguage
from vcrf.decoding.constraints import Constraints
from vcrf.errors import InputError
from vcrf.families import intern_sentences
from vcrf.labelling.explain import explain
from vcrf.labelling.loading import load_tagger
from vcrf.problem import learn_known_labels

CORPUS = SyntheticLanguage(n_labels=5, n_stems=25).sample(40, seed=4)


@pytest.fixture(scope="module")
def tagger() -> VCRF:
    """Words of three occurrences take what they were seen with."""
    return VCRF(recipe="paper", known_labels=3, tags=2, affix=2, words=1).fit(CORPUS.tokens, CORPUS.labels)


def seen(least: int) -> dict[str, set[str]]:
    """The labels of each word that occurs often enough."""
    labels: dict[str, list[str]] = {}
    for tokens, y in zip(CORPUS.tokens, CORPUS.labels, strict=True):
        for token, label in zip(tokens, y, strict=True):
            labels.setdefault(token, []).append(label)
    return {word: set(found) for word, found in labels.items() if len(found) >= least}


def test_words_take_what_they_were_seen_with(tagger, tmp_path):
    """Protects the dictionary in prediction, marginals, draws, a saved file, and a copy without the estimator."""
    known = seen(3)
    assert 0 < len(known) < len({token for tokens in CORPUS.tokens for token in tokens})
    tagger.save(tmp_path / "known.vcrf")
    others = SyntheticLanguage(n_labels=5, n_stems=25).sample(20, seed=5).tokens
    for same in (tagger, load(tmp_path / "known.vcrf"), load_tagger(tmp_path / "known.vcrf")):
        assert same.predict(others) == tagger.predict(others)
        for tokens, marginals in zip(others, same.predict_marginals(others), strict=True):
            for token, here in zip(tokens, marginals, strict=True):
                assert sum(here.values()) == pytest.approx(1.0)
                if token in known:
                    assert {label for label, p in here.items() if p > 0.0} <= known[token]
    assert same.model_.known.told == tagger.model_.known.told
    assert f"{len(known)} words" in tagger.model_.known.told


def test_training_never_looks_at_other_labels(tagger):
    """Protects the objective: less is summed over, and it is certified all the same."""
    assert tagger.gap_ <= 1e-3 * tagger.objective_
    free = VCRF(recipe="paper", tags=2, affix=2, words=1).fit(CORPUS.tokens, CORPUS.labels)
    assert tagger.objective_ <= free.objective_ * (1.0 + 1e-6)


def test_a_label_that_is_asked_for_wins(tagger):
    """Protects `allowed`: what a person says of a token outranks the dictionary; constraints go with it."""
    word = next(word for word, labels in seen(3).items() if len(labels) == 1)
    (own,) = seen(3)[word]
    other = next(label for label in tagger.classes_ if label != own)
    assert tagger.predict([[word]]) == [[own]]
    assert tagger.predict([[word]], allowed=[[other]]) == [[other]]
    ((every,),) = tagger.predict_marginals([[word]], allowed=[[set(tagger.classes_)]])
    assert min(every.values()) > 0.0
    assert tagger.predict([[word, word]], constraints=[(other, other)]) == [[own, own]]


def test_constraints_outrank_the_dictionary():
    """Protects ordinary text: where both leave nothing, a sentence follows the constraints; others follow both."""
    X, y = [["a", "b"], ["c", "d"]], [["B-X", "I-X"], ["O", "O"]]
    how = {"known_labels": 1, "constraints": "BIO"}
    strict = VCRF(**how).fit(X, y)
    (both, only) = strict.predict([["c", "b"], ["c", "d"]])
    assert both in (["B-X", "I-X"], ["O", "O"], ["O", "B-X"], ["B-X", "O"], ["B-X", "B-X"])
    assert only == ["O", "O"]
    free = VCRF(**how).fit(X, y)
    free.model_ = replace(free.model_, known=None)
    assert strict.predict_marginals([["c", "b"]]) == free.predict_marginals([["c", "b"]])
    # What a caller asks for stays in force.
    assert strict.predict([["c", "b"]], allowed=[[None, "I-X"]]) == [["B-X", "I-X"]]
    with pytest.raises(InputError, match="leave no label sequence"):
        strict.predict([["c", "b"]], allowed=[["O", "I-X"]])
    with pytest.raises(InputError, match="leave no label sequence"):
        strict.predict([["c"]], constraints=Constraints(forbidden_starts=["B-X", "I-X", "O"]))
    held = VCRF(**how, patience=3).fit(X, y, X_dev=[["c", "b"], ["c", "d"]], y_dev=[["O", "B-X"], ["O", "O"]])
    wrong = sum(a != b for a, b in zip(held.predict([["c", "b"]])[0], ["O", "B-X"], strict=True))
    assert min(record.dev_error for record in held.history_) == pytest.approx(wrong / 4)


def test_it_is_said_why(tagger):
    """Protects explanations: what a word may have, and no runner-up where that is one label."""
    word = next(word for word, labels in seen(3).items() if len(labels) == 1)
    found, new = explain(tagger, [word, "neverseen"])
    assert found.known == tuple(seen(3)[word])
    assert found.runner_up is None
    assert new.known is None


def test_open_labels_widen_what_words_may_have():
    """Protects tokens with a set: it keeps a label where its word was seen with none of it."""
    text = intern_sentences([["a", "a", "a", "b"]])
    allowed = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]], np.uint8)
    known = learn_known_labels(text, np.array([0, 0, 1, 0], np.uint32), 3, 2, allowed)
    assert known.masks(text).astype(int).tolist() == [[1, 1, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1]]
    allowed[2] = [1, 1, 0]
    known = learn_known_labels(text, np.array([0, 0, 0, 0], np.uint32), 3, 2, allowed)
    assert known.masks(text).astype(int).tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 1]]


def test_what_does_not_go_with_them_is_refused():
    """Protects messages that name the other parameter."""
    given = CORPUS.tokens, CORPUS.labels
    for parameters, name in (
        ({"norm": "group"}, "norm='group'"),
        ({"inference": "dense"}, "inference='dense'"),
        ({"tags": 3}, "tags"),
        ({"solver": "sgd", "recipe": "paper"}, "solver='sgd'"),
        ({"loss": "edit"}, "known_labels"),
        ({"families": "paper"}, "tags"),
    ):
        with pytest.raises(InputError, match=name):
            VCRF(known_labels=2, **parameters).fit(*given)
    with pytest.raises(InputError, match="surrogate='m3n'"):
        M3N(known_labels=2).fit(*given)
    with pytest.raises(InputError, match="given attributes"):
        VCRF(known_labels=2).fit([[{"a": 1.0}]], [["X"]])
    with pytest.raises(InputError, match="known_labels"):
        VCRF(known_labels=0).fit(*given)
    with pytest.raises(InputError, match=r"known_labels.*must be an integer from 1 to"):
        VCRF(known_labels=10**20).fit(*given)
