"""The estimator: what users pass, what they get, and what they read when it goes wrong."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

import vcrf
from vcrf import VCRF, load
from vcrf.arguments import recipes
from vcrf.compat import CRF
from vcrf.data import SyntheticLanguage
from vcrf.errors import BudgetError, InputError, NotFittedError
from vcrf.families import BIAS, Family, NamedFeature, Template, intern_sentences, transition_families
from vcrf.losses import HammingLoss
from vcrf.solvers.result import IterationRecord, Status

WORD = Family("word", (Template(((0, "word"),)),))
X = [["the", "cat", "sleeps"], ["a", "dog", "sleeps"], ["dogs", "sleep"], ["the", "dog"]]
Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"], ["NOUN", "VERB"], ["DET", "NOUN"]]


@pytest.fixture(scope="module")
def corpus() -> vcrf.Corpus:
    """Sentences of an invented language with four labels."""
    return SyntheticLanguage(n_labels=4, seed=3, mean_length=6.0).sample(60, seed=4)


@pytest.fixture(scope="module")
def fitted(corpus: vcrf.Corpus) -> VCRF:
    """Default tagger of that language."""
    return VCRF(n_jobs=1).fit(corpus.tokens, corpus.labels)


# ------------------------------------------------------------------------------------ fitting and predicting


def test_fit_learns_the_training_data(corpus: vcrf.Corpus, fitted: VCRF) -> None:
    """The default tagger fits what it has seen, and better than chance what it has not."""
    new = SyntheticLanguage(n_labels=4, seed=3, mean_length=6.0).sample(60, seed=5)
    assert fitted.score(corpus.tokens, corpus.labels) > 0.95
    assert fitted.score(new.tokens, new.labels) > 0.5


def test_fitted_attributes_state_the_certificate(corpus: vcrf.Corpus, fitted: VCRF) -> None:
    """Objective, gap, counts and families are there and consistent."""
    assert fitted.classes_ == sorted(corpus.label_set)
    assert fitted.status_ is Status.CONVERGED
    assert 0.0 <= fitted.gap_ <= fitted.tol_ * fitted.objective_
    assert fitted.kkt_violation_ >= 0.0
    assert 0 < fitted.n_active_ <= len(fitted.model_.weights)
    assert fitted.n_columns_ < fitted.n_candidates_ == sum(facts.n_candidates for facts in fitted.families_)
    assert fitted.history_[-1].objective == pytest.approx(fitted.objective_)
    assert len(fitted.result_.features) == fitted.n_active_


def counts_of_weights(model: Any, corpus: vcrf.Corpus) -> np.ndarray:
    """Number of tokens that have the attribute of each weight."""
    text = intern_sentences(corpus.tokens)
    rows = []
    for s, source in enumerate(model.sources):
        keys, counts = np.unique(source.read(text).keys, return_counts=True)
        rows.append(counts[np.searchsorted(keys, model.keys[model.source_ptr[s] : model.source_ptr[s + 1]])])
    return np.repeat(np.concatenate(rows), np.diff(model.ptr))


def test_objective_is_that_of_the_model(corpus: vcrf.Corpus) -> None:
    """Mean negative log-likelihood plus penalty, recomputed from the model's lattices, is `objective_`."""
    fitted = VCRF(loss=None, factors=False, temperature=1.0).fit(corpus.tokens, corpus.labels)
    number = {label: i for i, label in enumerate(fitted.classes_)}
    (scores,) = fitted._potentials(corpus.tokens)
    losses = [-scores.lattice(i).log_prob([number[b] for b in y]) for i, y in enumerate(corpus.labels)]
    penalty = sum(facts.l1 * facts.l1_mass for facts in fitted.families_)
    # The same l2 for all families, times the attribute's count to a power.
    power, model = fitted.count_power_, fitted.model_
    counts = counts_of_weights(model, corpus)
    penalty += 0.5 * fitted.families_[0].l2 * float(np.sum(counts**power * model.weights**2))
    assert np.mean(losses) + penalty == pytest.approx(fitted.objective_, rel=1e-9)


def test_default_strengths(corpus: vcrf.Corpus, fitted: VCRF) -> None:
    """By default 0.09 / m times the family's factor, two thirds l1 and one l2; 0.5 / m with the paper's recipe."""
    factors = {"word[-1]": 1.5, "word[+1]": 1.5, "word[-2]": 1.5, "word[+2]": 1.5, "word pairs": 2.0}
    for facts in fitted.families_:
        factor = factors.get(facts.name, 1.0)
        assert (facts.l1, facts.l2) == pytest.approx((0.06 * factor / len(corpus), 0.03 * factor / len(corpus)))
    sparse = VCRF(recipe="paper").fit(X, Y)
    assert {(facts.l1, facts.l2) for facts in sparse.families_} == {(0.5 / len(X), 0.0)}


def test_complexities_without_a_strength_are_warned_of() -> None:
    """They would change nothing; with a strength, 0 too, and in `path` and `tune` nothing is said."""
    families = transition_families(2)
    numbers = {family.name: 2.0 for family in families}
    for choice in ("massart", numbers):
        idle = VCRF(recipe="paper", families=families, complexities=choice)
        with pytest.warns(UserWarning, match="which is 0 unless given: .* Pass `complexity_strength`") as caught:
            idle.fit(X, Y)
        assert caught[0].filename == __file__
        assert idle.objective_ == VCRF(recipe="paper", families=families).fit(X, Y).objective_
        VCRF(recipe="paper", families=families, complexities=choice, complexity_strength=0.0).fit(X, Y)
        list(idle.path(X, Y, [(0.1, 0.1)]))


@pytest.mark.parametrize(("given", "is_used"), [
    ({}, True), ({"loss": None}, True), ({"factors": False}, False), ({"norm": "elastic"}, True),
    ({"base_strength": 0.1}, True), ({"recipe": "paper"}, False), ({"recipe": "paper", "factors": True}, True),
    ({"recipe": "paper", "norm": "elastic"}, False), ({"recipe": "paper", "base_strength": 0.1}, False),
    ({"complexity_strength": 0.1, "base_strength": 0.0, "factors": True}, False),
    ({"norm": "l1", "factors": True}, True),
])  # fmt: skip
def test_factors_multiply_the_base_strength(given: dict[str, Any], is_used: bool) -> None:
    """By default with the accurate recipe alone, whatever the strengths or the norm; never the complexity's part."""
    families = [Family("word", WORD.sources, factor=3.0), *transition_families(2)]
    alike = {"complexities": {family.name: 1.0 for family in families}} if "complexity_strength" in given else {}
    facts = VCRF(families=families, **alike, **given).fit(X, Y).families_
    assert facts[0].l1 == pytest.approx(facts[1].l1 * (3.0 if is_used else 1.0))


@pytest.mark.parametrize(("given", "aim"), [
    ({}, 3e-4), ({"tol": 1e-2}, 3e-3), ({"tol": 1e-6}, 1e-6), ({"norm": "l1"}, 3e-4), ({"base_strength": 0.01}, 3e-4),
    ({"recipe": "paper"}, 1e-3), ({"recipe": "paper", "base_strength": 0.01}, 1e-3),
])  # fmt: skip
def test_the_gap_aimed_at_is_the_recipe_s(given: dict[str, Any], aim: float) -> None:
    """A third of tol, so that labels are those of the optimum; tol itself with the paper's recipe."""
    data = SyntheticLanguage(n_labels=4, seed=1).sample(60, seed=2)
    fitted = VCRF(**given).fit(data.tokens, data.labels)
    *before, last = fitted.history_
    assert fitted.aim_ == pytest.approx(aim)
    assert last.gap <= aim * last.objective
    assert all(record.gap > aim * record.objective for record in before if record.phase == "scan")


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf"), "2", True, None])
def test_a_factor_is_a_positive_number(factor: Any) -> None:
    """Whatever the estimator makes of it."""
    with pytest.raises(InputError, match="needs a positive factor"):
        Family("word", WORD.sources, factor=factor)


def test_factors_is_true_false_or_none() -> None:
    """A factor belongs to a family."""
    with pytest.raises(InputError, match="`factors` must be True or False, got 2"):
        VCRF(factors=2).fit(X, Y)


@pytest.mark.parametrize("norm", ["l1", "l2", "elastic"])
def test_complexity_strength_weighs_families(norm: str) -> None:
    """A family's strength is complexity_strength * r_k + base_strength, in every norm."""
    families = [WORD, *transition_families(2)]
    given = {family.name: 1.0 + i for i, family in enumerate(families)}
    model = VCRF(
        recipe="paper", families=families, complexities=given, complexity_strength=1e-2, base_strength=1e-3, norm=norm
    ).fit(X, Y)
    ratio = {"l1": 1.0, "l2": 0.0, "elastic": 0.5}[norm]
    for facts in model.families_:
        strength = 1e-2 * given[facts.name] + 1e-3
        assert facts.complexity == given[facts.name]
        assert (facts.l1, facts.l2) == pytest.approx((ratio * strength, (1 - ratio) * strength))


def test_strong_penalty_leaves_no_weight() -> None:
    """Above the largest useful strength the model is empty and still predicts."""
    model = VCRF(recipe="paper", base_strength=100.0).fit(X, Y)
    assert model.n_active_ == 0
    assert model.predict([["the"]]) == [["DET"]]


def test_loss_changes_the_objective() -> None:
    """The Hamming loss raises the surrogate."""
    plain, hamming = (
        VCRF(recipe="paper", base_strength=0.01).fit(X, Y),
        VCRF(recipe="paper", base_strength=0.01, loss="hamming").fit(X, Y),
    )
    assert hamming.objective_ > plain.objective_


def test_paper_families_are_read() -> None:
    """families='paper' has H(k1, k2, k3) within the limits."""
    model = VCRF(recipe="paper", families="paper", words=1, tags=2, affix=1, base_strength=0.01).fit(X, Y)
    names = {facts.name for facts in model.families_}
    assert names == {f"H({k1},{k2},{k3})" for k1 in (0, 1) for k2 in (1, 2) for k3 in (0, 1)}


def test_order_three_fits() -> None:
    """Tag patterns of length 3 are learnt where they decide."""
    families = [Family("bias", (BIAS,)), *transition_families(3)]
    X_abc = [["x"] * 9 for _ in range(4)]
    y_abc = [list("AABAABAAB")] * 4
    model = VCRF(recipe="paper", families=families, base_strength=1e-3).fit(X_abc, y_abc)
    assert model.predict(X_abc) == y_abc
    assert model.model_.order == 3


def test_weights_of_sentences_are_repetitions() -> None:
    """A sentence of weight 2 counts as two, of weight 0 as none; a sum of weights other than m is fine."""
    weighted = VCRF(recipe="paper", base_strength=0.01, tol=1e-7).fit(X, Y, sample_weight=[2, 1, 0, 1])
    repeated = VCRF(recipe="paper", base_strength=0.01, tol=1e-7).fit([X[0], *X[:2], X[3]], [Y[0], *Y[:2], Y[3]])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)


def test_threads_do_not_change_the_result() -> None:
    """One thread or two: the same weights, bit for bit."""
    one, two = VCRF(n_jobs=1).fit(X, Y), VCRF(n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(one.result_.weights, two.result_.weights)


# ------------------------------------------------------------------------------------ kinds of input


def test_feature_dicts() -> None:
    """Dicts as for sklearn-crfsuite train and predict."""
    dicts = [[{"w": w, "bias": 1.0, "len": len(w) / 10} for w in sentence] for sentence in X]
    model = VCRF(recipe="paper", base_strength=0.01).fit(dicts, Y)
    assert model.predict(dicts) == Y
    assert model.predict([[{"unknown": "x"}]])[0][0] in model.classes_


def test_attribute_lists() -> None:
    """Lists of attribute strings train and predict."""
    lists = [[[f"w:{w}", f"suffix:{w[-1:]}"] for w in sentence] for sentence in X]
    assert VCRF(recipe="paper", base_strength=0.01).fit(lists, Y).predict(lists) == Y


def test_arrays_of_numbers() -> None:
    """A sentence may be an array of shape (n_tokens, n_features)."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(5, 2)) for _ in range(20)]
    labels = [np.where(a[:, 0] > 0, "P", "N").tolist() for a in arrays]
    model = VCRF(recipe="paper", base_strength=1e-3).fit(arrays, labels)
    assert model.score(arrays, labels) > 0.95
    assert VCRF(recipe="paper", base_strength=1e-3).fit(np.stack(arrays), labels).predict(arrays) == model.predict(
        arrays
    )


def test_arrays_of_strings_and_tuples() -> None:
    """Sentences may be tuples, arrays or generators of str; predictions are those of lists."""
    expected = VCRF().fit(X, Y).predict(X)
    kinds: list[Any] = [tuple, np.array, iter]
    for kind in kinds:
        assert VCRF().fit([kind(x) for x in X], [kind(y) for y in Y]).predict([kind(x) for x in X]) == expected


def test_int_labels_come_back() -> None:
    """Integer labels are predicted as integers."""
    ids = [[["DET", "NOUN", "VERB"].index(label) for label in labels] for labels in Y]
    model = VCRF(recipe="paper", base_strength=0.01).fit(X, ids)
    assert model.classes_ == [0, 1, 2]
    assert model.predict(X) == ids


def test_own_families_on_dicts() -> None:
    """A list of families may read given attributes with longer tag patterns."""
    dicts = [[{"w": w, "other": w} for w in sentence] for sentence in X]
    families = [Family("w", (NamedFeature("w"),)), Family("w2", (NamedFeature("w"),), 2)]
    model = VCRF(recipe="paper", families=families, base_strength=0.01).fit(dicts, Y)
    assert {facts.name for facts in model.families_} == {"w", "w2"}
    assert model.predict(dicts) == Y


# ------------------------------------------------------------------------------------ edges


def test_one_label_only() -> None:
    """With one label there is nothing to learn and only it to predict."""
    model = VCRF().fit([["a", "b"], ["c"]], [["X", "X"], ["X"]])
    assert model.predict([["new"], []]) == [["X"], []]
    assert model.predict_marginals([["new"]]) == [[{"X": pytest.approx(1.0)}]]


def test_one_sentence_of_one_token() -> None:
    """The smallest corpus there is."""
    assert VCRF().fit([["a"]], [["X"]]).predict([["a", "b"]]) == [["X", "X"]]


def test_sentences_of_length_one() -> None:
    """Without neighbours a chain is a classifier."""
    singles, labels = [["a"], ["b"]] * 5, [["A"], ["B"]] * 5
    assert VCRF(recipe="paper", base_strength=0.01).fit(singles, labels).predict([["a"], ["b"]]) == [["A"], ["B"]]


def test_empty_sentences_are_left_out() -> None:
    """An empty sentence changes nothing in training and is predicted as an empty list."""
    padded = VCRF().fit([[], *X, []], [[], *Y, []])
    assert padded.objective_ == VCRF().fit(X, Y).objective_
    assert padded.predict([[], ["a"], []])[::2] == [[], []]
    assert padded.predict_kbest([[]], 3) == [[([], 1.0)]]
    assert padded.sample([[]], 2) == [[[], []]]


def test_no_sentences_give_no_predictions(fitted: VCRF) -> None:
    """Predicting nothing gives nothing."""
    assert fitted.predict([]) == []
    assert fitted.predict_marginals([]) == []


def test_unseen_tokens(fitted: VCRF) -> None:
    """Words that training has not seen get labels, emoji and the empty word included."""
    assert all(label in fitted.classes_ for label in fitted.predict([["", "😀", "qqqqq", "\n"]])[0])


def test_unseen_label_counts_as_wrong() -> None:
    """Scoring against a label that the model does not know is an error of the model, not of the call."""
    model = VCRF(recipe="paper", base_strength=0.01).fit(X, Y)
    assert model.score([["the", "cat"]], [["DET", "NEW"]]) == 0.5


def test_thousand_labels() -> None:
    """A thousand labels work at order 1 and 2; order 4 names the knob to turn."""
    labels = [[f"L{i}" for i in range(j, j + 4)] for j in range(0, 1000, 4)]
    words = [[f"w{label}" for label in sentence] for sentence in labels]
    first = VCRF(recipe="paper", families=[WORD], base_strength=2e-3, tol=0.05).fit(words, labels)
    assert first.predict(words[:5]) == labels[:5]
    second = VCRF(recipe="paper", families=[WORD, *transition_families(2)], base_strength=2e-3, tol=0.5).fit(
        words, labels
    )
    assert len(second.predict(words[:2])[0]) == 4
    with pytest.raises(BudgetError, match=r"1,000,000,000,000 tag patterns of length 4 over 1000 labels.*Lower `tags`"):
        VCRF(recipe="paper", families=[WORD, *transition_families(4)], base_strength=2e-3).fit(words, labels)


# ------------------------------------------------------------------------------------ wrong input


@pytest.mark.parametrize(
    ("sentences", "labels", "message"),
    [
        ([], [], "at least one sentence with a token: got 0 sentences"),
        ([[], []], [[], []], "got 2 sentences, all of them empty"),
        (X, Y[:3], "got 4 sentences and 3 lists of labels"),
        (X, [*Y[:2], ["NOUN"], Y[3]], "Sentence 2: expected one label a token, got 2 tokens and 1 labels"),
        (
            X,
            [Y[0], ["DET", b"N", "VERB"], *Y[2:]],
            "Sentence 1, token 1: a label must be a str or an int, got bytes",
        ),
        ([["a"]], [[float("nan")]], "Sentence 0, token 0: a label must be a str or an int, got float: nan"),
        ([["a", "b"]], [["A", 1]], "all str or all int: got both"),
        (["the cat"], [["DET"]], "Sentence 0 of X is a str: expected a list of tokens"),
        ("the cat", [["DET"]], "X must be a list of sentences, got str"),
        ([["a"]], ["A"], r"y\[0\] must be a list of labels"),
        ([["a"]], "A", "y must be a list of lists of labels, got str"),
        ([["a", 1]], [["A", "A"]], "Sentence 0, token 1: a token must be a str, got int"),
        ([[{"a": 1}, "b"]], [["A", "A"]], "Sentence 0, token 1: expected a dict of features"),
        ([[{"a": float("nan")}]], [["A"]], r"Feature 'a' \(sentence 0, token 0\) is nan"),
        ([[[1.0, float("inf")]]], [["A"]], r"Feature 'x1' \(sentence 0, token 0\) is inf"),
        ([3], [["A"]], "Sentence 0 of X is a int: expected a list of tokens"),
    ],
)
def test_wrong_data_is_named(sentences: Any, labels: Any, message: str) -> None:
    """Errors in the data say where they are."""
    with pytest.raises(InputError, match=message):
        VCRF().fit(sentences, labels)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"families": "best"}, "`families` must be 'default', 'paper' or a list"),
        ({"families": []}, "at least one family"),
        ({"families": [WORD], "tags": 2}, "`tags` limit a preset that reads tokens"),
        ({"words": -1}, "`words` must be an integer from 0 to 100, got -1"),
        ({"affix": 1_000_000}, "`affix` must be an integer from 0 to 100, got 1000000"),
        ({"tags": 0}, "`tags` must be an integer from 1 to 100, got 0"),
        ({"norm": "l3"}, "`norm` must be"),
        ({"norm": "elastic", "l1_ratio": 1.5}, "l1_ratio"),
        ({"loss": "nonsense"}, "`loss` must be None, a vcrf.losses.Loss, or one of"),
        ({"candidates": "some"}, "`candidates` must be"),
        ({"base_strength": -1.0}, "`base_strength` must be a finite number that is not negative, got -1.0"),
        ({"complexity_strength": float("nan")}, "`complexity_strength` must be a finite number"),
        ({"complexities": "mine"}, "`complexities` must be 'paper', .* or a mapping"),
        ({"families": [WORD], "complexities": {"wrod": 1.0}}, "missing word; unknown wrod"),
        ({"tol": 0.0}, "`tol` must be a positive number"),
        ({"n_jobs": 0}, "`n_jobs` must be positive"),
        ({"families": [Family("w", (NamedFeature("w"),))]}, "'w' is given by the user"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    """Errors in the parameters name them and say what is allowed."""
    with pytest.raises(InputError, match=message):
        VCRF(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"families": "paper"}, "`families='paper'` reads words and affixes off tokens"),
        ({"affix": 3}, "`affix` limit a preset that reads tokens"),
        ({"families": [WORD]}, "'word' is read off tokens"),
    ],
)
def test_word_families_refuse_dicts(parameters: dict[str, Any], message: str) -> None:
    """What reads words cannot read dicts, and says so."""
    with pytest.raises(InputError, match=message):
        VCRF(**parameters).fit([[{"w": "a"}]], [["A"]])


def test_predicting_another_kind_of_input(fitted: VCRF) -> None:
    """A tagger of tokens refuses dicts, one of dicts refuses tokens."""
    with pytest.raises(InputError, match="expected tokens as str"):
        fitted.predict([[{"w": "a"}]])
    with pytest.raises(InputError, match="expected a dict of features"):
        VCRF().fit([[{"w": "a"}]], [["A"]]).predict([["a"]])


@pytest.mark.parametrize("weights", [[1.0], [1, 1, 1, -1], [1, 1, 1, np.nan]])
def test_wrong_sentence_weights(weights: list[float]) -> None:
    """Weights are one a sentence, finite and not negative."""
    with pytest.raises(InputError, match="sample_weight needs 4 finite numbers"):
        VCRF().fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize("name", ["predict", "predict_marginals", "predict_kbest", "sample"])
def test_methods_before_fit(name: str) -> None:
    """Using an estimator before fit says what to call."""
    with pytest.raises(NotFittedError, match=r"This VCRF is not fitted yet: call fit\(X, y\) first"):
        getattr(VCRF(), name)(X)


def test_attributes_before_fit() -> None:
    """Fitted attributes are absent before fit, as hasattr sees it."""
    assert not hasattr(VCRF(), "objective_")
    assert not hasattr(VCRF(), "families_")


# ------------------------------------------------------------------------------------ probabilities


def test_marginals_kbest_and_samples_agree(corpus: vcrf.Corpus, fitted: VCRF) -> None:
    """The best of k is the prediction; over all sequences probabilities sum to 1 and give the marginals."""
    sentences = [tokens[:3] for tokens in corpus.tokens[:4]]
    best, marginals = fitted.predict(sentences), fitted.predict_marginals(sentences)
    for i, ranked in enumerate(fitted.predict_kbest(sentences, k=4**3)):
        assert ranked[0][0] == best[i]
        assert sum(p for _, p in ranked) == pytest.approx(1.0)
        assert [p for _, p in ranked] == sorted((p for _, p in ranked), reverse=True)
        for t, row in enumerate(marginals[i]):
            for label in fitted.classes_:
                expected = sum(p for labels, p in ranked if labels[t] == label)
                assert row[label] == pytest.approx(expected, abs=1e-9)


def test_samples_follow_the_posterior(corpus: vcrf.Corpus, fitted: VCRF) -> None:
    """Shares of draws approach the marginals, and a seed repeats them."""
    sentence = [corpus.tokens[0][:2]]
    draws = fitted.sample(sentence, 4000, random_state=1)[0]
    assert draws == fitted.sample(sentence, 4000, random_state=1)[0]
    for t, row in enumerate(fitted.predict_marginals(sentence)[0]):
        for label, p in row.items():
            assert np.mean([draw[t] == label for draw in draws]) == pytest.approx(p, abs=0.05)


# ------------------------------------------------------------------------------------ running


def test_callback_stops_and_model_is_kept() -> None:
    """A callback that returns True ends training with a warning and a usable model."""
    records: list[IterationRecord] = []

    def stop(record: IterationRecord) -> bool:
        records.append(record)
        return True

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = VCRF(callback=stop, tol=1e-9).fit(X, Y)
    assert model.status_ is Status.INTERRUPTED
    assert len(records) == 1
    assert len(model.predict(X)) == 4


def test_interrupt_keeps_the_model() -> None:
    """Ctrl-C during training ends it with a warning and a usable model."""

    def interrupt(_: IterationRecord) -> None:
        raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = VCRF(callback=interrupt, tol=1e-9).fit(X, Y)
    assert model.predict([[]]) == [[]]


def test_limit_on_passes_warns() -> None:
    """Stopping before the tolerance says how far it came and what to do."""
    with pytest.warns(ConvergenceWarning, match="Relative gap .* raise `max_passes`"):
        VCRF(max_passes=2, tol=1e-9).fit(X, Y)


def test_verbose_writes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """Progress goes to stderr and nothing to stdout."""
    VCRF(verbose=True).fit(X, Y)
    captured = capsys.readouterr()
    assert "objective" in captured.err
    assert captured.out == ""


# ------------------------------------------------------------------------------------ scikit-learn


def test_clone_and_parameters() -> None:
    """Parameters survive get_params, set_params and clone; the clone is not fitted."""
    model = VCRF(recipe="paper", base_strength=0.1, families=[WORD]).fit(X, Y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "model_")
    assert copy.set_params(tol=0.1).tol == 0.1
    with pytest.raises(TypeError):
        VCRF(strength=1.0)  # type: ignore[call-arg]


def test_pickle(corpus: vcrf.Corpus, fitted: VCRF) -> None:
    """A pickled tagger predicts the same."""
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.predict(corpus.tokens) == fitted.predict(corpus.tokens)
    assert copy.objective_ == fitted.objective_


def test_grid_search_and_cross_validation() -> None:
    """Model selection of scikit-learn works, sentences of one length included."""
    pairs = [(["the", "cat"], ["DET", "NOUN"]), (["a", "dog"], ["DET", "NOUN"])] * 4
    tokens, labels = [x for x, _ in pairs], [y for _, y in pairs]
    assert cross_val_score(VCRF(), tokens, labels, cv=2).tolist() == [1.0, 1.0]
    search = GridSearchCV(VCRF(recipe="paper"), {"base_strength": [10.0, 0.01]}, cv=2).fit(tokens, labels)
    assert search.best_params_ == {"base_strength": 0.01}
    assert search.predict(tokens) == labels


def test_tags_and_repr() -> None:
    """Tags say that X is no table; the representation names what differs from the default."""
    tags = VCRF().__sklearn_tags__()
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required
    assert "tol=0.1" in repr(VCRF(tol=0.1))


def test_fit_leaves_input_alone() -> None:
    """Neither X nor y is changed."""
    tokens, labels = [list(x) for x in X], [list(y) for y in Y]
    VCRF().fit(tokens, labels)
    assert (tokens, labels) == (X, Y)


# ------------------------------------------------------------------------------------ the package


@pytest.mark.parametrize("statement", ["import vcrf", "from vcrf import read_corpus", "import vcrf; dir(vcrf)"])
def test_import_is_light(statement: str) -> None:
    """Importing vcrf or reading a file loads neither numba, scipy nor scikit-learn."""
    program = f"{statement}\nimport sys\nprint(*sorted({{'numba', 'scipy', 'sklearn'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_package_exports() -> None:
    """Everything announced exists and is listed; anything else is an AttributeError."""
    for name in vcrf.__all__:
        assert getattr(vcrf, name) is not None
        assert name in dir(vcrf)
    assert isinstance(vcrf.__version__, str)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = vcrf.nothing


def test_no_warning_when_converged() -> None:
    """A certified fit is silent."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        VCRF().fit(X, Y)


def test_path_equals_separate_fits():
    """A path over a grid of strengths reads once, warm-starts, and ends where separate fits do."""
    corpus = SyntheticLanguage(n_labels=4, seed=1).sample(30, seed=2)
    grid = [(0.0, 0.01), (0.05, 0.02), (0.02, 0.05)]
    settings = {"recipe": "paper", "families": "paper", "words": 1, "tags": 2, "affix": 1, "tol": 1e-6}
    found = list(VCRF(**settings).path(corpus.tokens, corpus.labels, grid))
    assert sorted((t.complexity_strength, t.base_strength) for t in found) == sorted(grid)
    for tagger in found:
        alone = clone(tagger).fit(corpus.tokens, corpus.labels)
        assert tagger.objective_ == pytest.approx(alone.objective_, rel=2e-6)
        assert tagger.predict(corpus.tokens) == alone.predict(corpus.tokens)


def test_interrupted_path_ends():
    """Ctrl-C ends the whole path with the point that it met, not one point after another."""

    def interrupt(_record):
        raise KeyboardInterrupt

    corpus = SyntheticLanguage(n_labels=4, seed=1).sample(10, seed=2)
    with pytest.warns(UserWarning, match="interrupted"):
        found = list(
            VCRF(recipe="paper", callback=interrupt).path(corpus.tokens, corpus.labels, [(0.0, 0.01), (0.0, 0.001)])
        )
    assert len(found) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"families": None}, "list of Family objects"),
        ({"families": [1]}, "list of Family objects"),
        ({"base_strength": "a"}, "`base_strength` must be a finite number"),
        ({"max_passes": 0}, "`max_passes` must be a positive integer"),
        ({"max_passes": -1}, "`max_passes` must be a positive integer"),
        ({"tags": True}, "`tags` must be an integer"),
    ],
)
def test_wrong_parameters_are_named_and_change_nothing(parameters, message):
    """A refused fit leaves the estimator as it was fitted before."""
    tagger = VCRF(recipe="paper", base_strength=0.01).fit([["the", "cat"]], [["D", "N"]])
    with pytest.raises(InputError, match=message):
        tagger.set_params(**parameters).fit([["q"]], [["Z"]])
    assert tagger.classes_ == ["D", "N"]
    assert tagger.predict([["the", "cat"]]) == [["D", "N"]]


# ---- labels left open ----


def test_open_labels_are_learnt_from_the_rest():
    """A word is known to be A or B from sets only; the other words and None say nothing against it."""
    X = [["x", "p"], ["x", "q"], ["z", "p"], ["z", "z"]]
    y = [[{"A", "B"}, "P"], [{"A", "C"}, "P"], ["C", None], [None, {"C"}]]
    tagger = VCRF(recipe="paper", base_strength=0.01, norm="elastic").fit(X, y)
    assert tagger.classes_ == ["A", "B", "C", "P"]
    assert tagger.predict([["x", "p"]]) == [["A", "P"]]  # the only label that both sets allow
    assert tagger.status_ is Status.STATIONARY
    assert tagger.gap_ == np.inf


def test_sets_of_one_label_are_that_label():
    """The same weights as with plain labels, to the last bit."""
    X = [["a", "b"], ["b", "c", "a"]]
    y = [["N", "V"], ["V", "N", "N"]]
    plain = VCRF(recipe="paper", base_strength=0.01).fit(X, y)
    sets = VCRF(recipe="paper", base_strength=0.01).fit(X, [[{label} for label in labels] for labels in y])
    np.testing.assert_array_equal(plain.model_.weights, sets.model_.weights)
    assert sets.gap_ == plain.gap_


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["A", set()]], "Sentence 0, token 1: an empty set"),
        ([[None, None]], "No token has a label"),
        ([["A", {1.5}]], "Sentence 0, token 1: a label must be a str or an int, got float"),
        ([["A", {1}]], "all str or all int"),
    ],
)
def test_open_labels_that_mean_nothing(y, message):
    """Refused with the place."""
    with pytest.raises(InputError, match=message):
        VCRF().fit([["a", "b"]], y)


def test_observed_candidates_need_labels():
    """A pair with a label that is not known is not observed."""
    with pytest.raises(InputError, match="observed"):
        VCRF(candidates="observed").fit([["a", "b"], ["a"]], [["A", None], ["B"]])


def test_open_labels_survive_the_model_file(tmp_path):
    """An infinite gap is written and read."""
    tagger = VCRF(recipe="paper", base_strength=0.01).fit([["a", "b"], ["b"]], [["A", None], ["B"]])
    tagger.save(tmp_path / "open.vcrf")
    again = load(tmp_path / "open.vcrf")
    assert again.gap_ == np.inf
    assert again.predict([["a", "b"]]) == tagger.predict([["a", "b"]])


# ---- default norm ----


def test_a_recipe_is_what_its_values_are():
    """The objective tells which penalty was used; every value may be said beside another recipe."""
    X, y = [["a", "b"], ["b", "a"]], [["A", "B"], ["B", "A"]]
    plain = VCRF().fit(X, y)
    loss = HammingLoss(normalised=False, cost=3.0)
    form = {
        "recipe": "paper", "norm": "elastic", "base_strength": 0.09 / 2, "l1_ratio": 2 / 3, "count_power": 0.35,
        "factors": True,
    }  # fmt: skip
    explicit = VCRF(loss=loss, temperature=1.6, **form).fit(X, y)
    assert plain.objective_ == explicit.objective_
    np.testing.assert_array_equal(plain.model_.weights, explicit.model_.weights)
    assert plain.objective_ != VCRF(recipe="paper", norm="elastic", base_strength=0.09 / 2).fit(X, y).objective_
    assert plain.objective_ != VCRF(loss=None, **form).fit(X, y).objective_
    given = VCRF(recipe="paper", base_strength=0.05).fit(X, y)
    assert given.objective_ == VCRF(recipe="paper", norm="l1", base_strength=0.05).fit(X, y).objective_
    assert given.objective_ != plain.objective_


def test_temperature_changes_probabilities_and_no_labels(corpus: vcrf.Corpus) -> None:
    """All weights are divided by it; the objective stays that of training."""
    X, y = corpus.tokens[:30], corpus.labels[:30]
    one, two = (VCRF(recipe="paper", base_strength=0.01, temperature=t).fit(X, y) for t in (1.0, 2.0))
    np.testing.assert_array_equal(one.model_.weights, 2.0 * two.model_.weights)
    assert one.objective_ == two.objective_
    assert one.predict(X) == two.predict(X)
    with pytest.raises(InputError, match="`temperature` must be a positive number"):
        VCRF(temperature=0.0).fit(X, y)


@pytest.mark.parametrize(("tol", "status"), [(0.5, Status.CONVERGED), (2e-4, Status.MAX_PASSES)])
def test_the_status_is_that_of_the_tolerance_asked_for(monkeypatch, tol, status):
    """With nothing set, training aims at a smaller gap; if it is stopped before, `tol` decides what is said."""
    corpus = SyntheticLanguage(n_labels=4, n_stems=50).sample(40, seed=2)
    monkeypatch.setattr(VCRF, "_recipes", {"accurate": replace(recipes.CRF["accurate"], aim=1e-12)})
    with warnings.catch_warnings():
        warnings.simplefilter("error" if status is Status.CONVERGED else "ignore")
        tagger = VCRF(tol=tol, max_passes=40).fit(corpus.tokens, corpus.labels)
    assert tagger.status_ is status
    assert (tagger.gap_ <= tol * tagger.objective_) == (status is Status.CONVERGED)


NO_TEXT = "caf\udce9"


@pytest.mark.parametrize(
    ("estimator", "data", "labels", "message"),
    [
        (VCRF(), [["a", NO_TEXT]], [["A", "B"]], r"The word 'caf\\udce9' holds a lone surrogate"),
        (VCRF(), [["a", "b"]], [["A", NO_TEXT]], r"The label 'caf\\udce9' holds a lone surrogate"),
        (VCRF(), [["a", "b"]], [["A", {"B", NO_TEXT}]], r"The label 'caf\\udce9' holds a lone surrogate"),
        (VCRF(), [[{"w": NO_TEXT}]], [["A"]], r"The attribute 'w:caf\\udce9' holds a lone surrogate"),
        (CRF(), [[{NO_TEXT: 1.0}]], [["A"]], r"The attribute 'caf\\udce9' holds a lone surrogate"),
        (CRF(), [[{"w": "a"}]], [[NO_TEXT]], r"The label 'caf\\udce9' holds a lone surrogate"),
        (VCRF(word_classes={"a": NO_TEXT}), [["a"]], [["A"]], "A name of a word class holds a lone surrogate"),
    ],
)
def test_training_refuses_what_is_no_text(estimator: Any, data: Any, labels: Any, message: str) -> None:
    """It could be neither printed nor saved; the message says how to read the data."""
    with pytest.raises(InputError, match=message):
        estimator.fit(data, labels)


def test_what_is_no_text_can_be_labelled(fitted: VCRF) -> None:
    """A word that training has not seen, whatever it is."""
    assert len(fitted.predict([["a", NO_TEXT]])[0]) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "c1",
            "VCRF has no parameter `c1`. Its strength is `base_strength` and its form `norm`; vcrf.compat.CRF has c1",
        ),
        ("max_pases", "VCRF has no parameter `max_pases`. Did you mean `max_passes`"),
        ("zzz", "VCRF has no parameter `zzz`. It has recipe, families"),
    ],
)
def test_unknown_parameters_are_named(name: str, message: str) -> None:
    """With what may have been meant."""
    with pytest.raises(TypeError, match=re.escape(message)):
        VCRF(**{name: 1})
