"""A task trains, counts and describes itself as the public interface would."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import vcrf
from vcrf import VCRF
from vcrf.errors import InputError
from vcrf.experiments.datasets import Dataset, unpack
from vcrf.experiments.methods import Method
from vcrf.experiments.plan import Plan
from vcrf.experiments.protocol import noisy_labels, parts_of_run
from vcrf.experiments.tasks import PathTask, Settings, code_version, run_task, source_checksum
from vcrf.metrics import sentence_error, token_error


def task_of(plan: Plan, noise: float) -> PathTask:
    """A path of run 1 with a positive complexity strength."""
    return next(t for t in plan.tasks if t.run == 1 and t.complexity_strength > 0.0 and t.noise == noise)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_task_is_a_path_of_the_estimator(noise: float, plan: Plan, dataset: Dataset) -> None:
    """Errors on validation and test, features and certificate are those of `VCRF.path` and `predict`."""
    task = task_of(plan, noise)
    tokens, labels = unpack(dataset.blob)
    parts = parts_of_run(len(tokens), task.settings.seed, task.run)
    seen = noisy_labels(tokens, labels, noise, task.settings.noise_min_count, task.settings.seed)
    estimator = VCRF(
        recipe="paper", families="paper", words=1, tags=2, affix=1, norm="l1", tol=1e-3, max_passes=20, n_jobs=1
    )
    grid = [(task.complexity_strength, base) for base in task.base_strengths]
    X, y = [tokens[i] for i in parts.train], [seen[i] for i in parts.train]
    points = run_task(task, dataset.blob).points
    assert len(points) == len(grid)
    for point, tagger in zip(points, estimator.path(X, y, grid), strict=True):
        assert (point.complexity_strength, point.base_strength) == (tagger.complexity_strength, tagger.base_strength)
        for name in ("validation", "test"):
            chosen = getattr(parts, name)
            true, predicted = [labels[i] for i in chosen], tagger.predict([tokens[i] for i in chosen])
            token, sentence = token_error(true, predicted), sentence_error(true, predicted)
            assert getattr(point, f"{name}_wrong") == token.n_wrong > 0
            assert getattr(point, f"{name}_tokens") == token.n
            assert getattr(point, f"{name}_sentences_wrong") == sentence.n_wrong
            assert getattr(point, f"{name}_sentences") == sentence.n
        assert (point.n_active, point.n_candidates) == (tagger.n_active_, tagger.n_candidates_)
        assert point.n_features == len(tagger.model_.weights)
        assert point.families == {facts.name: facts.n_active for facts in tagger.families_ if facts.n_active}
        assert (point.objective, point.gap, point.status) == (tagger.objective_, tagger.gap_, tagger.status_.name)
    assert points[0].n_active < points[1].n_active  # from strong to weak


def test_the_point_without_strengths_is_capped_and_uncertified(plan: Plan, dataset: Dataset) -> None:
    """(0, 0) has no certificate, and says so."""
    settings = Settings(max_passes=None, max_passes_at_zero=7)
    task = replace(task_of(plan, 0.0), complexity_strength=0.0, base_strengths=(0.1, 0.0), settings=settings)
    first, last = run_task(task, dataset.blob).points
    assert first.status == "CONVERGED"
    assert first.n_passes > 10
    assert (last.gap, last.status) == (None, "UNCERTIFIED")
    assert 7 <= last.n_passes <= 9
    assert Settings(max_passes=5).limit(0.0, 0.0) == 5


def test_the_point_without_strengths_can_be_like_the_rest() -> None:
    """With no limit of its own."""
    assert Settings(max_passes=50, max_passes_at_zero=None).limit(0.0, 0.0) == 50


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_cold_point_does_not_know_the_one_before(plan: Plan, dataset: Dataset) -> None:
    """The second point of a cold path is that of a path of its own."""
    task = replace(task_of(plan, 0.0), settings=Settings(max_passes=6, is_cold=True))
    path = run_task(task, dataset.blob).points
    alone = run_task(replace(task, base_strengths=task.base_strengths[1:]), dataset.blob).points
    assert path[1]._replace(seconds=0.0) == alone[0]._replace(seconds=0.0)


@pytest.mark.parametrize(("control", "is_by_mean"), [("uniform", False), ("ties", True)])
def test_controls_have_the_mean_strength(control: str, is_by_mean: bool, plan: Plan, dataset: Dataset) -> None:
    """The point of the grid stays in the table; what is trained has the mean strength for all families."""
    task = task_of(plan, 0.0)
    settings = Settings(is_by_mean=is_by_mean, tol=1e-4, max_passes=None)
    method = replace(task.method, control=control)
    task = replace(task, method=method, complexity_strength=0.03, base_strengths=(0.02,), settings=settings)
    (found,) = run_task(task, dataset.blob).points
    tokens, labels = unpack(dataset.blob)
    train = parts_of_run(len(tokens), 0, task.run).train
    X, y = [tokens[i] for i in train], [labels[i] for i in train]
    probe = VCRF(recipe="paper", families="paper", words=1, tags=2, affix=1, norm="l1", tol=1e-4, n_jobs=1)
    mean = float(np.mean([facts.complexity for facts in probe.fit(X, y).families_]))
    level = 0.02 + (0.03 if is_by_mean else 0.03 * mean)
    probe.set_params(base_strength=level, complexity_strength=1e-6 * level if control == "ties" else 0.0).fit(X, y)
    assert (found.complexity_strength, found.base_strength) == (0.03, 0.02)
    assert found.objective == pytest.approx(probe.objective_, rel=1e-9)
    assert found.n_features == len(probe.model_.weights)
    if control == "ties":
        assert found.n_features < found.n_active * 1.5


def test_the_mean_over_candidates_weighs_large_families(dataset: Dataset) -> None:
    """By hand, from the facts of the model."""
    tokens, labels = unpack(dataset.blob)
    tagger = VCRF(recipe="paper", families="paper", words=1, tags=2, affix=1, tol=1.0)
    facts = tagger.fit(tokens, labels).families_
    total = sum(f.n_candidates for f in facts)
    data = tagger._read(tokens, labels, None)
    assert Settings(mean="candidates").mean_complexity(data) == pytest.approx(
        sum(f.n_candidates * f.complexity for f in facts) / total
    )
    assert Settings().mean_complexity(data) == pytest.approx(sum(f.complexity for f in facts) / len(facts))


def test_what_is_used_is_counted_as_the_model_has_it(plan: Plan, dataset: Dataset) -> None:
    """Features, attributes and columns, against those of the model; stepwise solvers too."""
    for solver in ("certified", "sgd"):
        settings = Settings(max_passes=2)
        method = Method.of("paper", recipe="paper", families="paper", words=1, tags=2, affix=1, solver=solver)
        task = replace(task_of(plan, 0.0), method=method, settings=settings, base_strengths=(0.001,))
        (point,) = run_task(task, dataset.blob).points
        tokens, labels = unpack(dataset.blob)
        train = parts_of_run(len(tokens), 0, task.run).train
        tagger = method.build(task.complexity_strength, 0.001, 1e-3, 2)
        with pytest.warns(UserWarning, match="passes"):
            tagger.fit([tokens[i] for i in train], [labels[i] for i in train])
        model = tagger.model_
        assert point.n_features == len(model.weights)
        assert point.n_attributes == len(model.keys)
        assert point.n_columns_used <= point.n_attributes
        assert point.families == {facts.name: facts.n_active for facts in model.families if facts.n_active}


@pytest.mark.parametrize("estimator", ["M3N", "StructSVM"])
def test_methods_that_need_a_penalty_have_no_point_without(estimator: str, plan: Plan, dataset: Dataset) -> None:
    """The rest of the path is theirs."""
    method = Method.of("max", estimator, recipe="paper", families="paper", words=0, tags=2, affix=1, norm="l1")
    task = replace(task_of(plan, 0.0), method=method, complexity_strength=0.0, base_strengths=(0.1, 0.01, 0.0))
    points = run_task(task, dataset.blob).points
    assert [point.base_strength for point in points] == [0.1, 0.01]


def test_results_do_not_depend_on_the_tasks_before(plan: Plan, dataset: Dataset) -> None:
    """Columns are shared, weights are not."""
    alone = run_task(plan.tasks[0], dataset.blob).points
    for task in (plan.tasks[1], plan.tasks[-1]):
        run_task(task, dataset.blob)
    again = run_task(plan.tasks[0], dataset.blob).points
    assert [point._replace(seconds=0.0) for point in alone] == [point._replace(seconds=0.0) for point in again]


def test_without_a_complexity_strength_controls_are_the_method_itself(plan: Plan) -> None:
    """Its path is trained once for all of them."""
    methods = [*plan.methods, *(replace(plan.methods[0], name=c, control=c) for c in ("uniform", "ties"))]
    controlled = replace(plan, methods=methods)
    assert len(controlled.tasks) == 3 * len(plan.tasks)
    assert len(controlled.work) == 2 * len(plan.tasks)
    assert methods[1].strengths(0.0, 0.5, 2.0) == (0.0, 0.5)


def test_tasks_cover_the_plan_and_keep_groups_together(plan: Plan) -> None:
    """Dataset x noise x run x path, each once; what shares columns is adjacent."""
    assert len(plan.tasks) == len({task.key for task in plan.tasks}) == 2 * 2 * 2
    groups = [task.group for task in plan.tasks]
    assert sum(a != b for a, b in itertools.pairwise(groups)) == len(set(groups)) - 1


def test_the_key_tells_everything_that_matters(plan: Plan) -> None:
    """Every part of the description changes it; names do not."""
    task = plan.tasks[0]
    changes: list[dict[str, object]] = [
        {"checksum": "0"}, {"tag": "xpos"}, {"complexity_strength": 0.3}, {"base_strengths": (0.1,)}, {"run": 3},
        {"noise": 0.1}, {"version": "9"}, {"method": Method.of("paper", words=2)},
        {"method": Method.of("paper", "M3N", **dict(task.method.parameters))},
        {"settings": Settings(seed=1)}, {"settings": Settings(tol=0.1)}, {"settings": Settings(max_passes=None)},
        {"settings": Settings(is_cold=True)}, {"settings": Settings(is_by_mean=True)},
        {"settings": Settings(mean="candidates")},
        {"method": replace(task.method, control="ties")}, {"settings": Settings(noise_min_count=7)},
        {"settings": Settings(max_passes_at_zero=7)},
    ]  # fmt: skip
    keys = {replace(task, **change).key for change in changes}  # type: ignore[arg-type]
    assert len(keys | {task.key}) == len(changes) + 1
    renamed = replace(task, dataset="other", method=replace(task.method, name="other"))
    assert renamed.key == task.key


def test_the_version_is_that_of_the_source(tmp_path: Path) -> None:
    """A change of what trains counts, whatever the number of the version; one of what shows does not."""
    seen = [source_checksum(tmp_path)]
    for name, text in [("solver.py", "a = 1"), ("solver.py", "a = 2"), ("deep/solver.py", "a = 2")]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
        seen.append(source_checksum(tmp_path))
    assert len(set(seen)) == len(seen)
    for name in ("plots.py", "cli/app.py", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("b = 1", encoding="utf-8")
        assert source_checksum(tmp_path) == seen[-1]
    assert code_version().startswith(f"{vcrf.__version__}+")


def test_a_worker_of_another_version_refuses(plan: Plan, dataset: Dataset) -> None:
    """Results of two versions are not mixed."""
    with pytest.raises(InputError, match="the task is for 9"):
        run_task(replace(plan.tasks[0], version="9"), dataset.blob)
