"""The unit of work: one path of one run, all base strengths from strong to weak at one complexity strength.

A task is a pure function of its description and the data, so that it may run anywhere and more than once. Tasks of
one run share what was read of the data: columns, and positions of the attributes in the other two parts.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import vcrf
from vcrf.errors import InputError
from vcrf.experiments.counting import count_used
from vcrf.experiments.datasets import Dataset, unpack
from vcrf.experiments.methods import Method
from vcrf.experiments.protocol import N_FOLDS, Grid, noisy_labels, parts_of_run

if TYPE_CHECKING:
    from vcrf.estimators import VCRF
    from vcrf.estimators.heldout import DevelopmentSet
    from vcrf.estimators.parameters import TrainingData
    from vcrf.penalties.separable import BoundPenalty
    from vcrf.solvers.result import SolverResult

# Raised when a change in this folder gives the same description other results: stored ones are then not used any more.
FORMAT = 2
# They read, show and schedule; no result depends on them but by FORMAT.
_WITHOUT_EFFECT = ("cli", "experiments", "plots.py")


@cache
def code_version() -> str:
    """The version of vcrf and a checksum of its source: a checkout changes without its version, and results with it."""
    return f"{vcrf.__version__}+{source_checksum(Path(vcrf.__file__).parent)[:12]}"


def source_checksum(root: Path) -> str:
    """SHA-256 of the Python files that decide results, with their names."""
    total = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if name.parts[0] not in _WITHOUT_EFFECT:
            total.update(name.as_posix().encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@dataclass(frozen=True)
class Settings:
    """What all tasks of a call have in common.

    Attributes
    ----------
    seed : of the folds and of the noise
    noise_min_count : occurrences of a word whose labels may be flipped
    tol : certified relative gap at which a point ends
    max_passes : limit on passes over the data for a point; None for none
    max_passes_at_zero : the same where both strengths are 0: there is in general no minimum to come closer to; None
        for no difference
    is_cold : each point begins at zero, not at the point before it on the path
    is_by_mean : complexity strengths are divided by the mean complexity
    mean : of what the mean complexity is: "families", or "candidates", of which a large family has more
    """

    seed: int = 0
    noise_min_count: int = 5
    tol: float = 1e-3
    max_passes: int | None = 50
    max_passes_at_zero: int | None = 20
    is_cold: bool = False
    is_by_mean: bool = False
    mean: str = "families"

    def mean_complexity(self, data: TrainingData) -> float:
        """The mean complexity, by which strengths of different kinds are made equal."""
        from vcrf.model.build import count_candidates

        counts = count_candidates(data.problem) if self.mean == "candidates" else None
        return float(np.average(data.complexities, weights=counts))

    def limit(self, complexity_strength: float, base_strength: float) -> int | None:
        """Passes over the data for a point."""
        if complexity_strength > 0.0 or base_strength > 0.0 or self.max_passes_at_zero is None:
            return self.max_passes
        return min(self.max_passes or self.max_passes_at_zero, self.max_passes_at_zero)


@dataclass(frozen=True)
class PathTask:
    """One path of one run."""

    dataset: str
    checksum: str
    tag: str | int
    method: Method
    complexity_strength: float
    base_strengths: tuple[float, ...]
    run: int
    noise: float
    settings: Settings
    version: str

    @property
    def key(self) -> str:
        """SHA-256 of everything that decides the result."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Everything that decides the result: contents and not names."""
        return {
            "format": FORMAT, "version": self.version, "data": self.checksum, "tag": self.tag,
            "method": self.method.to_json(), "complexity_strength": self.complexity_strength,
            "base_strengths": list(self.base_strengths), "run": self.run, "noise": self.noise,
            **asdict(self.settings),
        }  # fmt: skip

    def describe(self) -> str:
        """Name the task in a line."""
        noise = f" noise {self.noise:g}" if self.noise else ""
        return (
            f"{self.dataset} {self.method.name} run {self.run}{noise} complexity strength {self.complexity_strength:g}"
        )

    @property
    def group(self) -> tuple[object, ...]:
        """Tasks of one group train on the same columns."""
        return self.checksum, self.method, self.run, self.noise, self.settings


class PathPoint(NamedTuple):
    """A trained model: its strengths, mistakes, size and certificate.

    Attributes
    ----------
    validation_wrong, test_wrong : wrong tokens of `validation_tokens` and `test_tokens`
    validation_sentences_wrong, test_sentences_wrong : sentences with a wrong token
    n_active : weights; attributes that occur at the same positions are one
    n_features : attributes x tag patterns with a weight
    n_attributes, n_columns_used : attributes with some weight; the same with twins counted once
    n_candidates : attributes x tag patterns before any reduction
    gap : certified distance from the optimum; None where there is no certificate
    families : features with a weight in each family
    """

    complexity_strength: float
    base_strength: float
    validation_wrong: int
    validation_tokens: int
    validation_sentences_wrong: int
    validation_sentences: int
    test_wrong: int
    test_tokens: int
    test_sentences_wrong: int
    test_sentences: int
    n_active: int
    n_features: int
    n_attributes: int
    n_columns_used: int
    n_candidates: int
    n_columns: int
    objective: float
    gap: float | None
    status: str
    n_passes: int
    seconds: float
    families: dict[str, int]


class PathResult(NamedTuple):
    """What a task gives."""

    points: list[PathPoint]
    seconds: float


def make_tasks(
    datasets: Iterable[Dataset],
    methods: Sequence[Method],
    grid: Grid,
    noises: Sequence[float],
    runs: Sequence[int],
    settings: Settings,
) -> list[PathTask]:
    """All tasks. Those of one group follow each other, the longest (the weakest strengths) first."""
    return [
        PathTask(
            dataset.name, dataset.checksum, dataset.tag,
            method if complexity > 0.0 else replace(method, control=""), complexity, grid.bases(complexity), run, noise,
            settings, code_version(),
        )
        for dataset in datasets
        for method in methods
        for noise in noises
        for run in runs
        for complexity in sorted(grid.complexity_strengths)
    ]  # fmt: skip


def run_task(task: PathTask, blob: bytes) -> PathResult:
    """Train along the path and count the mistakes of each point.

    Parameters
    ----------
    task : Task
    blob : the data, as `Dataset.blob`
    """
    if task.version != code_version():
        raise InputError(
            f"This worker has vcrf {code_version()}, the task is for {task.version}. Install the same version."
        )
    from vcrf.solvers.result import Status

    began = time.perf_counter()
    data, validation, test = _prepared(task, blob)
    points = []
    start: SolverResult | None = None
    mean = task.settings.mean_complexity(data)
    complexity = task.complexity_strength / (mean if task.settings.is_by_mean else 1.0)
    for base in sorted(task.base_strengths, reverse=True):
        limit = task.settings.limit(complexity, base)
        tagger = task.method.build(*task.method.strengths(complexity, base, mean), task.settings.tol, limit)
        if tagger._needs_penalty and task.complexity_strength == base == 0.0:
            continue
        start = tagger._run(data, None if task.settings.is_cold else start, None)
        if start.status is Status.INTERRUPTED:  # the solver answers Ctrl-C with its best weights: no result
            raise KeyboardInterrupt
        point = _point(tagger, data, start, validation, test)
        points.append(point._replace(complexity_strength=task.complexity_strength, base_strength=base))
    return PathResult(points, time.perf_counter() - began)


_Prepared = tuple["TrainingData", "DevelopmentSet", "DevelopmentSet"]


class _LastRead(threading.local):
    """What was read for the last task of this thread."""

    group: tuple[object, ...] = ()
    prepared: _Prepared | None = None


_cache = _LastRead()


def _prepared(task: PathTask, blob: bytes) -> _Prepared:
    if _cache.prepared is None or _cache.group != task.group:
        _cache.prepared = None  # before the new one is read: there is room for one
        _cache.prepared = _prepare(task, blob)
        _cache.group = task.group
    return _cache.prepared


def _prepare(task: PathTask, blob: bytes) -> _Prepared:
    tokens, labels = unpack(blob)
    parts = parts_of_run(len(tokens), task.settings.seed, task.run)
    seen = labels
    if task.noise > 0.0:
        seed = task.settings.seed + task.run // N_FOLDS
        seen = noisy_labels(tokens, labels, task.noise, task.settings.noise_min_count, seed)
    tagger = task.method.build(0.0, 1.0, task.settings.tol, task.settings.max_passes)
    data = tagger._read([tokens[i] for i in parts.train], [seen[i] for i in parts.train], None)
    validation, test = (
        tagger._development(data, [tokens[i] for i in part], [labels[i] for i in part])
        for part in (parts.validation, parts.test)
    )
    return data, validation, test


def _point(
    tagger: VCRF, data: TrainingData, result: SolverResult, validation: DevelopmentSet, test: DevelopmentSet
) -> PathPoint:
    problem = data.problem
    penalty = tagger._penalty(data).bind(problem)
    used = count_used(problem, penalty, result.features)
    return PathPoint(
        float(tagger.complexity_strength or 0.0),
        float(tagger.base_strength or 0.0),
        *_mistakes(validation, penalty, result),
        *_mistakes(test, penalty, result),
        n_active=result.n_active,
        n_features=int(used.families.sum()),
        n_attributes=used.n_attributes,
        n_columns_used=used.n_columns,
        n_candidates=int(problem.n_candidates),
        n_columns=len(problem.columns),
        objective=float(result.objective),
        gap=float(result.gap) if np.isfinite(result.gap) else None,
        status=result.status.name,
        n_passes=int(result.n_passes),
        seconds=float(result.seconds),
        families={family.name: int(n) for family, n in zip(problem.families, used.families, strict=True) if n},
    )


def _mistakes(held_out: DevelopmentSet, penalty: BoundPenalty, result: SolverResult) -> tuple[int, int, int, int]:
    """Wrong tokens, tokens, sentences with a wrong token, sentences."""
    wrong = held_out.mistakes(penalty, result.features, result.weights)
    sentence = np.searchsorted(held_out.sent_ptr, held_out.counted[wrong], side="right")
    return int(wrong.sum()), len(wrong), len(np.unique(sentence)), len(held_out.sent_ptr) - 1
