"""Estimators with settings drawn at random, on problems small enough to enumerate.

A fit must converge to its tolerance without a warning. Its objective must be that of the definition, its lower bound
below whatever a general solver finds, its labels and probabilities those of enumeration, and the saved model the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.campaign.part import Part

import oracles
from enumeration import all_candidates, column_of, families_of, feature_of
from small_problems import penalty_of
from surrogate_values import Losses, least_found
from vcrf import M3N, VCRF, StructSVM, VExponential, VStructBoost, load
from vcrf.compat import CRF
from vcrf.errors import InputError
from vcrf.families import read_attributes
from vcrf.losses.loss import IndefiniteLossWarning
from vcrf.problem import Problem, build_problem
from vcrf.solvers.result import Status

_WORDS = ["a", "b", "ab", "ba", "é", "Ab-1"]
_NUMBERS = [-2.0, -0.5, 0.0, 0.25, 1.0, 3.0]
_LOSSES = ["hamming", "ngram", "edit", "zero-one", "ngram-counts", "hamming:normalised=False,cost=3", "edit:band=1"]
_ESTIMATORS = {
    "crf": VCRF,
    "structboost": VStructBoost,
    "exponential": VExponential,
    "m3n": M3N,
    "structsvm": StructSVM,
}
# More candidates than this take a general solver too long.
_MOST_CANDIDATES = 2_500


@dataclass
class Drawn:
    """An estimator and what it is to learn."""

    estimator: Any
    kind: str
    X: list[list[Any]]
    y: list[list[Any]]
    weights: list[float] | None

    def __str__(self) -> str:
        return f"{self.estimator}\nX = {self.X}\ny = {self.y}\nsample_weight = {self.weights}"


@dataclass
class Fitted:
    """A fitted estimator and what it minimised."""

    drawn: Drawn
    problem: Problem
    penalty: Any
    loss: Any
    is_group: bool

    @property
    def result(self) -> Any:
        return self.drawn.estimator.result_


def prepare(scratch: Path) -> Path:
    """Nothing but a place for model files."""
    return scratch


def attack(scratch: Path, rng: np.random.Generator) -> str:
    """Fit and check."""
    drawn = _draw(rng)
    try:
        with warnings.catch_warnings(), _told(drawn):
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", IndefiniteLossWarning)  # what it warns of is meant
            try:
                fitted = _fit(drawn)
            except InputError as refusal:
                _check_refusal(refusal)
                return "refused"
            _check_objective(fitted)
            is_bounded = _check_bound(fitted)
            _check_predictions(fitted)
            _check_file(fitted, scratch / "model.vcrf")
    finally:
        (scratch / "model.vcrf").unlink(missing_ok=True)
    return "certified" if is_bounded else "certified, bound not checked"


@contextmanager
def _told(drawn: Drawn) -> Iterator[None]:
    """Add what was drawn to whatever is raised."""
    try:
        yield
    except BaseException as error:
        error.add_note(str(drawn))
        raise


# ------------------------------------------------------------------------------------ drawing


def _draw(rng: np.random.Generator) -> Drawn:
    lengths = rng.integers(0, 5, int(rng.integers(1, 5))).tolist()
    lengths[0] = max(lengths[0], 1)
    n_labels = int(rng.choice([1, 2, 2, 3, 3]))
    labels: list[Any] = ["A", "B", "C"] if rng.random() < 0.8 else [0, 1, 2]
    y = [[labels[int(rng.integers(n_labels))] for _ in range(n)] for n in lengths]
    form = str(rng.choice(["words", "words", "dicts", "lists", "rows"]))
    token = {"words": _word, "dicts": _dict, "lists": _attributes, "rows": _row}[form]
    X = [[token(rng) for _ in range(n)] for n in lengths]
    if rng.random() < 0.15 and form != "words":
        return Drawn(_draw_compat(rng), "crf", X, y, None)
    weights = (rng.integers(1, 9, len(X)) / 4.0).tolist() if rng.random() < 0.3 else None
    kind = str(rng.choice(list(_ESTIMATORS)))
    return Drawn(_draw_estimator(rng, kind, form, n_labels), kind, X, y, weights)


def _word(rng: np.random.Generator) -> str:
    return str(rng.choice(_WORDS))


def _dict(rng: np.random.Generator) -> dict[str, Any]:
    token: dict[str, Any] = {}
    if rng.random() < 0.6:
        token["w"] = _word(rng)
    if rng.random() < 0.6:
        token["flag"] = bool(rng.random() < 0.5)
    if rng.random() < 0.4:
        token["s"] = {_word(rng), _word(rng)}
    if rng.random() < 0.4:
        token["n"] = float(rng.choice(_NUMBERS))
    return token


def _attributes(rng: np.random.Generator) -> list[str]:
    return [f"w={_word(rng)}" for _ in range(int(rng.integers(0, 3)))]


def _row(rng: np.random.Generator) -> list[float]:
    return [float(rng.choice(_NUMBERS)) for _ in range(2)]


def _draw_compat(rng: np.random.Generator) -> CRF:
    c1, c2 = float(rng.choice([0.0, 0.05, 0.5])), float(rng.choice([0.01, 0.1, 1.0]))
    every = [bool(flag) for flag in rng.random(2) < 0.5]
    return CRF(c1=c1, c2=c2, all_possible_states=every[0], all_possible_transitions=every[1], delta=0.0, tol=1e-4)


def _draw_estimator(rng: np.random.Generator, kind: str, form: str, n_labels: int) -> VCRF:
    params: dict[str, Any] = {"tags": int(rng.choice([1, 2, 2, 3, 4])), "n_jobs": int(rng.choice([1, 2]))}
    if form == "words":
        params["families"] = str(rng.choice(["paper", "paper", "default"]))
        if params["families"] == "paper":
            params |= {"words": int(rng.integers(0, 2)), "affix": int(rng.integers(0, 2))}
        elif n_labels ** params["tags"] > 9:
            params["tags"] = 2
    params |= {"recipe": "paper", "norm": str(rng.choice(["l1", "l2", "elastic", "group"]))}
    params["inference"] = str(rng.choice(["auto", "auto", "dense", "patterns"]))
    if rng.random() < 0.9:
        params["base_strength"] = float(10.0 ** rng.uniform(-2.5, 0.3))
    if rng.random() < 0.3:
        params["complexity_strength"] = float(10.0 ** rng.uniform(-3.0, -0.5))
    if params["norm"] == "elastic" and rng.random() < 0.5:
        params["l1_ratio"] = float(rng.uniform(0.05, 0.95))
    if params["norm"] in ("l2", "elastic") and rng.random() < 0.3:
        params["count_power"] = float(rng.choice([0.35, 1.0, -0.5]))
    if kind == "crf" and rng.random() < 0.3:
        params["loss"] = None
    elif rng.random() < 0.8:
        params["loss"] = str(rng.choice(_LOSSES))
    if rng.random() < 0.3 and params["norm"] != "group":
        params["candidates"] = "observed"
    return _ESTIMATORS[kind](**params)


# ------------------------------------------------------------------------------------ fitting


def _fit(drawn: Drawn) -> Fitted:
    estimator = drawn.estimator
    if isinstance(estimator, CRF):
        estimator.fit(drawn.X, drawn.y)
        kept = [(x, y) for x, y in zip(drawn.X, drawn.y, strict=True) if len(x)]
        problem = estimator._problem(read_attributes([x for x, _ in kept]), [y for _, y in kept], estimator.classes_)
        fitted = Fitted(drawn, problem, estimator._penalty(problem), None, False)
    else:
        estimator.fit(drawn.X, drawn.y, sample_weight=drawn.weights)
        data = estimator._read(drawn.X, drawn.y, drawn.weights)
        loss = estimator._loss(data.classes)
        is_group = estimator._form()["norm"] == "group"
        fitted = Fitted(drawn, data.problem, estimator._penalty(data), loss, is_group)
    assert estimator.status_ is Status.CONVERGED, estimator.status_
    tol = estimator.tol if isinstance(estimator, CRF) else estimator.tol_
    assert fitted.result.gap <= tol * fitted.result.objective
    return fitted


_REFUSALS = (
    "needs the label of every token",
    "candidates='all'",
)


def _check_refusal(refusal: InputError) -> None:
    """Settings that do not go together are refused; nothing else is."""
    assert any(text in str(refusal) for text in _REFUSALS), str(refusal)


# ------------------------------------------------------------------------------------ checking


def _check_objective(fitted: Fitted) -> None:
    problem, result = fitted.problem, fitted.result
    features = [feature_of(problem, number) for number in result.features]
    value, _ = Losses(problem, features, fitted.loss).surrogate(fitted.drawn.kind, result.weights)
    if fitted.is_group:
        squares: dict[tuple[int, int], float] = {}
        for feature, w in zip(features, result.weights.tolist(), strict=True):
            squares[feature.column, feature.k] = squares.get((feature.column, feature.k), 0.0) + w * w
        omega = sum(
            fitted.penalty.l1[families_of(problem, *group)].min() * np.sqrt(square) for group, square in squares.items()
        )
    else:
        omega = penalty_of(problem, fitted.penalty, features, result.weights)
    np.testing.assert_allclose(result.objective, value + omega, rtol=1e-8, atol=1e-10)


def _check_bound(fitted: Fitted) -> bool:
    """No point that a general solver finds, on columns that were not merged, lies below the certified bound."""
    merged = fitted.problem
    problem = build_problem(
        merged.text, merged.y, merged.n_labels, merged.families, weights=merged.weights, candidates=merged.candidates,
        merge_twins=False,
    )  # fmt: skip
    every = all_candidates(problem)
    if len(every) > _MOST_CANDIDATES:
        return False
    family = np.array([families_of(problem, feature.column, feature.k)[0] for feature in every], np.int64)
    penalty, groups = fitted.penalty, None
    l1, l2 = penalty.l1[family], penalty.l2[family]
    if fitted.is_group:
        _, first, groups = np.unique([10 * f.column + f.k for f in every], return_index=True, return_inverse=True)
        l1 = l1[first]
    elif penalty.count_power != 0.0:
        counts = np.array([max(len(column_of(problem, feature.column)), 1) for feature in every])
        l2 = l2 * counts**penalty.count_power
    best = least_found(Losses(problem, every, fitted.loss), fitted.drawn.kind, l1, l2, groups)
    lower = fitted.result.objective - fitted.result.gap
    assert lower <= best + 1e-9 * (1.0 + abs(best)), (lower, best)
    return True


def _check_predictions(fitted: Fitted) -> None:
    """Labels are among the best, probabilities are those of enumeration, on the sentences of training."""
    estimator, result, problem = fitted.drawn.estimator, fitted.result, fitted.problem
    X = [x for x in fitted.drawn.X if len(x)]
    temperature = estimator.temperature_ if isinstance(estimator, VCRF) else 1.0
    truth = Losses(problem, [feature_of(problem, number) for number in result.features], None)
    labels, marginals = estimator.predict(X), estimator.predict_marginals(X)
    number = {label: i for i, label in enumerate(estimator.classes_)}
    kept = _sentences_of(problem, fitted.drawn)
    for i, where in enumerate(kept):
        scores = truth.scores(i, result.weights / temperature)
        codes = [number[label] for label in labels[where]]
        rank = int(np.ravel_multi_index(codes, [problem.n_labels] * len(codes)))
        assert scores[rank] >= scores.max() - 1e-8 * (1.0 + abs(scores).max())
        expected = oracles.pattern_marginals(scores, len(codes), problem.n_labels, 1)
        found = np.array([[row[label] for label in estimator.classes_] for row in marginals[where]])
        np.testing.assert_allclose(found, expected, atol=1e-8)


def _sentences_of(problem: Problem, drawn: Drawn) -> list[int]:
    """Number, among those with tokens, of each sentence of the problem; training leaves empty ones out."""
    assert problem.text.n_sentences == sum(bool(x) for x in drawn.X)
    return list(range(problem.text.n_sentences))


def _check_file(fitted: Fitted, path: Path) -> None:
    estimator = fitted.drawn.estimator
    estimator.save(path)
    again = load(path)
    assert again.predict(fitted.drawn.X) == estimator.predict(fitted.drawn.X)
    assert again.predict_marginals(fitted.drawn.X) == estimator.predict_marginals(fitted.drawn.X)


PART = Part(
    name="fits",
    about="estimators with random settings on tiny problems, verified by enumeration",
    count=5_000,
    limit=60.0,
    prepare=prepare,
    attack=attack,
)
