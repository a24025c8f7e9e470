"""scikit-learn's own checks of estimators, with the reason where one cannot pass.

Estimators of sequences and graphs do not take a matrix (`input_tags.two_d_array` is False): for these scikit-learn has
few checks, and `tests/arguments/test_parameters.py` calls those about parameters by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import cross_validate
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from vcrf import VCRF, GraphCRF, MultiLabelCRF
from vcrf.compat import CRF
from vcrf.data import small_english
from vcrf.errors import InputError, NotFittedError

_ONE_COLUMN = "the check hands in one column of classes; y has a column of 0 and 1 for each label"
_OWN_ERROR = "vcrf.errors.NotFittedError is raised: tagging does not wait for scikit-learn to be imported"
_MESSAGE = "our message says the same in other words"
EXPECTED = {
    "check_estimators_unfitted": _OWN_ERROR,
    "check_estimators_dtypes": _ONE_COLUMN,
    "check_sample_weights_pandas_series": _ONE_COLUMN,
    "check_sample_weights_not_an_array": _ONE_COLUMN,
    "check_sample_weights_shape": _ONE_COLUMN,
    "check_sample_weights_not_overwritten": _ONE_COLUMN,
    "check_sample_weight_equivalence_on_dense_data": _ONE_COLUMN,
    "check_sample_weight_equivalence_on_sparse_data": _ONE_COLUMN,
    "check_all_zero_sample_weights_error": _MESSAGE,
    "check_dtype_object": _ONE_COLUMN,
    "check_estimator_sparse_array": _ONE_COLUMN,
    "check_estimator_sparse_matrix": _ONE_COLUMN,
    "check_classifier_data_not_an_array": _ONE_COLUMN,
    "check_classifiers_one_label": _ONE_COLUMN,
    "check_classifiers_one_label_sample_weights": _ONE_COLUMN,
    "check_classifiers_classes": _ONE_COLUMN,
    "check_classifier_multioutput": "the labels are the likeliest together, not each by itself (decode='map')",
    "check_classifiers_train": _ONE_COLUMN,
    "check_classifiers_regression_target": _MESSAGE,
    "check_classifier_not_supporting_multiclass": _MESSAGE,
    "check_fit2d_1feature": _MESSAGE,
}


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"), reason="the list is that of the newest scikit-learn"
)
@parametrize_with_checks([MultiLabelCRF(tol=0.1)], expected_failed_checks=lambda _: EXPECTED)
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    """All that apply to an estimator that takes a matrix."""
    check(estimator)


@pytest.mark.parametrize("estimator", [VCRF(), CRF(), GraphCRF()], ids=lambda estimator: type(estimator).__name__)
def test_estimators_of_sequences_and_graphs_take_no_matrix(estimator: Any) -> None:
    """They say so, and scikit-learn then has no more to check."""
    assert not estimator.__sklearn_tags__().input_tags.two_d_array


def test_our_error_is_what_scikit_learns_is() -> None:
    """Code that catches ValueError or AttributeError, the parents of scikit-learn's own, catches ours."""
    assert issubclass(NotFittedError, (ValueError, AttributeError))


def test_score_weighs_sentences() -> None:
    """One weight a sentence, for each of its tokens."""
    corpus = small_english(60)
    tagger = VCRF(tol=0.1).fit(corpus.tokens[:30], corpus.labels[:30])
    X, y = corpus.tokens[30:], corpus.labels[30:]
    assert tagger.score(X, y, [1.0] * 30) == tagger.score(X, y)
    first = tagger.score(X[:1], y[:1])
    assert tagger.score(X[:2], y[:2], [1.0, 0.0]) == first
    with pytest.raises(InputError, match="one weight a sentence: expected 2, got 1"):
        tagger.score(X[:2], y[:2], [1.0])
    with pytest.raises(InputError, match="at least one token"):
        tagger.score(X[:1], y[:1], [0.0])


@pytest.mark.parametrize("make", [lambda: VCRF(tol=0.1), lambda: CRF(c2=1.0)], ids=["VCRF", "CRF"])
def test_weights_are_routed(make: Any) -> None:
    """By scikit-learn's metadata routing, to `fit` and to `score`."""
    corpus = small_english(40)
    weights = np.linspace(0.5, 1.5, 40)
    X = [[{"word": word} for word in tokens] for tokens in corpus.tokens]
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = make().set_score_request(sample_weight=True)
        if isinstance(estimator, VCRF):  # CRFsuite knows no weights in training
            estimator = estimator.set_fit_request(sample_weight=True)
        found = cross_validate(estimator, X, corpus.labels, cv=2, params={"sample_weight": weights})
    assert len(found["test_score"]) == 2


def test_random_state_of_scikit_learn() -> None:
    """A RandomState is taken too, and gives the same again from the same seed."""
    corpus = small_english(30)
    tagger = VCRF(tol=0.1).fit(corpus.tokens, corpus.labels)
    drawn = [tagger.sample(corpus.tokens[:3], random_state=np.random.RandomState(3)) for _ in range(2)]
    assert drawn[0] == drawn[1]
