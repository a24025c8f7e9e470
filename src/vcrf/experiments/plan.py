"""What a call wants to know, the tasks that tell it, and the results that are there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from vcrf.experiments.comparison import Summary, choose, l1_crf
from vcrf.experiments.datasets import Dataset
from vcrf.experiments.methods import Method
from vcrf.experiments.protocol import N_FOLDS, NOISE, Grid
from vcrf.experiments.scheduling import Outcome, Runner
from vcrf.experiments.store import Store
from vcrf.experiments.tasks import PathPoint, PathTask, Settings, make_tasks

TABLES = ("results", "features", "noise")


@dataclass(frozen=True)
class Plan:
    """An experiment."""

    datasets: list[Dataset]
    methods: list[Method]
    grid: Grid
    tables: tuple[str, ...] = TABLES
    runs: tuple[int, ...] = tuple(range(N_FOLDS))
    noise: float = NOISE
    settings: Settings = field(default_factory=Settings)

    @property
    def noises(self) -> list[float]:
        """Shares of flipped labels that the tables need."""
        clean = [0.0] if {"results", "features"} & set(self.tables) else []
        noisy = [self.noise] if "noise" in self.tables else []
        return clean + [noise for noise in noisy if noise not in clean]  # --noise 0 asks for the same twice

    @cached_property
    def tasks(self) -> list[PathTask]:
        return make_tasks(self.datasets, self.methods, self.grid, self.noises, self.runs, self.settings)

    @cached_property
    def work(self) -> list[PathTask]:
        """The tasks, each once: files of equal content, and methods of equal parameters, have the same ones."""
        return list({task.key: task for task in self.tasks}.values())


class Progress(NamedTuple):
    """How far a call has come.

    Attributes
    ----------
    n_done, n_all : tasks, those stored before the call included
    seconds_left : an estimate; None before the first task is done
    latest : the outcome that is new
    """

    n_done: int
    n_all: int
    seconds_left: float | None
    latest: Outcome | None


def carry_out(
    plan: Plan, store: Store, runner: Runner, on_progress: Callable[[Progress], None], failed: list[Outcome]
) -> None:
    """Run the tasks that are not stored yet and store their results; those that fail are added to `failed`."""
    missing = store.missing(plan.work)
    n_all = len(plan.work)
    n_done = n_all - len(missing)
    on_progress(Progress(n_done, n_all, None, None))
    sizes = {dataset.checksum: dataset.n_tokens * dataset.n_labels for dataset in plan.datasets}
    cost = {task.key: sizes[task.checksum] * _weight(task.complexity_strength) for task in missing}
    cost_left, cost_done, began = float(sum(cost.values())), 0.0, time.monotonic()
    blobs = {dataset.checksum: dataset.blob for dataset in plan.datasets}
    with closing(runner(missing, blobs)) as outcomes:  # whatever stops this stops the workers
        for outcome in outcomes:
            if outcome.result is None:
                failed.append(outcome)
            else:
                store.add(outcome.task, outcome.result)
                n_done += 1
            cost_left, cost_done = cost_left - cost[outcome.task.key], cost_done + cost[outcome.task.key]
            left = (time.monotonic() - began) * cost_left / cost_done
            on_progress(Progress(n_done, n_all, left, outcome))


def _weight(complexity_strength: float) -> float:
    """Relative time of a path, as measured: weak penalties leave many features."""
    if complexity_strength >= 0.1:
        return 1.0
    return 3.0 if complexity_strength >= 1e-2 else 6.0 if complexity_strength > 0.0 else 10.0


class Cell(NamedTuple):
    """A place in the tables."""

    dataset: str
    method: str
    noise: float


@dataclass(frozen=True)
class Results:
    """Points of all runs that are complete.

    Attributes
    ----------
    points : cell -> run -> all points of the grid
    seconds : cell -> time of its tasks, whoever ran them
    """

    plan: Plan
    points: dict[Cell, dict[int, list[PathPoint]]]
    seconds: dict[Cell, float]

    def vcrf(self, cell: Cell) -> Summary:
        """The models chosen from the whole grid."""
        return Summary([choose(points) for points in self.points[cell].values()])

    def crf(self, cell: Cell) -> Summary:
        """The models chosen from the column without complexities."""
        return Summary([choose(l1_crf(points)) for points in self.points[cell].values()])

    def cells(self, noise: float) -> list[Cell]:
        """Those with a complete run, in the order of the plan."""
        return [
            cell
            for dataset in self.plan.datasets
            for method in self.plan.methods
            if self.points.get(cell := Cell(dataset.name, method.name, noise))
        ]

    @property
    def is_complete(self) -> bool:
        n_cells = len(self.plan.datasets) * len(self.plan.methods) * len(self.plan.noises)
        n_runs = sum(map(len, self.points.values()))
        return n_runs == n_cells * len(self.plan.runs)


def collect(plan: Plan, store: Store) -> Results:
    """What is stored of the plan. A run counts when all its paths are there."""
    points: dict[Cell, dict[int, list[PathPoint]]] = {}
    seconds: dict[Cell, float] = {}
    found: dict[tuple[Cell, int], list[list[PathPoint]]] = {}
    for task in plan.tasks:
        result = store.get(task)
        if result is not None:
            cell = Cell(task.dataset, task.method.name, task.noise)
            seconds[cell] = seconds.get(cell, 0.0) + result.seconds
            found.setdefault((cell, task.run), []).append(result.points)
    for (cell, run), paths in found.items():
        if len(paths) == len(plan.grid.complexity_strengths):
            points.setdefault(cell, {})[run] = _flat(paths)
    return Results(plan, points, seconds)


def _flat(paths: Sequence[Sequence[PathPoint]]) -> list[PathPoint]:
    return [point for path in paths for point in path]
