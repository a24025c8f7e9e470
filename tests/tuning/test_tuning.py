"""Choosing strengths: the table against single fits, ties, folds, interruption, text and plot."""

from __future__ import annotations

import io
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import vcrf
from vcrf import VCRF
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError, MissingExtraError
from vcrf.metrics import token_error
from vcrf.solvers.result import IterationRecord, Status
from vcrf.tuning import TuneResult, TuneRow
from vcrf.tuning.search import _grid, _splits, best_row

LANGUAGE = SyntheticLanguage(n_labels=4, seed=3, mean_length=6.0)
GRID: dict[str, Any] = {"complexity_strengths": [0.0, 0.01], "base_strengths": [0.05, 0.01]}
# From strong to weak by complexity_strength * mean complexity + base_strength.
POINTS = [(0.01, 0.05), (0.0, 0.05), (0.01, 0.01), (0.0, 0.01)]


@pytest.fixture(scope="module")
def train() -> vcrf.Corpus:
    """Sentences to train on."""
    return LANGUAGE.sample(45, seed=4)


@pytest.fixture(scope="module")
def dev() -> vcrf.Corpus:
    """Other sentences of the language."""
    return LANGUAGE.sample(40, seed=5)


@pytest.fixture(scope="module")
def tuned(train: vcrf.Corpus) -> TuneResult:
    """Three folds, four points."""
    return VCRF(recipe="paper", norm="l1", tol=1e-2).tune(train.tokens, train.labels, folds=3, **GRID)


def test_development_errors_are_those_of_the_path(train: vcrf.Corpus, dev: vcrf.Corpus) -> None:
    """Every point solved to the tolerance: the same weights as `path`, so the same errors, counts and gaps."""
    found = VCRF(recipe="paper", norm="l1", tol=1e-6).tune(
        train.tokens, train.labels, dev.tokens, dev.labels, settle=None, **GRID
    )
    taggers = list(VCRF(recipe="paper", norm="l1", tol=1e-6).path(train.tokens, train.labels, POINTS))
    assert [(row.complexity_strength, row.base_strength) for row in found.rows] == POINTS
    for row, tagger in zip(found.rows, taggers, strict=True):
        assert row.error == pytest.approx(1.0 - tagger.score(dev.tokens, dev.labels))
        assert row.n_active == tagger.n_active_
        assert row.relative_gap == tagger.result_.relative_gap <= 1e-6
        assert (row.error_std, row.n_folds) == (None, 1)
        assert row.seconds > 0.0
    chosen = taggers[found.rows.index(found.best)]
    assert found.estimator.objective_ == pytest.approx(chosen.objective_, rel=2e-6)
    assert found.estimator.predict(dev.tokens) == chosen.predict(dev.tokens)
    assert found.estimator.result_.n_passes == 1  # it starts from the solution, and checks it
    assert not found.is_interrupted


@pytest.mark.parametrize("norm", ["l1", "l2", "elastic"])
def test_errors_of_folds_are_those_of_single_fits(train: vcrf.Corpus, norm: str) -> None:
    """Mean and standard deviation over folds, trained one by one, with weights of sentences."""
    form = {"recipe": "paper", "norm": norm, "l1_ratio": 0.3, "count_power": 0.2, "tol": 1e-6}
    base = VCRF(**form)
    weights = [float(1 + (i % 5) ** 2) for i in range(len(train))]
    options = {"folds": 3, "random_state": 7, "settle": None, "sample_weight": weights}
    (row,) = base.tune(train.tokens, train.labels, complexity_strengths=[0.01], base_strengths=[0.02], **options).rows
    errors, counts = [], []
    for kept, held_out in _splits(len(train), 3, 7):
        tagger = VCRF(**form, complexity_strength=0.01, base_strength=0.02)
        some = [weights[i] for i in kept]
        tagger.fit([train.tokens[i] for i in kept], [train.labels[i] for i in kept], sample_weight=some)
        predicted = tagger.predict([train.tokens[i] for i in held_out])
        errors.append(token_error([train.labels[i] for i in held_out], predicted).rate)
        counts.append(tagger.n_active_)
    assert row.error == pytest.approx(np.mean(errors))
    assert row.error_std == pytest.approx(np.std(errors, ddof=1))
    assert row.n_active == pytest.approx(np.mean(counts))
    assert row.n_folds == 3


def test_estimator_is_trained_on_everything_to_its_tolerance(train: vcrf.Corpus, tuned: TuneResult) -> None:
    """As a fit at the best point would, though the points of the grid are only settled."""
    point = {"complexity_strength": tuned.best.complexity_strength, "base_strength": tuned.best.base_strength}
    assert tuned.estimator.get_params() == VCRF(recipe="paper", norm="l1", tol=1e-2, **point).get_params()
    assert tuned.estimator.status_ is Status.CONVERGED
    expected = VCRF(recipe="paper", norm="l1", tol=1e-2, **point).fit(train.tokens, train.labels)
    np.testing.assert_array_equal(tuned.estimator.result_.weights, expected.result_.weights)


def test_settled_points_take_fewer_passes_and_say_their_gap(train: vcrf.Corpus, dev: vcrf.Corpus) -> None:
    """A settled objective is close to the optimum long before the certificate is."""
    arguments = (train.tokens, train.labels, dev.tokens, dev.labels)
    passes: dict[float | None, int] = {}
    for settle in (None, 1e-2):
        seen: list[int] = []
        found = VCRF(tol=1e-5, dual_start=False, callback=lambda r, seen=seen: seen.append(r.n_passes)).tune(
            *arguments, settle=settle, complexity_strengths=[0.0], base_strengths=[0.01, 0.002]
        )
        passes[settle] = len(seen)
        if settle is not None:
            assert max(row.relative_gap for row in found.rows) > 1e-5
        assert found.estimator.gap_ <= 1e-5 * found.estimator.objective_
    assert passes[1e-2] < passes[None]


def test_same_seed_same_table(train: vcrf.Corpus, tuned: TuneResult) -> None:
    """Whatever the threads; another seed draws other folds."""

    def table(result: TuneResult) -> list[TuneRow]:
        return [replace(row, seconds=0.0) for row in result.rows]

    again = VCRF(recipe="paper", norm="l1", tol=1e-2, n_jobs=1).tune(train.tokens, train.labels, folds=3, **GRID)
    assert table(again) == table(tuned)
    other = VCRF(recipe="paper", norm="l1", tol=1e-2).tune(train.tokens, train.labels, folds=3, random_state=1, **GRID)
    assert table(other) != table(tuned)


@pytest.mark.parametrize(("n", "folds"), [(10, 2), (10, 3), (7, 7)])
def test_folds_hold_out_every_sentence_once(n: int, folds: int) -> None:
    """And train on all others."""
    splits = _splits(n, folds, 0)
    assert len(splits) == folds
    assert sorted(np.concatenate([held_out for _, held_out in splits]).tolist()) == list(range(n))
    for kept, held_out in splits:
        assert sorted([*kept.tolist(), *held_out.tolist()]) == list(range(n))


def test_ties_go_to_the_sparser() -> None:
    """Then to the stronger, which comes first."""
    row = TuneRow(0.0, 0.1, 0.2, None, 10.0, 0.0, 1.0, 1)
    sparse, late = replace(row, n_active=5.0, base_strength=0.3), replace(row, n_active=5.0, base_strength=0.4)
    assert best_row([row, sparse, late]) is sparse
    better = replace(row, error=0.1, n_active=100.0)
    assert best_row([row, sparse, better]) is better


def test_default_grid_is_relative_to_the_number_of_sentences(train: vcrf.Corpus, dev: vcrf.Corpus) -> None:
    """Base strengths of 2 to 0.1 occurrences; complexity strengths that add 0 to 1 for the mean family."""
    found = VCRF(recipe="paper", norm="l1", tol=0.1).tune(
        train.tokens, train.labels, dev.tokens, dev.labels, settle=0.1
    )
    m = len(train)
    typical = np.mean([facts.complexity for facts in found.estimator.families_])
    assert sorted({row.base_strength * m for row in found.rows}) == pytest.approx([0.1, 0.25, 0.5, 1.0, 2.0])
    assert sorted({row.complexity_strength * m * typical for row in found.rows}) == pytest.approx([0, 0.1, 0.3, 1])
    assert len(found.rows) == 20


@pytest.mark.parametrize("norm", ["l1", "l2", "elastic", "lp", "group", "family"])
def test_default_grid_of_each_norm(train: vcrf.Corpus, norm: str) -> None:
    """As the documentation has it: weaker strengths where they are no threshold."""
    data = VCRF(norm=norm, affix=1)._read(train.tokens, train.labels, None)
    m, is_threshold = len(train), norm in ("l1", "group", "family")
    expected = [2.0, 1.0, 0.5, 0.25, 0.1] if is_threshold else [0.9, 0.3, 0.09, 0.03]
    assert [point.base * m for point in _grid(data, norm, [0.0], None)] == pytest.approx(expected)


def test_nothing_set_means_the_elastic_net(train: vcrf.Corpus, dev: vcrf.Corpus) -> None:
    """As for `fit`, though every point has strengths; weaker ones than for l1."""
    found = VCRF(tol=0.1).tune(
        train.tokens, train.labels, dev.tokens, dev.labels, settle=0.1, complexity_strengths=[0.0]
    )
    assert (found.estimator.norm_, found.estimator.l1_ratio_, found.estimator.count_power_) == ("elastic", 2 / 3, 0.35)
    assert (found.estimator.loss_, found.estimator.temperature_) == ("hamming:normalised=False,cost=3", 1.6)
    assert found.estimator.factors_ is True
    assert sorted({row.base_strength * len(train) for row in found.rows}) == pytest.approx([0.03, 0.09, 0.3, 0.9])


def test_sentences_of_weight_zero_are_left_out(train: vcrf.Corpus) -> None:
    """In the folds too."""
    weights = [1.0] * 45
    weights[3] = weights[30] = 0.0
    kept = [i for i in range(45) if weights[i]]
    some = {"complexity_strengths": [0.0], "base_strengths": [0.02], "folds": 2}
    weighted = VCRF(tol=1e-2).tune(train.tokens, train.labels, sample_weight=weights, **some)
    plain = VCRF(tol=1e-2).tune([train.tokens[i] for i in kept], [train.labels[i] for i in kept], **some)
    assert weighted.best.error == pytest.approx(plain.best.error)
    assert weighted.estimator.objective_ == pytest.approx(plain.estimator.objective_)


# ------------------------------------------------------------------------------------ interruption


class CtrlC:
    """Callback that is interrupted once, at the n-th pass over the data of a run that has had n_runs before."""

    def __init__(self, n_runs: int) -> None:
        self.n_left, self.before = n_runs, np.inf

    def __call__(self, record: IterationRecord) -> None:
        is_new_run = record.n_passes < self.before
        self.before = record.n_passes
        if is_new_run:
            self.n_left -= 1
            if self.n_left == -1:
                raise KeyboardInterrupt

    def __deepcopy__(self, memo: object) -> CtrlC:
        return self  # scikit-learn's clone copies parameters; this one keeps count


def test_interrupted_in_the_third_fold(train: vcrf.Corpus) -> None:
    """The two folds that are complete make the table, and the best point is trained."""
    found = VCRF(tol=1e-2, dual_start=False, callback=CtrlC(2 * 4 + 1)).tune(
        train.tokens, train.labels, folds=3, **GRID
    )
    assert found.is_interrupted
    assert [row.n_folds for row in found.rows] == [2] * 4
    assert found.best == best_row(found.rows)
    assert found.estimator.status_ is Status.CONVERGED


def test_interrupted_in_the_first_fold(train: vcrf.Corpus) -> None:
    """What is done of it makes the table."""
    found = VCRF(tol=1e-2, dual_start=False, callback=CtrlC(2)).tune(train.tokens, train.labels, folds=3, **GRID)
    assert [(row.complexity_strength, row.base_strength) for row in found.rows] == POINTS[:2]
    assert found.is_interrupted


def test_interrupted_at_once(train: vcrf.Corpus) -> None:
    """Nothing is done, so nothing can be returned."""
    with pytest.raises(KeyboardInterrupt):
        VCRF(callback=CtrlC(0)).tune(train.tokens, train.labels, folds=3, **GRID)


def test_callback_may_end_the_search(train: vcrf.Corpus, dev: vcrf.Corpus) -> None:
    """By returning True, as in `fit`."""
    calls: list[int] = []

    def stop(record: IterationRecord) -> bool:
        calls.append(record.n_passes)
        return len(calls) > 12

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the last training is stopped too
        found = VCRF(tol=1e-4, callback=stop).tune(train.tokens, train.labels, dev.tokens, dev.labels, **GRID)
    assert found.is_interrupted
    assert 0 < len(found.rows) < 4


# ------------------------------------------------------------------------------------ text and plot


def test_table_as_text(tuned: TuneResult) -> None:
    """One line a row; the best is bold."""
    lines = tuned.to_markdown().splitlines()
    assert len(lines) == 2 + len(tuned.rows)
    assert [line for line in lines if "**" in line] == [lines[2 + tuned.rows.index(tuned.best)]]
    assert f"{100 * tuned.best.error:.2f}" in lines[2 + tuned.rows.index(tuned.best)]
    assert f"{100 * (tuned.best.error_std or 0.0):.2f}" in lines[2 + tuned.rows.index(tuned.best)]
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(tuned.table())
    text = console.export_text()
    assert "complexity_strength" in text
    assert all(f"{100 * row.error:.2f}" in text for row in tuned.rows)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_plot_writes_a_picture(tuned: TuneResult, tmp_path: Path, suffix: str) -> None:
    """Of the kind that the name asks for."""
    pytest.importorskip("matplotlib")
    path = tmp_path / f"tuned.{suffix}"
    tuned.plot(path)
    start = path.read_bytes()[:200]
    assert start.startswith(b"\x89PNG") if suffix == "png" else b"<?xml" in start


def test_plot_has_a_place_for_zero_and_for_one_point(tuned: TuneResult, tmp_path: Path) -> None:
    """base_strength 0 is allowed in a grid."""
    pytest.importorskip("matplotlib")
    row = replace(tuned.best, base_strength=0.0, error_std=None)
    for rows in ([row], [row, *tuned.rows]):
        replace(tuned, rows=rows, best=row).plot(tmp_path / "zero.png")


def test_plot_without_matplotlib(tuned: TuneResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[plots\]'"):
        tuned.plot(tmp_path / "x.png")


def test_verbose_writes_a_line_a_point(
    train: vcrf.Corpus, dev: vcrf.Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr."""
    VCRF(tol=1e-2, verbose=True).tune(
        train.tokens, train.labels, dev.tokens, dev.labels, complexity_strengths=[0.0], base_strengths=[0.05, 0.02]
    )
    captured = capsys.readouterr()
    assert captured.err.count("fold 1") == 2
    assert captured.out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"folds": 1}, "`folds` must be an integer from 2 to the number of sentences, 45: got 1"),
        ({"folds": 46}, "got 46"),
        ({"complexity_strengths": [0.0], "base_strengths": [0.0]}, r"a point other than \(0, 0\)"),
        ({"base_strengths": [-1.0]}, "`base_strength` must be a finite number that is not negative, got -1.0"),
        ({"settle": 0.0}, "settle must be a share between 0 and 1"),
        ({"X_dev": [["a"]]}, "X_dev and y_dev belong together"),
    ],
)
def test_wrong_arguments_are_named(train: vcrf.Corpus, arguments: dict[str, Any], message: str) -> None:
    """What was expected and what was found."""
    with pytest.raises(InputError, match=message):
        VCRF().tune(train.tokens, train.labels, **arguments)


def test_a_radius_is_refused_for_what_it_lacks(train: vcrf.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the data are read; a search that solves every point has it."""
    tagger = VCRF(recipe="paper", radius=1.0, affix=1, tol=0.1)
    X, y = train.tokens[:10], train.labels[:10]
    found = tagger.tune(X, y, folds=2, settle=None, complexity_strengths=[0.0], base_strengths=[0.1, 0.2])
    assert [row.base_strength for row in found.rows] == [0.2, 0.1]
    monkeypatch.setattr(VCRF, "_read", None)
    with pytest.raises(InputError, match=r"`tune` ends points early.*`radius`.*`settle=None`"):
        tagger.tune(X, y)
    with pytest.raises(InputError, match="`radius` is not there with a development set or `patience`"):
        tagger.fit(X, y, X_dev=X, y_dev=y)
    with pytest.raises(InputError, match="`radius` is not there with a development set or `patience`"):
        VCRF(radius=1.0, patience=2).fit(X, y)
