"""`vcrf train --dask`: learn a model on the workers of a Dask scheduler."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from vcrf.cli.interrupts import Interrupts, exit_code
from vcrf.cli.options import column, format_name
from vcrf.cli.output import print_json, say

if TYPE_CHECKING:
    from vcrf.cluster import OnDask

# Options that a cluster does not have, besides those that the estimator refuses.
_REFUSED = ("dev", "dev_split", "partial", "start", "tune", "watch")


def check_cluster(given: dict[str, Any]) -> None:
    """Refuse what is not there on a cluster, before anything is read."""
    from vcrf.cli.train import estimator
    from vcrf.errors import InputError
    from vcrf.estimators.cluster import check_estimator

    for name in _REFUSED:
        if given[name]:
            raise InputError(
                f"--{name.replace('_', '-')} is not there with --dask. Leave it out, or train on one machine."
            )
    if given["structure"] != "chain":
        raise InputError("--structure tree is not there with --dask. Train trees on one machine.")
    check_estimator(estimator(given))


def train_on_cluster(given: dict[str, Any], began: float) -> None:
    """Train on files that the workers read, and write the model."""
    from vcrf.cli.train import estimator
    from vcrf.cli.training import print_report, save_model, training_report, watched
    from vcrf.data.parts import parts_of_files
    from vcrf.estimators.cluster import fit_blocks

    output, tagger = given["output"], estimator(given)
    input_format: Any = format_name(given["input_format"])
    parts, layout = parts_of_files(given["data"], column(given["tag"]), given["split"], input_format, given["form"])
    checkpoint = checkpoint_of(output)
    with _cluster(given["dask"]) as runner, Interrupts() as interrupts:
        say(f"{len(parts)} blocks, {runner.n_workers} workers")
        if checkpoint.exists():
            say(f"{checkpoint}: training goes on from this checkpoint.")
        with watched(tagger, "training", interrupts, None) as progress:
            progress.more = lambda: f"  {runner.n_bytes / 1e6:,.0f} MB moved, {runner.n_workers} workers"
            fit_blocks(tagger, parts, runner, checkpoint)
        interrupts.see_model()
        report = training_report(tagger, None, began, {})
        save_model(tagger, layout, output)
    if given["json"]:
        seconds = time.perf_counter() - began
        print_json({**report, "model": str(output), "bytes_moved": runner.n_bytes, "seconds": seconds})
    else:
        print_report(report, output)
    if interrupts.is_interrupted:
        say("Interrupted: the model is the best so far.")
        raise typer.Exit(exit_code())


def checkpoint_of(output: Path) -> Path:
    """Where the rounds of a training are kept until its gap is closed."""
    return output.with_name(f"{output.name}.checkpoint")


@contextmanager
def _cluster(address: str) -> Iterator[OnDask]:
    from vcrf.cluster import OnDask, connect

    with connect(address) as client:
        yield OnDask(client)
