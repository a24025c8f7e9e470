"""The stand-in for sklearn_crfsuite.CRF: the same objective, the same predictions, the same attributes."""

from __future__ import annotations

import inspect
import math
import pickle
from collections import Counter
from typing import Any

import pytest
from sklearn.base import clone

from vcrf.compat import CRF
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError, NotFittedError

sklearn_crfsuite = pytest.importorskip("sklearn_crfsuite")

STRENGTHS = [(0.0, 1.0), (0.0, 0.1), (0.5, 0.1), (0.3, 0.0)]


def features(tokens: list[str]) -> list[dict[str, Any]]:
    """Give each token features of the usual kinds; a flag that is False is an attribute of value 0."""
    return [
        {
            "bias": True,
            "w": w,
            "suffix": w[-2:],
            "before": tokens[t - 1] if t else "<s>",
            "is_long": len(w) > 9,
            "len": len(w) / 8,
        }
        for t, w in enumerate(tokens)
    ]


@pytest.fixture(scope="module")
def data() -> tuple[list[Any], list[list[str]]]:
    """Forty sentences of an invented language."""
    corpus = SyntheticLanguage(n_labels=4, seed=5, mean_length=6.0, n_stems=60).sample(40, seed=6)
    return [features(tokens) for tokens in corpus.tokens], corpus.labels


def crfsuite_objective(X: list[Any], y: list[list[str]], crf: Any, c1: float, c2: float) -> float:
    """CRFsuite's formula at a fitted model's weights, with plain dictionaries."""
    labels, state, transition = crf.classes_, crf.state_features_, crf.transition_features_

    def flat(item: dict[str, Any]) -> dict[str, float]:
        return {
            f"{k}:{v}" if isinstance(v, str) else k: 1.0 if isinstance(v, str) else float(v) for k, v in item.items()
        }

    total = 0.0
    for sentence, reference in zip(X, y, strict=True):
        items = [flat(item) for item in sentence]
        emitted = [{b: sum(v * state.get((a, b), 0.0) for a, v in item.items()) for b in labels} for item in items]
        forward = emitted[0]
        path = emitted[0][reference[0]]
        for t in range(1, len(items)):
            forward = {
                b: emitted[t][b] + math.log(sum(math.exp(forward[a] + transition.get((a, b), 0.0)) for a in labels))
                for b in labels
            }
            path += emitted[t][reference[t]] + transition.get((reference[t - 1], reference[t]), 0.0)
        total += math.log(sum(map(math.exp, forward.values()))) - path
    weights = [*state.values(), *transition.values()]
    return float(total + sum(c1 * abs(w) + c2 * w * w for w in weights))


@pytest.mark.parametrize(("c1", "c2"), STRENGTHS)
@pytest.mark.parametrize("every", [False, True])
def test_objective_is_that_of_crfsuite(data: Any, c1: float, c2: float, every: bool) -> None:
    """Both reach the same minimum of the same objective, and the stand-in is never above."""
    X, y = data
    options: dict[str, Any] = {
        "c1": c1,
        "c2": c2,
        "all_possible_states": every,
        "all_possible_transitions": every,
    }
    ours = CRF(**options, tol=1e-7).fit(X, y)
    theirs = sklearn_crfsuite.CRF(**options, epsilon=1e-9, delta=1e-9, max_iterations=5000).fit(X, y)
    expected = crfsuite_objective(X, y, theirs, c1, c2)
    assert crfsuite_objective(X, y, ours, c1, c2) == pytest.approx(ours.objective_, rel=1e-7)
    assert ours.objective_ == pytest.approx(expected, rel=1e-6)
    assert ours.classes_ == theirs.classes_


@pytest.mark.parametrize("every", [False, True])
def test_twins_were_observed_with_the_same_labels(every: bool) -> None:
    """A flag that is False elsewhere has weights for more labels than a word at the tokens where it is True."""
    X = [[{"flag": True, "w": "a"}, {"flag": False, "w": "b"}], [{"flag": False, "w": "c"}, {"flag": True, "w": "a"}]]
    y = [["A", "B"], ["C", "A"]]
    for c1, c2 in [(0.05, 0.1), (0.0, 0.3), (0.1, 0.0)]:
        options: dict[str, Any] = {"c1": c1, "c2": c2, "all_possible_states": every}
        ours = CRF(**options, tol=1e-9).fit(X, y)
        theirs = sklearn_crfsuite.CRF(**options, epsilon=1e-9, delta=1e-10, max_iterations=5000).fit(X, y)
        assert ours.objective_ == pytest.approx(crfsuite_objective(X, y, theirs, c1, c2), rel=1e-6)
        if c2 > 0.0:
            for key in {*ours.state_features_, *theirs.state_features_}:
                assert ours.state_features_.get(key, 0.0) == pytest.approx(
                    theirs.state_features_.get(key, 0.0), abs=1e-3
                )


@pytest.mark.parametrize(("c1", "c2"), STRENGTHS)
def test_predictions_are_those_of_crfsuite(data: Any, c1: float, c2: float) -> None:
    """The labels agree on seen and unseen sentences, and so do the marginals."""
    X, y = data
    new = SyntheticLanguage(n_labels=4, seed=5, mean_length=6.0, n_stems=60).sample(30, seed=7)
    X_new = [features(tokens) for tokens in new.tokens]
    ours = CRF(c1=c1, c2=c2, tol=1e-7).fit(X, y)
    theirs = sklearn_crfsuite.CRF(c1=c1, c2=c2, epsilon=1e-9, delta=1e-10, max_iterations=5000).fit(X, y)
    assert ours.predict(X) == [list(labels) for labels in theirs.predict(X)]
    if c2 > 0.0:  # unique weights, so that unseen sentences agree too
        assert ours.predict(X_new) == [list(labels) for labels in theirs.predict(X_new)]
        expected = theirs.predict_marginals(X_new)
        for sentence, other in zip(ours.predict_marginals(X_new), expected, strict=True):
            for row, other_row in zip(sentence, other, strict=True):
                assert row == pytest.approx(other_row, abs=2e-3)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y))


def test_weights_are_those_of_crfsuite(data: Any) -> None:
    """With c2 > 0 the minimum is unique: the same weights by name, twins included."""
    X, y = data
    ours = CRF(c2=0.5, tol=1e-9).fit(X, y)
    theirs = sklearn_crfsuite.CRF(c2=0.5, epsilon=1e-9, delta=1e-10, max_iterations=5000).fit(X, y)
    for name in ("state_features_", "transition_features_"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        for key in {*mine, *other}:
            assert mine.get(key, 0.0) == pytest.approx(other.get(key, 0.0), abs=1e-3)
    assert ours.num_attributes_ == len(ours.attributes_) == theirs.num_attributes_
    assert set(ours.attributes_) == set(theirs.attributes_)


def test_constructor_is_that_of_crfsuite() -> None:
    """The 28 parameters have the same names, order and defaults; ours come after them, keyword-only."""
    mine = list(inspect.signature(CRF).parameters.values())
    theirs = list(inspect.signature(sklearn_crfsuite.CRF).parameters.values())
    assert [(p.name, p.default) for p in mine[:28]] == [(p.name, p.default) for p in theirs]
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in mine[28:])


def test_the_usual_script(data: Any) -> None:
    """What most users write runs: the usual parameters, single sentences, the most common transitions."""
    X, y = data
    crf = CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)
    crf.fit(iter(X), iter(y))
    assert crf.predict_single(X[0]) == crf.predict(X)[0]
    assert crf.predict_marginals_single(X[0]) == crf.predict_marginals(X[:1])[0]
    top = Counter(crf.transition_features_).most_common(3)
    assert len(top) == 3
    assert top[0][1] >= top[1][1]
    assert clone(crf).get_params() == crf.get_params()
    assert pickle.loads(pickle.dumps(crf)).predict(X) == crf.predict(X)


def test_development_data_are_scored(data: Any) -> None:
    """X_dev and y_dev do not change the training; their accuracy is kept."""
    X, y = data
    crf = CRF().fit(X, y, X_dev=X[:5], y_dev=y[:5])
    assert crf.dev_score_ == crf.score(X[:5], y[:5])
    with pytest.raises(InputError, match="belong together"):
        CRF().fit(X, y, X_dev=X)


def test_refitting_forgets_the_old_weights(data: Any) -> None:
    """A second fit replaces weights that were looked at before."""
    X, y = data
    crf = CRF(c1=0.1).fit(X, y)
    first = crf.state_features_
    assert crf.set_params(c1=5.0).fit(X, y).state_features_ != first


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"algorithm": "ap"}, "algorithm='ap' is not offered.*Use algorithm='lbfgs'"),
        ({"c1": 0.0, "c2": 0.0}, "Set c1 or c2 above 0"),
        ({"c2": -1.0}, "c2 must be a finite number that is not negative"),
        ({"min_freq": 3}, "min_freq=3 is not offered"),
        ({"model_filename": "x"}, "model_filename is not offered"),
        ({"trainer_cls": object}, "trainer_cls is not offered"),
        ({"tol": -1.0}, "`tol` must be a positive number"),
    ],
)
def test_what_is_not_offered_is_refused(data: Any, parameters: dict[str, Any], message: str) -> None:
    """What would train another model is an error that says what to use."""
    with pytest.raises(InputError, match=message):
        CRF(**parameters).fit(*data)


def test_before_fit() -> None:
    """Prediction and weights before fit raise NotFittedError."""
    with pytest.raises(NotFittedError, match="This CRF is not fitted yet"):
        CRF().predict([[{"w": "a"}]])
    with pytest.raises(NotFittedError, match="This CRF is not fitted yet"):
        _ = CRF().state_features_


def test_tokens_are_refused() -> None:
    """Plain tokens are no feature dicts, and the error says what is expected."""
    with pytest.raises(InputError, match="expected a dict of features"):
        CRF().fit([["a"]], [["A"]])


def test_limit_asked_for_gives_no_warning(data: Any) -> None:
    """max_iterations stops in silence, as in CRFsuite; the status tells."""
    crf = CRF(c1=0.1, c2=0.1, max_iterations=3, tol=1e-9).fit(*data)
    assert crf.status_.name == "MAX_PASSES"
