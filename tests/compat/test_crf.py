"""The stand-in for sklearn_crfsuite.CRF: the same objective, the same predictions, the same attributes."""

from __future__ import annotations

import inspect
import math
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.exceptions
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict

from vcrf.arguments.running import n_threads
from vcrf.compat import CRF
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError, NotFittedError
from vcrf.families import read_attributes
from vcrf.families.explicit import MAX_NAMES

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


def test_last_iteration_has_the_scores_of_held_out_data(data: Any) -> None:
    """By label and together, under the names that sklearn_crfsuite gives them."""
    X, y = data
    crf, theirs = CRF(c2=0.1), sklearn_crfsuite.CRF(c2=0.1)
    mine, other = (c.fit(X[:30], y[:30], X[30:], y[30:]).training_log_.last_iteration for c in (crf, theirs))
    assert mine["scores"].keys() == other["scores"].keys()
    for label, score in other["scores"].items():
        assert mine["scores"][label].ref == score.ref
        assert mine["scores"][label][3:] == pytest.approx(score[3:], abs=0.15)
    for name in ("item_accuracy_float", "instance_accuracy_float", "avg_precision", "avg_recall", "avg_f1"):
        assert mine[name] == pytest.approx(other[name], abs=0.15)
    assert mine["item_accuracy_float"] == pytest.approx(crf.dev_score_)
    assert crf.fit(X, y).training_log_.last_iteration["scores"] == {}


def test_tagger_is_one_until_the_next_fit(data: Any) -> None:
    """A sentence that was set stays; another model has another tagger, and a pickle none."""
    X, y = data
    crf = CRF(c2=0.5).fit(X, y)
    crf.tagger_.set(X[0])
    assert crf.tagger_.tag() == crf.predict_single(X[0])
    first = crf.tagger_
    assert "_crfsuite_tagger" not in pickle.loads(pickle.dumps(crf)).__dict__
    assert crf.fit(X, y).tagger_ is not first


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
        ({"algorithm": "sgd"}, "There is no algorithm 'sgd': use algorithm='lbfgs' or 'l2sgd'"),
        ({"c1": 0.0, "c2": 0.0}, "Set c1 or c2 above 0"),
        ({"c1": "0.1"}, "c1 must be a finite number that is not negative, got '0.1'"),
        ({"min_freq": "2"}, "min_freq must be a finite number that is not negative, got '2'"),
        ({"c2": -1.0}, "c2 must be a finite number that is not negative"),
        ({"algorithm": "l2sgd", "c1": 0.1}, "c1=0.1 is no parameter of 'l2sgd'"),
        ({"min_freq": -1}, "min_freq must be a finite number that is not negative"),
        ({"model_filename": "no/such/directory/x"}, "there is no directory"),
        ({"trainer_cls": object}, "trainer_cls is not offered"),
        ({"tol": -1.0}, "`tol` must be a positive number"),
    ],
)
def test_what_is_not_offered_is_refused(data: Any, parameters: dict[str, Any], message: str) -> None:
    """What would train another model is an error that says what to use."""
    with pytest.raises(InputError, match=message):
        CRF(**parameters).fit(*data)


def test_before_fit() -> None:
    """Prediction before fit raises NotFittedError, which is scikit-learn's too; attributes are None as in 0.5."""
    with pytest.raises(NotFittedError, match="This CRF is not fitted yet") as caught:
        CRF().predict([[{"w": "a"}]])
    assert isinstance(caught.value, sklearn.exceptions.NotFittedError)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), sklearn.exceptions.NotFittedError)
    with pytest.raises(NotFittedError):
        CRF().predict_single([{"w": "a"}])
    crf, theirs = CRF(), sklearn_crfsuite.CRF()
    for name in ("classes_", "tagger_", "size_", "attributes_", "num_attributes_", "training_log_"):
        assert getattr(crf, name) is None
        assert getattr(theirs, name) is None
    assert crf.state_features_ is crf.transition_features_ is None


def test_l2sgd_is_solved_exactly(data: Any) -> None:
    """CRFsuite's l2sgd minimises the objective of lbfgs with c1 = 0: the same weights here."""
    X, y = data
    sgd, lbfgs = CRF(algorithm="l2sgd", c2=0.5).fit(X, y), CRF(c2=0.5).fit(X, y)
    assert sgd.objective_ == lbfgs.objective_
    assert sgd.state_features_ == lbfgs.state_features_
    theirs = sklearn_crfsuite.CRF(algorithm="l2sgd", c2=0.5, max_iterations=1000, period=50, delta=1e-7).fit(X, y)
    reached = crfsuite_objective(X, y, theirs, 0.0, 0.5)
    assert sgd.objective_ - sgd.gap_ <= reached
    assert reached == pytest.approx(sgd.objective_, rel=0.02)  # it is a stochastic method


@pytest.mark.parametrize("min_freq", [0.5, 2, 3.5])
@pytest.mark.parametrize("every", [False, True])
def test_min_freq_is_that_of_crfsuite(data: Any, min_freq: float, every: bool) -> None:
    """The same pairs are left out, numbers included, so that the minimum is the same."""
    X, y = data
    options: dict[str, Any] = {
        "c1": 0.0, "c2": 0.2, "min_freq": min_freq, "all_possible_states": every, "all_possible_transitions": every,
    }  # fmt: skip
    ours = CRF(**options, tol=1e-8).fit(X, y)
    theirs = sklearn_crfsuite.CRF(**options, epsilon=1e-9, delta=1e-10, max_iterations=5000).fit(X, y)
    assert ours.objective_ == pytest.approx(crfsuite_objective(X, y, theirs, 0.0, 0.2), rel=1e-6)
    assert set(ours.state_features_ or ()) == set(theirs.state_features_)
    assert set(ours.transition_features_ or ()) == set(theirs.transition_features_)


def test_model_filename_is_a_file_of_crfsuite(data: Any, tmp_path: Path) -> None:
    """`fit` writes it, python-crfsuite opens it and tags alike, and a CRF that was not fitted reads it."""
    X, y = data
    path = str(tmp_path / "model.crfsuite")
    crf = CRF(c1=0.1, c2=0.1, model_filename=path).fit(X, y)
    theirs = sklearn_crfsuite.CRF(model_filename=path)
    assert crf.predict(X) == [list(labels) for labels in theirs.predict(X)]
    read = CRF(model_filename=path)
    assert read.predict(X) == crf.predict(X)
    assert read.state_features_ == crf.state_features_
    assert crf.size_ == len(Path(path).read_bytes())
    with pytest.raises(InputError, match="labels that are text, got 1"):
        CRF(model_filename=path).fit(X, [[1 for _ in labels] for labels in y])


def test_tagger_and_log_tell_of_the_model(data: Any) -> None:
    """`tagger_` labels as `predict` does; the log has the rounds and ends at the objective."""
    X, y = data
    crf = CRF(c1=0.1, c2=0.1).fit(X, y)
    assert crf.tagger_.labels() == crf.classes_
    assert [crf.tagger_.tag(sentence) for sentence in X] == crf.predict(X)
    log = crf.training_log_
    assert log.iterations[-1]["loss"] == pytest.approx(crf.objective_, abs=1e-5)
    assert log.featgen_num_features == crf.model_.facts.n_candidates


def test_predictions_can_be_joined_by_scikit_learn(data: Any) -> None:
    """`cross_val_predict` permutes arrays of objects; compared as with 0.5 the answer is a numpy truth value."""
    X, y = data
    found = cross_val_predict(CRF(c2=1.0, tol=1e-2), X, y, cv=3)
    assert [len(labels) for labels in found] == [len(labels) for labels in y]
    crf = CRF(c2=0.01).fit(X[:1], y[:1])
    predicted = crf.predict(X[:1])
    assert (predicted == y[:1]).all()
    assert (predicted == y[0]).all()
    assert not (predicted != y[:1]).any()
    assert (predicted == np.array(y[:1], dtype=object)).all()
    assert predicted.tolist() == y[:1]
    assert np.asarray(crf.predict(X)).shape == (len(X),)


def test_one_sentence_is_labelled_as_many(data: Any) -> None:
    """The short way of `predict_single` gives what `predict` gives, for new attributes and empty sentences too."""
    X, y = data
    crf = CRF(c1=0.1, c2=0.1).fit(X, y)
    unseen = [{"w": "never seen", "len": 0.25, "l": ["p", "q"]}, {}, {"is_long": True, "bias": 1.0}]
    for sentence in [*X, unseen, [], tuple(X[0]), [list(features) for features in unseen]]:
        assert crf.predict_single(sentence) == crf.predict([sentence])[0]
        fired = crf.model_._fired_potentials(read_attributes([sentence]))
        assert crf.predict_single(sentence) == [crf.model_.labels[i] for i in fired.decode_tokens()]
        np.testing.assert_allclose(crf.model_.attributes.potentials([sentence]).node, fired.node, atol=1e-12)


def test_what_was_read_is_forgotten_within_a_bound(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is labelled, memory stays bounded, and so does nothing else change."""
    X, y = data
    crf = CRF(c1=0.1, c2=0.1).fit(X, y)
    expected = crf.predict(X)
    monkeypatch.setattr("vcrf.decoding.attributes.MAX_ENTRIES", 20)
    assert [crf.predict_single(sentence) for sentence in X] == expected
    assert len(crf.model_.attributes._known.reader) < 200


def test_threads_may_share_a_model(data: Any) -> None:
    """Eight threads that label new sentences at once get what one gets."""
    X, y = data
    crf = CRF(c1=0.1, c2=0.1).fit(X, y)
    new = [[{"w": f"{i % 97}", "n": i % 5} for i in range(k, k + 7)] for k in range(400)]
    expected = pickle.loads(pickle.dumps(crf)).predict(new)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(crf.predict_single, new)) == expected


def test_items_of_python_crfsuite_are_sentences(data: Any) -> None:
    """`pycrfsuite.ItemSequence` may stand for a list of dicts, in training and after it."""
    pycrfsuite = pytest.importorskip("pycrfsuite")
    X, y = data
    crf = CRF(c2=0.5).fit([pycrfsuite.ItemSequence(sentence) for sentence in X], y)
    assert crf.objective_ == pytest.approx(CRF(c2=0.5).fit(X, y).objective_, rel=1e-4)
    assert crf.predict([pycrfsuite.ItemSequence(X[0])]) == crf.predict(X[:1])


@pytest.mark.parametrize("form", ["names", "lists"])
def test_many_names_share_a_family_and_have_the_same_minimum(data: Any, form: str) -> None:
    """One name an attribute, as many scripts write them: pooled they give CRFsuite's objective."""
    X, y = data
    flat = [[[f"{key}_{value}" for key, value in item.items()] for item in sentence] for sentence in X]
    given = flat if form == "lists" else [[dict.fromkeys(item, 1.0) for item in sentence] for sentence in flat]
    ours = CRF(c1=0.2, c2=0.1, tol=1e-7).fit(given, y)
    assert len(ours.model_.sources) <= MAX_NAMES + 1
    theirs = sklearn_crfsuite.CRF(c1=0.2, c2=0.1, epsilon=1e-9, delta=1e-9, max_iterations=5000).fit(given, y)
    expected = crfsuite_objective([[dict.fromkeys(item, 1.0) for item in s] for s in flat], y, theirs, 0.2, 0.1)
    assert ours.objective_ == pytest.approx(expected, rel=1e-6)


def test_joblib_s_limit_on_threads_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of joblib has OMP_NUM_THREADS set: None does not take more, a number that was asked for does."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert n_threads(None) == 1
    assert n_threads(3) == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert n_threads(None) >= 1


def test_tokens_are_refused() -> None:
    """Plain tokens are no feature dicts, and the error says what is expected."""
    with pytest.raises(InputError, match="expected a dict of features"):
        CRF().fit([["a"]], [["A"]])


def test_limit_asked_for_gives_no_warning(data: Any) -> None:
    """max_iterations stops in silence, as in CRFsuite; the status tells."""
    crf = CRF(c1=0.1, c2=0.1, max_iterations=3, tol=1e-9).fit(*data)
    assert crf.status_.name == "MAX_PASSES"


@pytest.mark.parametrize(("c1", "c2", "has_newton"), [(0.05, 0.0, True), (0.5, 0.01, False)])
def test_newton_steps_come_where_the_gap_needs_them(data: Any, c1: float, c2: float, has_newton: bool) -> None:
    """By default CRFsuite's rule ends the steps at a small gap; what leaves a larger one, or a `tol`, asks for more."""
    X, y = data
    options: dict[str, Any] = {"c1": c1, "c2": c2, "all_possible_transitions": True}
    found, exact = CRF(**options).fit(X, y), CRF(**options, tol=1e-6).fit(X, y)
    assert exact.gap_ <= 1e-6 * exact.objective_
    assert found.gap_ <= 1e-3 * found.objective_
    assert found.objective_ == pytest.approx(exact.objective_, rel=1e-4)
    assert ("newton" in [record.phase for record in found.result_.history]) == has_newton
    assert "newton" in [record.phase for record in exact.result_.history]
