"""What `vcrf train` shows while it trains and tells at the end, of chains, trees and clusters."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from vcrf.cli.errors import saying_warnings
from vcrf.cli.interrupts import Interrupts

if TYPE_CHECKING:
    from vcrf import VCRF, Corpus, GraphCRF
    from vcrf.cli.progress import TrainingProgress
    from vcrf.data.layout import Layout
    from vcrf.solvers.result import IterationRecord
    from vcrf.web.watching import LiveTraining


@contextmanager
def page(given: dict[str, Any]) -> Iterator[LiveTraining | None]:
    """The page of --watch, if it is asked for."""
    if not given["watch"]:
        yield None
        return
    from vcrf.cli.watching import watched_page

    with watched_page(given["watch_port"], given["output"]) as live:
        yield live


@contextmanager
def watched(
    tagger: VCRF | GraphCRF, title: str, interrupts: Interrupts, live: LiveTraining | None
) -> Iterator[TrainingProgress]:
    """Show the tagger's progress on stderr, and on the page; what the library warns of is said on stderr too."""
    from vcrf.cli.compiling import compile_notice
    from vcrf.cli.progress import TrainingProgress

    with saying_warnings(), compile_notice(), TrainingProgress(tagger._value("tol"), title) as progress:

        def callback(record: IterationRecord) -> bool:
            progress.update(record)
            if live is not None:
                live.see(record)
            return interrupts.see_record()

        tagger.set_params(callback=callback)
        if live is not None:
            live.title, live.tol = title, tagger._value("tol")
        yield progress


def training_report(
    tagger: VCRF | GraphCRF, development: Corpus | None, began: float, stages: dict[str, float]
) -> dict[str, Any]:
    """What --json prints; seconds_reading is all but tuning and solving: files, attributes, columns."""
    solving = tagger.result_.seconds
    tuning = stages["training"] - stages["tuning"] if stages else 0.0
    report = {
        "objective": tagger.objective_, "gap": tagger.gap_, "relative_gap": tagger.result_.relative_gap,
        "kkt_violation": tagger.kkt_violation_, "status": tagger.status_.name, "n_candidates": tagger.n_candidates_,
        "n_columns": tagger.n_columns_, "n_active": tagger.n_active_, "n_passes": tagger.result_.n_passes,
        "seconds_reading": time.perf_counter() - began - tuning - solving, "seconds_solving": solving,
    }  # fmt: skip
    if stages:
        report["seconds_tuning"] = tuning
    if development is not None:
        report |= dev_report(development.labels, tagger.predict(development.tokens))
    return report


def dev_report(true: list[list[str]], predicted: list[list[Any]]) -> dict[str, Any]:
    """The error on development data, as it is reported."""
    from vcrf.metrics import token_error

    error = token_error(true, predicted)
    return {"dev_token_error": error.rate, "dev_token_error_interval": [error.low, error.high]}


def save_model(tagger: VCRF, layout: Layout, output: Path) -> None:
    """Write the model, which remembers where the training data had its labels."""
    from dataclasses import replace

    model = tagger.model_
    if model.facts is not None:
        tagger.model_ = replace(model, facts=model.facts.with_layout(layout))
    tagger.save(output)


def print_report(report: dict[str, Any], output: Path) -> None:
    """What is told of a training on stdout."""
    if "dev_token_error" in report:
        low, high = report["dev_token_error_interval"]
        typer.echo(f"development token error {report['dev_token_error']:.2%} ({low:.2%} to {high:.2%})")
    tuning = f"{report['seconds_tuning']:.1f} s tuning, " if "seconds_tuning" in report else ""
    typer.echo(
        f"{output}: {report['n_active']:,} features of {report['n_candidates']:,} candidates in "
        f"{report['n_columns']:,} columns; objective {report['objective']:.6g}, relative gap "
        f"{report['relative_gap']:.1e}; {report['seconds_reading']:.1f} s reading, {tuning}"
        f"{report['seconds_solving']:.1f} s solving"
    )
