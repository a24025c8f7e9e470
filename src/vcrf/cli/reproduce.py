"""`vcrf reproduce`: the paper's experiments."""

from __future__ import annotations

import shlex
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vcrf.cli.errors import FAILED, WRONG_CALL, fail, in_options
from vcrf.cli.help import HelpAll
from vcrf.cli.interrupts import exit_code
from vcrf.cli.options import column, option
from vcrf.cli.output import print_table, say

if TYPE_CHECKING:
    from vcrf.experiments.datasets import DataFile, Dataset
    from vcrf.experiments.methods import Method
    from vcrf.experiments.plan import Plan, Results
    from vcrf.experiments.scheduling import Outcome, Runner
    from vcrf.experiments.store import Store

STORE = "results.sqlite"


class GridName(StrEnum):
    """Ready grids."""

    PAPER = "paper"
    QUICK = "quick"
    AXES = "axes"


class MeanName(StrEnum):
    """What complexities are averaged over."""

    FAMILIES = "families"
    CANDIDATES = "candidates"


def reproduce(
    data: Annotated[
        list[Path],
        typer.Option(metavar="PATH", help="Folder of *.conllu.gz files, or a file; may be given several times."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Directory for results and report.")],
    datasets: Annotated[
        str | None, typer.Option(metavar="A,B", help="Names of files without .conllu.gz. Default: all.")
    ] = None,
    sentences: Annotated[
        int | None, typer.Option(metavar="N", min=5, help="Draw N sentences of each larger data set. Default: all.")
    ] = None,
    tables: Annotated[
        str, typer.Option(metavar="A,B", help="What to find out: results, features, noise.")
    ] = "results,features,noise",
    grid: Annotated[
        GridName, typer.Option(help="Strengths: the paper's 8 x 8, 3 x 3 for a first look, or one axis at a time.")
    ] = GridName.PAPER,
    strengths: Annotated[
        str | None, typer.Option(metavar="X,Y", help="Strengths of both axes of the grid, in place of its own.")
    ] = None,
    by_mean: Annotated[
        bool, typer.Option("--by-mean", help="Divide complexity strengths by the mean complexity.")
    ] = False,
    mean: Annotated[
        MeanName, typer.Option(help="Of what the mean complexity is; the controls use it too.")
    ] = MeanName.FAMILIES,
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Processes. Default: one a core.")] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on the workers of a Dask scheduler, tcp://host:8786.")
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", min=1, max=5, help="The first N of the five runs.")] = 5,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Seeds of folds: --seed and the next ones.")] = 1,
    methods: Annotated[
        str, typer.Option(metavar="A,B", help="Methods to compare: paper, default, hamming, order3, ...")
    ] = "paper",
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="One more method: 'NAME=METHOD KEY=VALUE ...', as 'order4=paper tags=4'."),
    ] = None,
    words: Annotated[int, option("words", help="Longest word window of the paper's families.")] = 1,
    tags: Annotated[int, option("tags", help="Longest tag pattern of the paper's families.")] = 2,
    affix: Annotated[int, option("affix", help="Longest affixes of the paper's families.")] = 5,
    tag: Annotated[str | None, option("tag", help="Column of the labels. Default: the paper's, else upos.")] = None,
    noise: Annotated[float, option("noise")] = 0.2,
    noise_min_count: Annotated[
        int, typer.Option(metavar="N", min=1, help="Noise is for words that occur so often; 1: for all tokens.")
    ] = 5,
    seed: Annotated[int, option("random_state", min=0, help="Seed of the folds and of the noise.")] = 0,
    tol: Annotated[float, option("tol", help="Certified relative gap at which a point ends.")] = 1e-3,
    max_passes: Annotated[int, option("max_passes", min=0, help="Limit on passes over a point's data; 0: none.")] = 50,
    zero_passes: Annotated[
        int, typer.Option(metavar="N", min=0, help="The same where both strengths are 0; 0: like all other points.")
    ] = 20,
    cold: Annotated[
        bool, typer.Option("--cold", help="Begin every point at zero, not at the point before it.")
    ] = False,
    solver: Annotated[str, option("solver")] = "certified",
    rule: Annotated[str, option("rule")] = "fobos",
    eta: Annotated[float, option("eta")] = 0.01,
    eta_decay: Annotated[float, option("eta_decay")] = 0.0,
    kappa: Annotated[str, option("kappa")] = "1",
    help_all: HelpAll = False,  # noqa: ARG001 - its callback does the work
) -> None:
    """Compare VCRF with L1-CRF as the paper does, and write its tables with ours beside them.

    \b
    vcrf reproduce --data treebanks --datasets tamil,twitter -o results
    vcrf reproduce --data treebanks --datasets tamil --grid quick --tables results -o look
    vcrf reproduce --data my.conllu --tag xpos -o results

    Five folds, five runs, the grid of strengths on each. Results are kept in DIR/results.sqlite as they come: after
    Ctrl-C, SIGTERM, a crash or kill -9 the same command goes on, and when all is there it only writes the report. Exit
    code 1 says that a data set or a part of the work failed; the others are done.
    """
    from vcrf.experiments.plan import Plan
    from vcrf.experiments.protocol import GRIDS, N_FOLDS
    from vcrf.experiments.store import Store
    from vcrf.experiments.tasks import Settings

    began = time.perf_counter()
    files = _files(data, datasets, tag)
    trainer = _trainer(solver, rule, eta, eta_decay, kappa)
    compared = _methods(_names(methods) + (method or []), words, tags, affix, trainer)
    settings = Settings(
        seed, noise_min_count, _checked_tol(tol), max_passes or None, zero_passes or None, cold, by_mean, mean.value
    )  # fmt: skip
    chosen = GRIDS[grid.value] if strengths is None else GRIDS[grid.value].on(_strengths(strengths))
    every_run = tuple(N_FOLDS * s + run for s in range(seeds) for run in range(runs))
    wanted = _tables(tables)
    runner = _runner(jobs, dask)
    _make_directory(output)
    try:
        with Store(output / STORE) as store:
            loaded, unread = _read(files, sentences, seed)
            plan = Plan(loaded, compared, chosen, wanted, every_run, noise, settings)
            failed, is_interrupted = _carry_out(plan, store, runner)
            results = _write(plan, store, output, unread + [_told(outcome) for outcome in failed])
        _print(results, output, time.perf_counter() - began)
    except KeyboardInterrupt:  # before or after the tasks, or a second time
        raise _interrupted() from None
    for outcome in failed:
        say(_told(outcome))
    if is_interrupted:
        raise _interrupted()
    if failed or unread:
        say(f"Not everything was done: {len(unread)} data sets could not be read, {len(failed)} tasks failed.")
        raise typer.Exit(FAILED)


def _interrupted() -> typer.Exit:
    say("Interrupted: what is done is kept, and the same command goes on.")
    return typer.Exit(exit_code())


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _files(data: list[Path], datasets: str | None, tag: str | None) -> list[DataFile]:
    from vcrf.data.layout import conllu_layout
    from vcrf.experiments.datasets import find_data

    labels = column(tag)
    if labels is not None:
        conllu_layout(labels)  # refuses what is no column of any file
    return find_data(data, None if datasets is None else _names(datasets), labels)


def _trainer(solver: str, rule: str, eta: float, eta_decay: float, kappa: str) -> dict[str, Any]:
    """Parameters of all methods; none for the solver that all have."""
    if solver == "certified":
        return {}
    return {"solver": solver, "rule": rule, "eta": eta, "eta_decay": eta_decay, "kappa": kappa}


def _strengths(text: str) -> tuple[float, ...]:
    from vcrf.errors import InputError

    try:
        found = sorted({float(part) for part in _names(text)}, reverse=True)
    except ValueError:
        found = []
    if not found or not all(0.0 <= x < float("inf") for x in found):
        raise InputError(f"--strengths {text}: expected numbers that are not negative, with commas between them.")
    return tuple(found)


def _methods(texts: list[str], words: int, tags: int, affix: int, trainer: dict[str, Any]) -> list[Method]:
    from vcrf.errors import InputError
    from vcrf.experiments.methods import chosen_methods, known_methods

    try:
        return chosen_methods(texts, known_methods(words, tags, affix, **trainer))
    except InputError as error:  # its names are parameters of the method and not our options
        fail(str(error), WRONG_CALL)


def _make_directory(path: Path) -> None:
    from vcrf.errors import InputError

    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(f"--output {path}: there is a file of that name. Give a directory.") from error


def _tables(text: str) -> tuple[str, ...]:
    from vcrf.errors import InputError
    from vcrf.experiments.plan import TABLES

    names = _names(text)
    unknown = [name for name in names if name not in TABLES]
    if unknown or not names:
        raise InputError(f"--tables {text}: expected some of {','.join(TABLES)}.")
    return tuple(name for name in TABLES if name in names)


def _checked_tol(tol: float) -> float:
    from vcrf.arguments.parameters import check

    check("tol", tol)
    return tol


def _runner(jobs: int | None, dask: str | None) -> Runner:
    from vcrf.arguments.running import n_threads
    from vcrf.errors import InputError

    if dask is None:
        from vcrf.experiments.scheduling import Processes, run_here

        n_processes = jobs or n_threads(None)
        return run_here if n_processes == 1 else Processes(n_processes)
    if jobs is not None:
        raise InputError("--jobs is for processes of this machine, --dask for the workers of a cluster: give one.")
    from vcrf.experiments.cluster import DaskCluster

    return DaskCluster(dask)


def _told(outcome: Outcome) -> str:
    return f"Failed: {outcome.task.describe()}: {outcome.failure}"


def _read(files: list[DataFile], limit: int | None, seed: int) -> tuple[list[Dataset], list[str]]:
    """The data sets that can be read, and what was told of each that cannot."""
    from vcrf.errors import InputError
    from vcrf.experiments.datasets import read_dataset

    loaded, unread = [], []
    for file in files:
        try:
            loaded.append(read_dataset(file, limit, seed))
        except (InputError, OSError) as error:
            unread.append(f"Left out {file.name}: {in_options(str(error))}")
            say(unread[-1])
    return loaded, unread


def _carry_out(plan: Plan, store: Store, runner: Runner) -> tuple[list[Outcome], bool]:
    """What failed, and whether there was a Ctrl-C."""
    from vcrf.cli.task_progress import TaskProgress
    from vcrf.experiments.plan import carry_out

    n_missing = len(store.missing(plan.work))
    say(f"{len(plan.work):,} tasks, {len(plan.work) - n_missing:,} of them done before.")
    if n_missing == 0:
        return [], False
    with TaskProgress() as progress:
        failed: list[Outcome] = []
        try:
            carry_out(plan, store, runner, progress.update, failed)
        except KeyboardInterrupt:
            return failed, True
        return failed, False


def _write(plan: Plan, store: Store, output: Path, missing: list[str]) -> Results:
    from vcrf.experiments.plan import collect
    from vcrf.experiments.report import write_report

    results = collect(plan, store)
    for problem in write_report(results, output, [shlex.join(["vcrf", *sys.argv[1:]])], missing):
        say(problem)
    return results


def _print(results: Results, output: Path, seconds: float) -> None:
    """The errors on stdout, and where everything is."""
    from vcrf.experiments.document import Table
    from vcrf.experiments.tables import table_sections

    for section in table_sections(results):
        if section.title in ("State", "Features", "By strength", "Methods") or section.title.startswith("Errors"):
            for part in section.parts:
                if isinstance(part, Table):
                    rows = [[cell.replace("**", "") for cell in row] for row in part.rows]
                    print_table(section.title, part.headings, rows, left=part.n_left)
    say(f"Report: {output / 'report.html'} and report.md; tables: {output / 'tables.md'}. {seconds:.0f} s.")
