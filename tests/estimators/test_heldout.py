"""Development sets: the same scores as the model's, errors in the history, patience, and an honest status."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vcrf
from vcrf import VCRF
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError
from vcrf.estimators.heldout import DevelopmentSet, hold_out
from vcrf.families import default_families, explicit_families, intern_sentences, paper_families, read_attributes
from vcrf.metrics import token_error
from vcrf.model.build import build_model
from vcrf.penalties import FamilyPenalty
from vcrf.problem import build_problem
from vcrf.solvers.result import IterationRecord, SolverResult, Status

LANGUAGE = SyntheticLanguage(n_labels=4, seed=3, mean_length=6.0)


@pytest.fixture(scope="module")
def train() -> vcrf.Corpus:
    """Sentences to train on."""
    return LANGUAGE.sample(50, seed=4)


@pytest.fixture(scope="module")
def dev() -> vcrf.Corpus:
    """Other sentences of the language."""
    return LANGUAGE.sample(40, seed=5)


def as_dicts(sentences: list[list[str]]) -> list[list[dict[str, Any]]]:
    """Features with several values a token, numbers, and one that some tokens lack."""
    return [
        [{"w": w, "n": len(w) / 4, "s": [w[:1], w[-1:]], **({"long": w} if len(w) > 5 else {})} for w in x]
        for x in sentences
    ]


@pytest.mark.parametrize("norm", ["l1", "l2", "elastic"])
@pytest.mark.parametrize("kind", ["default", "paper", "dicts"])
def test_scores_are_those_of_the_model(train: vcrf.Corpus, dev: vcrf.Corpus, kind: str, norm: str) -> None:
    """Any weights: the potentials of the development set are the built model's."""
    if kind == "dicts":
        text, new = read_attributes(as_dicts(train.tokens)), read_attributes(as_dicts(dev.tokens))
        families = explicit_families(text, 3)
    else:
        text, new = intern_sentences(train.tokens), intern_sentences(dev.tokens)
        families = default_families(tags=3) if kind == "default" else paper_families(words=2, tags=2, affix=2)
    classes = sorted(train.label_set)
    y = np.array([classes.index(label) for labels in train.labels for label in labels], np.uint32)
    problem = build_problem(text, y, len(classes), families)
    rng = np.random.default_rng(0)
    found = []
    for k in problem.kinds:
        columns = rng.choice(np.flatnonzero(problem.has_order(k)), 1500).astype(np.uint32)
        found.append(problem.join_features(columns, k, rng.integers(4**k, size=1500).astype(np.uint32)))
    features = np.unique(np.concatenate(found))
    w = rng.normal(size=len(features))
    penalty = FamilyPenalty.from_strengths(np.arange(len(families)) % 3 + np.float64(1.0), norm).bind(problem)
    model = build_model(problem, penalty, SolverResult(features, w, 1, 0, 0, Status.CONVERGED, 1, 0), classes)
    expected = model.potentials(new)
    development = DevelopmentSet(problem, new, dev.labels, classes)
    scores = development.potentials(penalty, features, w)
    np.testing.assert_allclose(scores.node, expected.node, atol=1e-12)
    assert scores.order == expected.order
    assert scores.tables.keys() == expected.tables.keys()
    for i in range(0, len(dev), 7):
        np.testing.assert_allclose(scores.lattice(i).arcs, expected.lattice(i).arcs, atol=1e-12)
    decoded = [[classes[b] for b in labels] for labels in expected.decode()]
    assert development.error(penalty, features, w) == pytest.approx(token_error(dev.labels, decoded).rate)


def test_without_patience_errors_are_only_recorded(train: vcrf.Corpus, dev: vcrf.Corpus) -> None:
    """The same weights, bit for bit, and an error in each record."""
    seen: list[IterationRecord] = []
    plain = VCRF().fit(train.tokens, train.labels)
    watched = VCRF(callback=seen.append).fit(train.tokens, train.labels, X_dev=dev.tokens, y_dev=dev.labels)
    np.testing.assert_array_equal(plain.result_.weights, watched.result_.weights)
    assert watched.status_ is Status.CONVERGED
    assert all(record.dev_error is None for record in plain.history_)
    assert seen == watched.history_
    assert watched.history_[-1].dev_error == pytest.approx(1.0 - watched.score(dev.tokens, dev.labels))
    # From zero all weights are zero in the first record: the first label everywhere.
    watched = VCRF(dual_start=False).fit(train.tokens, train.labels, X_dev=dev.tokens, y_dev=dev.labels)
    first = [[watched.classes_[0]] * len(x) for x in dev.tokens]
    assert watched.history_[0].dev_error == pytest.approx(token_error(dev.labels, first).rate)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_patience_keeps_the_best_weights(train: vcrf.Corpus, dev: vcrf.Corpus, norm: str) -> None:
    """The returned weights have the smallest error seen; their gap is certified; asking for it gives no warning."""
    strength = {"recipe": "paper", "base_strength": 1e-4, "norm": norm}
    best = VCRF(**strength, tol=1e-8).fit(train.tokens, train.labels)
    early = VCRF(**strength, patience=2).fit(train.tokens, train.labels, X_dev=dev.tokens, y_dev=dev.labels)
    errors = [record.dev_error for record in early.history_]
    assert 1.0 - early.score(dev.tokens, dev.labels) == pytest.approx(min(errors))
    assert len(errors) - 1 - errors.index(min(errors)) == 2  # two rounds without improvement, and the end
    assert early.status_ is Status.CHOSEN
    assert early.result_.n_passes < best.result_.n_passes
    assert 0.0 < early.objective_ - best.objective_ <= early.gap_ < np.inf
    assert early.kkt_violation_ > 0.0


def test_patience_that_never_ends_may_still_choose(train: vcrf.Corpus, dev: vcrf.Corpus) -> None:
    """The solver converges; the weights are those with the best error all the same, and the status says which."""
    model = VCRF(recipe="paper", base_strength=1e-4, patience=1000).fit(
        train.tokens, train.labels, X_dev=dev.tokens, y_dev=dev.labels
    )
    assert 1.0 - model.score(dev.tokens, dev.labels) == pytest.approx(min(r.dev_error for r in model.history_))
    is_certified = model.gap_ <= model.tol_ * model.objective_
    assert model.status_ is (Status.CONVERGED if is_certified else Status.CHOSEN)


def test_of_equal_errors_the_later_weights_are_kept(train: vcrf.Corpus) -> None:
    """On the training data itself the error reaches 0 early; the optimum is kept."""
    watched = VCRF(patience=1000).fit(train.tokens, train.labels, X_dev=train.tokens, y_dev=train.labels)
    assert min(r.dev_error for r in watched.history_) == watched.history_[-1].dev_error
    assert watched.status_ is Status.CONVERGED


def test_callback_may_still_stop_the_run(train: vcrf.Corpus, dev: vcrf.Corpus) -> None:
    """Stopped by the user: that is the status, with the best weights on the development set."""
    calls: list[int] = []

    def stop(record: IterationRecord) -> bool:
        calls.append(record.n_passes)
        return len(calls) == 3

    with pytest.warns(match="interrupted"):
        model = VCRF(recipe="paper", base_strength=1e-4, patience=50, callback=stop).fit(
            train.tokens, train.labels, X_dev=dev.tokens, y_dev=dev.labels
        )
    assert model.status_ is Status.INTERRUPTED
    assert 1.0 - model.score(dev.tokens, dev.labels) == pytest.approx(min(r.dev_error for r in model.history_))


def test_unseen_labels_and_constraints_count(train: vcrf.Corpus, dev: vcrf.Corpus) -> None:
    """A label that training lacks is always wrong; constraints hold on the development set too."""
    classes = sorted(train.label_set)
    foreign = [["never seen"] * len(y) for y in dev.labels]
    model = VCRF().fit(train.tokens, train.labels, X_dev=dev.tokens, y_dev=foreign)
    assert {record.dev_error for record in model.history_} == {1.0}
    pairs = [(a, b) for a in classes for b in classes if a == b]
    bound = VCRF(constraints=pairs).fit(train.tokens, train.labels, X_dev=dev.tokens, y_dev=dev.labels)
    assert bound.history_[-1].dev_error == pytest.approx(1.0 - bound.score(dev.tokens, dev.labels))
    free = bound.predict(dev.tokens, constraints=[])
    assert bound.history_[-1].dev_error != pytest.approx(token_error(dev.labels, free).rate)


def test_tokens_without_a_label_are_not_counted(train: vcrf.Corpus, dev: vcrf.Corpus) -> None:
    """None in y_dev; the words still count as context."""
    some = [[label if t % 2 else None for t, label in enumerate(y)] for y in dev.labels]
    model = VCRF().fit(train.tokens, train.labels, X_dev=dev.tokens, y_dev=some)
    predicted = model.predict(dev.tokens)
    true = [[label for label in y if label] for y in some]
    found = [[b for a, b in zip(y, p, strict=True) if a] for y, p in zip(some, predicted, strict=True)]
    assert model.history_[-1].dev_error == pytest.approx(token_error(true, found).rate)


def test_feature_dicts(train: vcrf.Corpus, dev: vcrf.Corpus) -> None:
    """Given attributes, an empty sentence included."""
    X_dev, y_dev = [[], *as_dicts(dev.tokens)], [[], *dev.labels]
    model = VCRF().fit(as_dicts(train.tokens), train.labels, X_dev=X_dev, y_dev=y_dev)
    assert model.history_[-1].dev_error == pytest.approx(1.0 - model.score(X_dev, y_dev))


def test_patience_alone_holds_out_a_tenth(train: vcrf.Corpus) -> None:
    """The fast mode equals the same with those sentences given; a seed draws the same ones, another seed others."""
    parts = hold_out(train.tokens, train.labels, None, seed=7)
    assert (len(parts.X), len(parts.X_dev)) == (45, 5)
    together = sorted(zip(parts.X + parts.X_dev, parts.y + parts.y_dev, strict=True))
    assert together == sorted(zip(train.tokens, train.labels, strict=True))
    given = VCRF(patience=2).fit(parts.X, parts.y, X_dev=parts.X_dev, y_dev=parts.y_dev)
    alone = VCRF(patience=2, random_state=7).fit(train.tokens, train.labels)
    assert np.array_equal(alone.result_.weights, given.result_.weights)
    assert [record.dev_error for record in alone.history_] == [record.dev_error for record in given.history_]
    assert hold_out(train.tokens, train.labels, None, seed=8).X_dev != parts.X_dev


def test_held_out_sentences_take_no_label_away() -> None:
    """Nor are sentences drawn or counted that could tell nothing: empty, without labels, of weight 0."""
    X = [["a"]] * 20 + [["b"]] * 3 + [[]] * 40 + [["c"]] * 40 + [["d"]] * 100
    y: list[Any] = (
        [["A"]] * 20 + [["B"], ["C"], [{"D", "E"}]] + [[]] * 40 + [[None]] * 40 + [["A", "B"][:1]] * 99 + [["B"]]
    )
    weights = [1.0] * 103 + [0.0] * 100
    for seed in range(20):
        parts = hold_out(X, y, weights, seed)
        assert parts.X_dev == [["a"]] * 2  # a tenth of 22 with labels and weight
        assert parts.sample_weight == [1.0] * 101 + [0.0] * 100


def test_labels_named_in_sets_stay_in_training() -> None:
    """A sentence that alone names a label is not held out."""
    y: list[Any] = [["A", "B"]] * 30 + [["A", {"B", "C"}]]
    for seed in range(30):
        assert ["A", {"B", "C"}] not in hold_out([["a", "b"]] * 31, y, None, seed).y_dev


@pytest.mark.parametrize("weights", [[1.0] * 29, 1.0, [1.0] * 31, [-1.0] + [1.0] * 29])
def test_weights_are_checked_before_sentences_are_held_out(weights: Any) -> None:
    """The message counts the sentences that were given."""
    with pytest.raises(InputError, match="needs 30 finite numbers"):
        VCRF(patience=2).fit([["a"]] * 30, [["A"]] * 30, sample_weight=weights)
    with pytest.raises(InputError, match="Sentence 29, token 0"):
        VCRF(patience=2).fit([["a"]] * 30, [["A"]] * 29 + [[1.5]])


def test_verbose_shows_the_error(train: vcrf.Corpus, dev: vcrf.Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr."""
    VCRF(verbose=True).fit(train.tokens, train.labels, X_dev=dev.tokens, y_dev=dev.labels)
    captured = capsys.readouterr()
    assert "dev error " in captured.err.replace("\n", " ")
    assert captured.out == ""


@pytest.mark.parametrize(
    ("patience", "X_dev", "y_dev", "message"),
    [
        (3, None, None, "too few to do so: got 1. Give a development set"),
        (0, [["a"]], [["A"]], "`patience` must be a positive number of rounds, got 0"),
        (None, [["a"]], None, "X_dev and y_dev belong together"),
        (None, [["a"]], [["A", "B"]], "Sentence 0: expected one label a token"),
        (None, [[]], [[]], "development set needs at least one labelled token"),
        (None, [["a"]], [[None]], "development set needs at least one labelled token"),
        (None, [[{"w": "a"}]], [["A"]], "read off tokens"),
    ],
)
def test_wrong_development_sets_are_named(patience: int | None, X_dev: Any, y_dev: Any, message: str) -> None:
    """Before training."""
    with pytest.raises(InputError, match=message):
        VCRF(patience=patience).fit([["a", "b"]], [["A", "B"]], X_dev=X_dev, y_dev=y_dev)
