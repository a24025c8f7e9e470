"""Choosing the strengths: a warm-started path over a grid, scored on a development set or by cross-validation.

Points of the grid are not solved to the certified tolerance: the error on other text is decided long before. A point
ends when the objective has settled, the chosen one is then solved to the estimator's `tol`. Every row of the table
carries the certified gap of its point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vcrf.arguments.inputs import check_together, training_sentences
from vcrf.arguments.running import terminal
from vcrf.errors import InputError
from vcrf.solvers.result import IterationRecord, SolverResult, Status
from vcrf.tuning.result import TuneResult, TuneRow
from vcrf.types import Floats, Ints

if TYPE_CHECKING:
    from vcrf.estimators import VCRF
    from vcrf.estimators.heldout import DevelopmentSet
    from vcrf.estimators.parameters import TrainingData

# Strengths of the default grid, in occurrences: divided by the number of sentences m (and by the mean complexity).
_SMOOTH = (0.9, 0.3, 0.09, 0.03)
# What a gradient, or that of a group or family, has to exceed.
_THRESHOLD = (2.0, 1.0, 0.5, 0.25, 0.1)
BASE_OCCURRENCES = {
    "l1": _THRESHOLD, "group": _THRESHOLD, "family": _THRESHOLD, "l2": _SMOOTH, "elastic": _SMOOTH, "lp": _SMOOTH,
}  # fmt: skip
COMPLEXITY_OCCURRENCES = (0.0, 0.1, 0.3, 1.0)


class GridPoint(NamedTuple):
    """Strengths."""

    complexity: float
    base: float


class SettledWatch:
    """Stops when the objective has settled: a decrease of less than `share` in 20 passes (see `Watch`)."""

    preferred = None

    def __init__(self, share: float) -> None:
        self.share = share
        self.objectives = [(0, np.inf)]

    def look(self, record: IterationRecord, features: Ints, w: Floats) -> IterationRecord:  # noqa: ARG002
        self.objectives.append((record.n_passes, record.objective))
        return record

    @property
    def is_enough(self) -> bool:
        n_passes, objective = self.objectives[-1]
        before = [value for n, value in self.objectives if n <= n_passes - 20]
        return bool(before) and before[-1] - objective < self.share * objective


def tune(
    estimator: VCRF,
    X: Iterable[Any],
    y: Iterable[Any],
    sample_weight: Sequence[float] | None,
    X_dev: Iterable[Any] | None,
    y_dev: Iterable[Any] | None,
    folds: int,
    complexity_strengths: Sequence[float] | None,
    base_strengths: Sequence[float] | None,
    settle: float | None,
    random_state: int,
    on_stage: Callable[[str], None] | None = None,
) -> TuneResult:
    """See `VCRF.tune`."""
    if estimator.patience is not None:
        raise InputError(
            f"`tune` ends its points by a rule of its own, got `patience={estimator.patience}` too. Leave "
            "`patience` out."
        )
    sentences, labels, weights = training_sentences(X, y, sample_weight, may_be_open=True)
    data = estimator._read(sentences, labels, None if weights is None else weights.tolist())
    grid = _grid(data, estimator._value("norm"), complexity_strengths, base_strengths)
    check_together(X_dev, y_dev)
    search = _Search(estimator, grid, settle, 1 if X_dev is not None else folds, on_stage)
    search.begin("tuning")
    development = None if X_dev is None else estimator._development(data, X_dev, y_dev)
    try:
        if development is not None:
            search.solve_path(data, development)
        else:
            for train, held_out in _splits(len(sentences), folds, random_state):
                part = estimator._read(_some(sentences, train), _some(labels, train), _some(weights, train))
                other = estimator._development(part, _some(sentences, held_out), _some(labels, held_out))
                search.solve_path(part, other)
    except KeyboardInterrupt:  # the solver's own ends its point; the rest is what was done before
        search.is_interrupted = True
    rows = search.rows()
    if not rows:
        raise KeyboardInterrupt("The search was interrupted before the first point was done.")
    best = best_row(rows)
    point = GridPoint(best.complexity_strength, best.base_strength)
    start = search.folds[0][point].result if development is not None else None
    search.begin("training")
    return TuneResult(rows, best, search.at(point)._solve(data, start), search.is_interrupted)


class _Solved(NamedTuple):
    """A point in one fold."""

    error: float
    result: SolverResult


class _Search:
    """What has been solved so far, fold by fold."""

    def __init__(
        self,
        estimator: VCRF,
        grid: list[GridPoint],
        settle: float | None,
        n_folds: int,
        on_stage: Callable[[str], None] | None,
    ) -> None:
        if settle is not None and not 0.0 < settle < 1.0:
            raise InputError(f"settle must be a share between 0 and 1, or None to solve every point, got {settle!r}.")
        self.estimator, self.grid, self.settle = estimator, grid, settle
        self.n_folds, self.on_stage = n_folds, on_stage
        self.folds: list[dict[GridPoint, _Solved]] = []
        self.is_interrupted = False
        self.report = terminal() if estimator.verbose else None

    def begin(self, stage: str) -> None:
        """Tell what begins."""
        if self.on_stage is not None:
            self.on_stage(stage)

    def at(self, point: GridPoint) -> VCRF:
        """The estimator with the strengths of a point."""
        from sklearn.base import clone

        tagger: VCRF = clone(self.estimator)
        tagger.set_params(complexity_strength=point.complexity, base_strength=point.base)
        tagger._check_parameters()
        return tagger

    def solve_path(self, data: TrainingData, development: DevelopmentSet) -> None:
        """Solve for all points on one training set, each from the one before."""
        solved: dict[GridPoint, _Solved] = {}
        self.folds.append(solved)
        start: SolverResult | None = None
        for point in self.grid:
            n_done = sum(map(len, self.folds))
            self.begin(f"tuning {n_done + 1}/{len(self.grid) * self.n_folds}")
            tagger = self.at(point).set_params(verbose=False)
            start = tagger._run(data, start, None if self.settle is None else SettledWatch(self.settle))
            if start.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            penalty = tagger._penalty(data).bind(data.problem)
            solved[point] = _Solved(development.error(penalty, start.features, start.weights), start)
            if self.report is not None:
                self.report(
                    f"fold {len(self.folds)}  complexity_strength {point.complexity:.3g}  base_strength "
                    f"{point.base:.3g}  error {100 * solved[point].error:.2f} %  {start.seconds:.1f} s"
                )

    def rows(self) -> list[TuneRow]:
        """The table, of the folds that are complete; of the first one if none is."""
        complete = [fold for fold in self.folds if len(fold) == len(self.grid)] or self.folds[:1]
        return [
            _row(point, [fold[point] for fold in complete]) for point in self.grid if complete and point in complete[0]
        ]


def best_row(rows: Sequence[TuneRow]) -> TuneRow:
    """The smallest error; of equal ones the fewest features, then the strongest."""
    return min(rows, key=lambda row: (row.error, row.n_active))


def _row(point: GridPoint, solved: list[_Solved]) -> TuneRow:
    errors = np.array([fold.error for fold in solved])
    return TuneRow(
        complexity_strength=point.complexity,
        base_strength=point.base,
        error=float(errors.mean()),
        error_std=float(errors.std(ddof=1)) if len(errors) > 1 else None,
        n_active=float(np.mean([len(fold.result.features) for fold in solved])),
        relative_gap=max(fold.result.relative_gap for fold in solved),
        seconds=sum(fold.result.seconds for fold in solved),
        n_folds=len(solved),
    )


def _grid(
    data: TrainingData,
    norm: str,
    complexity_strengths: Sequence[float] | None,
    base_strengths: Sequence[float] | None,
) -> list[GridPoint]:
    """All pairs but (0, 0), which has no minimum in general, from strong to weak."""
    m, typical = data.problem.text.n_sentences, float(np.mean(data.complexities))
    if base_strengths is None:
        base_strengths = [c / m for c in BASE_OCCURRENCES[norm]]
    if complexity_strengths is None:
        complexity_strengths = [c / (m * typical) for c in COMPLEXITY_OCCURRENCES] if typical > 0.0 else [0.0]
    points = {GridPoint(float(c), float(b)) for c in complexity_strengths for b in base_strengths} - {
        GridPoint(0.0, 0.0)
    }
    if not points:
        raise InputError("The grid needs a point other than (0, 0): give positive strengths.")
    return sorted(points, key=lambda point: strength_order(point, typical))


def strength_order(point: tuple[float, float], typical_complexity: float) -> tuple[float, float]:
    """Sort key of (complexity_strength, base_strength) from strong to weak."""
    complexity, base = point
    return -(complexity * typical_complexity + base), -complexity


def _splits(n: int, folds: int, random_state: int) -> list[tuple[Ints, Ints]]:
    """Training and held-out sentences of each fold, drawn by the seed."""
    if not isinstance(folds, Integral) or isinstance(folds, bool) or not 2 <= folds <= n:
        raise InputError(
            f"`folds` must be an integer from 2 to the number of sentences, {n}: got {folds!r}. Or give "
            "a development set."
        )
    order = np.random.default_rng(random_state).permutation(n)
    held_out = [np.sort(order[i::folds]) for i in range(folds)]
    return [(np.setdiff1d(order, part), part) for part in held_out]


def _some(values: Any, which: Ints) -> Any:
    if values is None:
        return None
    return [values[i] for i in which.tolist()]
