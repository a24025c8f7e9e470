"""VCRF with any loss, and the estimators of the other surrogates: scikit-learn's conventions, files, options."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import vcrf
from vcrf import M3N, VCRF, StructSVM, VExponential, VStructBoost
from vcrf.data import SyntheticLanguage
from vcrf.errors import BudgetError, InputError
from vcrf.losses import EditLoss, HammingLoss, WeightedHammingLoss, get_loss
from vcrf.surrogates import evaluate

ESTIMATORS = [VStructBoost, VExponential, M3N, StructSVM]
KINDS = {VCRF: "crf", VStructBoost: "structboost", VExponential: "exponential", M3N: "m3n", StructSVM: "structsvm"}


@pytest.fixture(scope="module")
def corpus():
    """Return few short sentences."""
    return SyntheticLanguage(n_labels=4, n_stems=40, seed=1).sample(25, seed=2)


def total_of(tagger, corpus, loss):
    """The surrogate's part of the objective from the tagger's own scores, sentence by sentence."""
    (scores,) = tagger._potentials(corpus.tokens)
    number = {label: i for i, label in enumerate(tagger.classes_)}
    found = []
    for i, labels in enumerate(corpus.labels):
        y = [number[label] for label in labels]
        found.append(evaluate(KINDS[type(tagger)], scores.lattice(i), loss.automaton(y, len(number)), y).value)
    if type(tagger) in (VStructBoost, VExponential):
        return np.log1p(np.mean(found))
    return np.mean(found)


@pytest.mark.parametrize("estimator", [VCRF, *ESTIMATORS])
@pytest.mark.parametrize("loss", ["hamming", "edit"])
def test_objective_and_certificate(estimator, loss, corpus):
    """Certified to tol; the objective is the surrogate of the saved weights plus their penalty."""
    tagger = estimator(recipe="paper", loss=loss, norm="elastic", base_strength=0.01).fit(corpus.tokens, corpus.labels)
    assert tagger.status_.name == "CONVERGED"
    assert 0.0 <= tagger.gap_ <= tagger.tol_ * tagger.objective_
    l2 = tagger.families_[0].l2  # the same for all families
    penalty = sum(facts.l1 * facts.l1_mass for facts in tagger.families_) + 0.5 * l2 * np.sum(tagger.model_.weights**2)
    assert total_of(tagger, corpus, get_loss(loss)) + penalty == pytest.approx(tagger.objective_, rel=1e-8)
    assert tagger.score(corpus.tokens, corpus.labels) > 0.9


@pytest.mark.parametrize("estimator", [VCRF, *ESTIMATORS])
@pytest.mark.parametrize("norm", ["l1", "elastic", "group"])
def test_results_are_plain_numbers(estimator, norm, corpus):
    """Not numpy's, which print in another way and do not go into JSON."""
    tagger = estimator(recipe="paper", norm=norm, base_strength=0.05, tol=0.1).fit(corpus.tokens[:9], corpus.labels[:9])
    last = tagger.history_[-1]
    for number in (tagger.objective_, tagger.gap_, tagger.kkt_violation_, last.objective, last.gap, last.kkt_violation):
        assert type(number) is float
    for number in (tagger.n_active_, tagger.n_candidates_, tagger.n_columns_, last.n_passes, last.n_active):
        assert type(number) is int


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_conventions(estimator, corpus, tmp_path):
    """Parameters, clone, the same weights whatever the threads, save and load."""
    tagger = estimator(recipe="paper", norm="elastic", base_strength=0.02, n_jobs=1)
    assert estimator().get_params() == VCRF().get_params()
    copy = clone(tagger).set_params(n_jobs=2)
    tagger.fit(corpus.tokens, corpus.labels)
    copy.fit(corpus.tokens, corpus.labels)
    assert (tagger.loss_, tagger.tol_) == ("hamming", 1e-2 if estimator in (M3N, StructSVM) else 1e-3)
    assert copy.objective_ == tagger.objective_
    assert np.array_equal(copy.result_.weights, tagger.result_.weights)
    path = tmp_path / "m.vcrf"
    tagger.save(path)
    again = vcrf.load(path)
    assert type(again) is estimator
    assert again.predict(corpus.tokens) == tagger.predict(corpus.tokens)
    assert again.gap_ == tagger.gap_


@pytest.mark.parametrize("estimator", [VStructBoost, M3N])
def test_path_and_callback(estimator, corpus):
    """A path warm-starts from strong to weak; a callback that returns True stops with the best so far."""
    points = list(
        estimator(recipe="paper", norm="elastic").path(corpus.tokens, corpus.labels, [(0.0, 0.02), (0.0, 0.1)])
    )
    assert [point.base_strength for point in points] == [0.1, 0.02]
    assert all(point.gap_ <= point.tol_ * point.objective_ for point in points)
    with pytest.warns(UserWarning, match="interrupted"):
        stopped = estimator(recipe="paper", norm="elastic", base_strength=0.02, callback=lambda _: True).fit(
            corpus.tokens, corpus.labels
        )
    assert stopped.status_.name == "INTERRUPTED"
    assert stopped.objective_ >= points[1].objective_ - points[1].gap_ - 1e-12


def test_loss_objects(corpus):
    """An object does what its name does; costs may name labels; a wrong loss is refused before training."""
    named, given = (VCRF(recipe="paper", base_strength=0.05, loss=loss) for loss in ("edit", EditLoss()))
    assert named.fit(corpus.tokens, corpus.labels).objective_ == pytest.approx(
        clone(given).fit(corpus.tokens, corpus.labels).objective_
    )
    label = sorted({b for labels in corpus.labels for b in labels})[0]
    plain = VCRF(recipe="paper", base_strength=0.05, loss="hamming").fit(corpus.tokens, corpus.labels)
    dear = VCRF(recipe="paper", base_strength=0.05, loss=WeightedHammingLoss({label: 5.0})).fit(
        corpus.tokens, corpus.labels
    )
    assert dear.objective_ > plain.objective_

    class Negative(HammingLoss):
        def _automaton(self, y_true, n_labels):
            return super()._automaton(y_true, n_labels).scaled(-1.0)

    for estimator in (VCRF, M3N):
        with pytest.raises(InputError, match="negative"):
            estimator(loss=Negative()).fit(corpus.tokens, corpus.labels)
    for estimator, words in ((VStructBoost, "Give a loss"), (M3N, "needs a loss"), (StructSVM, "needs a loss")):
        with pytest.raises(InputError, match=words):
            estimator(loss=None).fit(corpus.tokens, corpus.labels)


def test_open_labels_need_crf(corpus):
    """With labels left open, crf with no loss or Hamming trains; the rest is refused."""
    labels = [[None, *y[1:]] for y in corpus.labels]
    assert VCRF(recipe="paper", loss="hamming", base_strength=0.05).fit(corpus.tokens, labels).gap_ == np.inf
    for estimator in (VCRF, M3N, StructSVM):
        with pytest.raises(InputError, match="left open"):
            estimator(loss="edit").fit(corpus.tokens, labels)
    with pytest.raises(InputError, match="Use crf"):
        VStructBoost().fit(corpus.tokens, labels)


@pytest.mark.parametrize("estimator", [VStructBoost, M3N, StructSVM])
def test_a_scan_beyond_the_budget_is_refused(estimator, corpus, monkeypatch):
    """Posteriors of arcs are kept at every token: the message says how much, and what to change."""
    monkeypatch.setattr("vcrf.structures.dense.MAX_ARC_BYTES", 1_000)
    with pytest.raises(BudgetError, match=r"needs .* arcs at each of .* `inference='patterns'`"):
        estimator(loss="edit", inference="dense").fit(corpus.tokens, corpus.labels)
    # Left to choose, it takes the automaton, which keeps none.
    tagger = estimator(recipe="paper", loss="edit", base_strength=0.05, norm="elastic").fit(
        corpus.tokens, corpus.labels
    )
    assert tagger.gap_ <= 1e-2 * tagger.objective_


def test_group_norm_refuses_open_labels(corpus):
    """The objective is then not convex: no gap can be certified."""
    labels = [[None, *labels[1:]] for labels in corpus.labels]
    with pytest.raises(InputError, match="label of every token"):
        VCRF(recipe="paper", norm="group").fit(corpus.tokens, labels)


@pytest.mark.parametrize("estimator", [M3N, StructSVM])
def test_maximum_surrogates_take_the_group_norm(estimator, corpus):
    """To a certified gap; the lower bound stays below an objective that some weights are known to attain."""
    tagger = estimator(recipe="paper", norm="group", base_strength=0.005).fit(corpus.tokens, corpus.labels)
    assert tagger.gap_ <= 1e-2 * tagger.objective_
    attained = {M3N: 0.016442, StructSVM: 0.083054}[estimator]
    assert tagger.objective_ - tagger.gap_ <= attained <= 1.02 * tagger.objective_
    with pytest.raises(InputError, match="candidates='all'"):
        estimator(recipe="paper", norm="group", candidates="observed").fit(corpus.tokens, corpus.labels)


@pytest.mark.parametrize("estimator", [M3N, StructSVM])
def test_the_group_norm_on_both_lattices(estimator, corpus):
    """The same optimum within the gaps at order 3, where the automaton is chosen if nothing is said."""
    options = {"recipe": "paper", "norm": "group", "base_strength": 0.01, "tags": 3, "words": 0, "affix": 1}
    data = corpus.tokens[:15], corpus.labels[:15]
    found = {name: estimator(**options, inference=name).fit(*data) for name in ("auto", "patterns", "dense")}
    least = min(tagger.objective_ for tagger in found.values())
    for tagger in found.values():
        assert tagger.gap_ <= 1e-2 * tagger.objective_
        assert tagger.objective_ - tagger.gap_ <= least + 1e-12
    for norm in ("l1", "group"):
        with pytest.raises(InputError, match="`inference` must be 'auto', 'dense' or 'patterns', got 'nonsense'"):
            estimator(norm=norm, inference="nonsense").fit([["a", "b"]] * 4, [["A", "B"]] * 4)
