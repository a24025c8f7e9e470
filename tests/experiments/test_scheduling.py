"""Tasks give the same results wherever they run, and what goes wrong costs only its task."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from vcrf.experiments.datasets import Dataset
from vcrf.experiments.plan import Plan, Progress, carry_out, collect
from vcrf.experiments.scheduling import Outcome, Processes, run_here
from vcrf.experiments.store import Store
from vcrf.experiments.tasks import PathPoint


def points_by_key(outcomes: Iterable[Outcome]) -> dict[str, list[PathPoint]]:
    """What was found, without the time it took."""
    found = {}
    for outcome in outcomes:
        assert outcome.result is not None, outcome.failure
        found[outcome.task.key] = [point._replace(seconds=0.0) for point in outcome.result.points]
    return found


@pytest.fixture(scope="module")
def expected(plan: Plan, dataset: Dataset) -> dict[str, list[PathPoint]]:
    """The results of this process."""
    return points_by_key(run_here(plan.tasks, {dataset.checksum: dataset.blob}))


def test_processes_give_the_same_and_survive_a_death(
    plan: Plan, dataset: Dataset, expected: dict[str, list[PathPoint]]
) -> None:
    """All workers are killed after the first result; what they were at is done again."""
    outcomes = Processes(2)(plan.tasks, {dataset.checksum: dataset.blob})
    found = [next(outcomes)]
    for process in multiprocessing.active_children():
        process.kill()
    found += outcomes
    assert points_by_key(found) == expected
    assert not multiprocessing.active_children()


def test_leaving_early_ends_the_processes(plan: Plan, dataset: Dataset) -> None:
    """No worker outlives the iteration."""
    outcomes = Processes(1)(plan.tasks, {dataset.checksum: dataset.blob})
    next(outcomes)
    assert multiprocessing.active_children()
    outcomes.close()
    assert not multiprocessing.active_children()


def test_a_failing_task_is_told_and_the_others_are_done(plan: Plan, tmp_path: Path) -> None:
    """Run -7 does not exist; its outcome has a message, and the progress goes on."""
    progress: list[Progress] = []
    failed: list[Outcome] = []
    wrong = replace(plan, runs=(0, -7), tables=("results",))
    with Store(tmp_path / "r.sqlite") as store:
        carry_out(wrong, store, run_here, progress.append, failed)
        assert [outcome.task.run for outcome in failed] == [-7, -7]
        assert all("ValueError" in outcome.failure for outcome in failed)
        assert [p.n_done for p in progress] == [0, 1, 2, 2, 2]
        assert progress[0].seconds_left is None
        assert progress[-1].seconds_left == 0.0
        results = collect(wrong, store)
        assert not results.is_complete
        assert [list(runs) for runs in results.points.values()] == [[0]]


def test_what_is_stored_is_not_done_again(plan: Plan, tmp_path: Path) -> None:
    """The second call hands out nothing; a larger plan only what is new."""
    seen: list[int] = []

    def counting(tasks, blobs):  # type: ignore[no-untyped-def]
        seen.append(len(tasks))
        yield from run_here(tasks, blobs)

    small = replace(plan, runs=(0,), tables=("results",))
    with Store(tmp_path / "r.sqlite") as store:
        for wanted in (small, small, replace(small, runs=(0, 1))):
            carry_out(wanted, store, counting, lambda _: None, [])
        assert collect(replace(small, runs=(0, 1)), store).is_complete
    assert seen == [2, 0, 2]


def test_what_is_asked_for_twice_is_done_once(plan: Plan, dataset: Dataset, tmp_path: Path) -> None:
    """No noise is the same as noise 0; a copy of a file and another name of a method have the same tasks."""
    progress: list[Progress] = []
    doubled = replace(
        plan,
        datasets=[dataset, replace(dataset, name="copy")],
        methods=[*plan.methods, replace(plan.methods[0], name="again")],
        noise=0.0,
        runs=(0,),
    )
    with Store(tmp_path / "r.sqlite") as store:
        carry_out(doubled, store, run_here, progress.append, [])
        results = collect(doubled, store)
    assert [(p.n_done, p.n_all) for p in progress] == [(0, 2), (1, 2), (2, 2)]
    assert progress[-1].seconds_left == 0.0
    assert results.is_complete
    assert len(results.points) == 4
    assert len({tuple(map(str, runs[0])) for runs in results.points.values()}) == 1


@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_gives_the_same_and_survives_a_killed_worker(
    plan: Plan, dataset: Dataset, expected: dict[str, list[PathPoint]]
) -> None:
    """A real cluster of processes; one worker is killed after the first result."""
    distributed = pytest.importorskip("distributed")
    import os
    import signal

    from vcrf.experiments.cluster import DaskCluster

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs="CRITICAL"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        outcomes = DaskCluster(cluster.scheduler_address)(plan.tasks, {dataset.checksum: dataset.blob})
        found = [next(outcomes)]
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        found += outcomes
        assert points_by_key(found) == expected


def test_a_lost_scheduler_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says that the results are kept."""
    distributed = pytest.importorskip("distributed")
    from vcrf.errors import VcrfError
    from vcrf.experiments import cluster

    def lost(*_):  # type: ignore[no-untyped-def]
        raise distributed.comm.CommClosedError("reset by peer")
        yield

    monkeypatch.setattr(cluster.DaskCluster, "_connected", lambda _: nullcontext())
    monkeypatch.setattr(cluster, "_run", lost)
    with pytest.raises(VcrfError, match=r"tcp://here:1 is gone: reset by peer\. What is done is kept"):
        next(cluster.DaskCluster("tcp://here:1")([], {}))


def test_no_scheduler_is_told() -> None:
    """An address where nobody answers."""
    pytest.importorskip("distributed")
    from vcrf.errors import VcrfError
    from vcrf.experiments.cluster import DaskCluster

    with pytest.raises(VcrfError, match=r"no Dask scheduler at tcp://127\.0\.0\.1:9"):
        next(DaskCluster("tcp://127.0.0.1:9", seconds_to_connect=0.2)([], {}))
