"""A session as tutorials of sklearn_crfsuite have it, from word features to eli5, with the imports of vcrf.compat.

Each step is asked for by the calls that a script makes, in the form in which it makes them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.stats
from sklearn.metrics import make_scorer
from sklearn.model_selection import RandomizedSearchCV

from vcrf.compat import CRF, metrics, scorers

Sentence = list[tuple[str, str, str]]


def invented_news(n: int, seed: int) -> list[Sentence]:
    """Sentences of (word, part of speech, label) with persons, places and companies of one or two words."""
    rng = np.random.default_rng(seed)
    ends = {"PER": ["ez", "ini", "sson"], "LOC": ["ville", "burg", "ania"], "ORG": ["corp", "tel", "bank"]}
    fillers = [
        ("the", "DT"),
        ("said", "VB"),
        ("visits", "VB"),
        ("sells", "VB"),
        ("late", "RB"),
        ("in", "IN"),
        ("1999", "CD"),
    ]

    def entity(kind: str) -> Sentence:
        stems = rng.choice(["Al", "Bor", "Cas", "Del", "Fer", "Gor", "Hal", "Mar", "Tor", "Vel"], rng.integers(1, 3))
        words = [f"{stem}{rng.choice(ends[kind])}" for stem in stems]
        return [(word, "NN", f"{'I' if i else 'B'}-{kind}") for i, word in enumerate(words)]

    found = []
    for _ in range(n):
        sentence: Sentence = []
        for _ in range(rng.integers(1, 4)):
            sentence += [(*fillers[i], "O") for i in rng.integers(0, len(fillers), rng.integers(1, 4))]
            kind = str(rng.choice(["PER", "LOC", "ORG"]))
            sentence += [("in", "IN", "O")] * (kind == "LOC") + entity(kind)
        found.append([*sentence, (".", "PU", "O")])
    return found


def word2features(sentence: Sentence, i: int) -> dict[str, Any]:
    """The features of a word and of those beside it: numbers, texts and truth values."""
    features: dict[str, Any] = {"bias": 1.0, "word[-3:]": sentence[i][0][-3:]}
    for where, j in (("", i), ("-1:", i - 1), ("+1:", i + 1)):
        if 0 <= j < len(sentence):
            word, postag, _ = sentence[j]
            features |= {
                f"{where}word.lower()": word.lower(), f"{where}word.istitle()": word.istitle(),
                f"{where}word.isdigit()": word.isdigit(), f"{where}postag": postag, f"{where}postag[:1]": postag[:1],
            }  # fmt: skip
        else:
            features["BOS" if j < 0 else "EOS"] = True
    return features


def split(sentences: list[Sentence]) -> tuple[list[Any], list[list[str]]]:
    """Features and labels of sentences."""
    X = [[word2features(sentence, i) for i in range(len(sentence))] for sentence in sentences]
    return X, [[label for _, _, label in sentence] for sentence in sentences]


@pytest.fixture(scope="module")
def data() -> tuple[Any, ...]:
    """Sentences for training and for testing."""
    return (*split(invented_news(120, 0)), *split(invented_news(40, 1)))


@pytest.fixture(scope="module")
def crf(data: Any) -> CRF:
    """The tutorials' first model."""
    found = CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)
    found.fit(data[0], data[1])
    return found


def entity_labels(crf: CRF) -> list[str]:
    """The labels of entities, as scripts make the list: it is theirs to change."""
    labels = list(crf.classes_)
    labels.remove("O")
    return labels


def test_scores_and_report(data: Any, crf: CRF) -> None:
    """F1 over the labels of entities, and a table of them in the order of entities."""
    labels = entity_labels(crf)
    y_test, y_pred = data[3], crf.predict(data[2])
    assert 0.8 < metrics.flat_f1_score(y_test, y_pred, average="weighted", labels=labels) <= 1.0
    in_order = sorted(labels, key=lambda name: (name[1:], name[0]))
    report = metrics.flat_classification_report(y_test, y_pred, labels=in_order, digits=3)
    assert [line.split()[0] for line in report.splitlines()[2:8]] == in_order
    assert "O" in crf.classes_


@pytest.mark.parametrize("jobs", [None, 2])
def test_randomised_search(data: Any, jobs: int | None) -> None:
    """A search over c1 and c2 with a scorer of flat labels, in this process and in joblib's workers."""
    X, y, X_test, y_test = data
    labels = sorted({label for sentence in y for label in sentence} - {"O"})
    search = RandomizedSearchCV(
        CRF(algorithm="lbfgs", max_iterations=100, all_possible_transitions=True),
        {"c1": scipy.stats.expon(scale=0.5), "c2": scipy.stats.expon(scale=0.05)},
        scoring=make_scorer(metrics.flat_f1_score, average="weighted", labels=labels),
        cv=3, n_iter=2, n_jobs=jobs, random_state=0, verbose=0, error_score="raise",
    )  # fmt: skip
    search.fit(X[:60], y[:60])
    assert set(search.best_params_) == {"c1", "c2"}
    tried = search.cv_results_
    assert len(tried["params"]) == len(tried["mean_test_score"]) == 2
    assert search.best_score_ == max(tried["mean_test_score"]) > 0.8
    best = search.best_estimator_
    assert best.size_ / 1_000_000 > 0.0
    score = metrics.flat_f1_score(y_test, best.predict(X_test), average="weighted", labels=labels)
    assert search.score(X_test, y_test) == score
    assert scorers.flat_accuracy(best, X_test, y_test) == best.score(X_test, y_test)


def test_what_it_learned(crf: CRF) -> None:
    """The likeliest and unlikeliest transitions, and the heaviest attributes for and against labels."""
    transitions = Counter(crf.transition_features_).most_common()
    (likely, heaviest), (unlikely, lightest) = transitions[0], transitions[-1]
    assert heaviest > 0.0 > lightest
    assert likely in {(f"{a}-{kind}", f"I-{kind}") for kind in ("PER", "LOC", "ORG") for a in "BI"}
    assert not (unlikely[1].startswith("I-") and unlikely[0][1:] == unlikely[1][1:])
    state = Counter(crf.state_features_).most_common()
    assert {attribute for (attribute, _), _ in state} == set(crf.attributes_ or ())
    assert state[0][1] > 0.0 > state[-1][1]
    assert any(key == ("word[-3:]:urg", "B-LOC") and weight > 0.0 for key, weight in state)


def test_strong_l1_keeps_what_generalises(data: Any, crf: CRF) -> None:
    """With a large c1 few attributes are left."""
    sparse = CRF(algorithm="lbfgs", c1=20, c2=0.1, max_iterations=20, all_possible_transitions=False)
    sparse.fit(data[0], data[1])
    assert 0 < len(sparse.attributes_ or ()) < len(crf.attributes_ or ()) / 4


def test_eli5_shows_the_weights(crf: CRF) -> None:
    """`from vcrf.compat import eli5`: tables of transitions and attributes, chosen by label, name and number."""
    pytest.importorskip("eli5")
    from vcrf.compat import eli5

    text = eli5.format_as_text(eli5.explain_weights(crf, top=30))
    assert "Transition features" in text
    assert "y='B-LOC' top features" in text
    shown = eli5.explain_weights(
        crf, top=(2, 1), targets=["O", "B-ORG"], feature_re=r"^word\.is", target_names={"O": "none"}
    )
    assert [target.target for target in shown.targets] == ["none", "B-ORG"]
    for label, target in zip(["O", "B-ORG"], shown.targets, strict=True):
        found = target.feature_weights
        expected = [
            (w, a) for (a, b), w in (crf.state_features_ or {}).items() if b == label and a.startswith("word.is")
        ]
        assert [f.weight for f in found.pos] == sorted((w for w, _ in expected if w > 0), reverse=True)[:2]
        assert [f.weight for f in found.neg] == sorted(w for w, _ in expected if w < 0)[:1]
        assert len(found.pos) + len(found.neg) + found.pos_remaining + found.neg_remaining == len(expected)
    np.testing.assert_allclose(shown.transition_features.coef[0, 1], (crf.transition_features_ or {})["O", "B-ORG"])
    only = eli5.explain_weights(crf, top=None, feature_filter=lambda name: name == "bias")
    assert {f.feature for t in only.targets for f in [*t.feature_weights.pos, *t.feature_weights.neg]} <= {"bias"}
    with pytest.raises(ValueError, match="targets: expected labels of the model"):
        eli5.explain_weights(crf, targets=["B-MISC"])
    with pytest.raises(ValueError, match="target_names needs one name a label: expected 7, got 1"):
        eli5.explain_weights(crf, target_names=["a"])


def test_eli5_shows_what_it_shows_of_sklearn_crfsuite(crf: CRF) -> None:
    """Its own explanation of the same weights, to the letter, where no two weights are alike."""
    pytest.importorskip("eli5")
    explain = pytest.importorskip("eli5.sklearn_crfsuite.explain_weights").explain_weights_sklearn_crfsuite
    from vcrf.compat import eli5

    for options in ({"top": 5}, {"top": (3, 2), "targets": ["B-PER", "O"]}, {"top": 4, "feature_re": "lower"}):
        mine, other = eli5.explain_weights(crf, **options), explain(crf, **options)
        for a, b in zip(mine.targets, other.targets, strict=True):
            assert a.target == b.target
            for side in ("pos", "neg"):
                weights = [[f.weight for f in getattr(t.feature_weights, side)] for t in (a, b)]
                np.testing.assert_allclose(*weights)
                left = [getattr(t.feature_weights, f"{side}_remaining") for t in (a, b)]
                assert left[0] == left[1]
        np.testing.assert_allclose(mine.transition_features.coef, other.transition_features.coef)
        assert mine.transition_features.class_names == other.transition_features.class_names
