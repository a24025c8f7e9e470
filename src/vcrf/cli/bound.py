"""`vcrf bound`: what is guaranteed of a model's risk, term by term."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vcrf.cli.errors import in_options
from vcrf.cli.options import AsJson, Form, Format, ModelFile, Split, Tag, column, format_name, option
from vcrf.cli.output import print_json, print_rich, print_table, say

if TYPE_CHECKING:
    from vcrf.complexity.report import RiskReport
    from vcrf.data import Corpus
    from vcrf.families.text import Text
    from vcrf.losses import Loss
    from vcrf.model import Model
    from vcrf.types import UInts32


def bound(
    model: ModelFile,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The labelled file the model was trained on.")],
    split: Split = None,
    tag: Tag = None,
    form: Form = None,
    input_format: Format = "auto",
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Task loss: hamming, edit, ngram, ... By default the model's own, or hamming."
        ),
    ] = None,
    delta: Annotated[float, option("delta")] = 0.05,
    rho: Annotated[float | None, option("rho")] = None,
    paper_constants: Annotated[
        bool, typer.Option("--paper-constants", help="Constants as the paper prints them; some are wrong.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the bounds against the margin (.png, .svg, .pdf).")
    ] = None,
    json: AsJson = False,
) -> None:
    """State bounds on the risk of a model, with every term, and which family spends the budget.

    \b
    vcrf bound my.vcrf my.conllu
    vcrf bound my.vcrf treebank.conllu.gz --split train --plot bound.png

    DATA is the sample: for a statement about a trained model the data it was trained on. On treebanks these bounds are
    vacuous (not below the largest possible loss), and the command says so; their use is to rank families, penalties and
    models, for which the complexity terms at margin 1 are shown too.
    """
    if plot is not None:
        from vcrf.cli.checks import check_output, check_picture_file

        check_picture_file(plot)
        check_output("--plot", plot, {model: "the model", data: "the data"})
    from vcrf.cli.compiling import compile_notice
    from vcrf.cli.trees import is_tree_model
    from vcrf.errors import BudgetError

    how = {"delta": delta, "rho": rho, "paper_constants": paper_constants}
    with warnings.catch_warnings(record=True) as caught, compile_notice():
        try:
            if is_tree_model(model):
                report, task_loss = _of_trees(model, data, split, loss, how)
            else:
                read = _read(model, data, split, column(tag), form, format_name(input_format), loss)
                report, task_loss = _of_sentences(*read, how), read[1]
        except BudgetError as error:
            raise BudgetError(f"{data}: {error}") from error
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        say(in_options(message))
    if plot is not None:
        from vcrf.complexity.plots import plot_bounds

        plot_bounds(report, plot)
    if json:
        print_json(_as_json(str(model), str(data), type(task_loss).__name__, delta, report))
        return
    for note in report.notes:
        say(note)
    print_bounds(report)
    _print_families(report)
    print_rich(meaning(report))


def _of_sentences(model: Model, loss: Loss, text: Text, y: UInts32, how: dict[str, Any]) -> RiskReport:
    from vcrf.complexity.report import risk_report

    return risk_report(model, text, y, loss, **how)


def _of_trees(
    model: Path, data: Path, split: str | None, loss: str | None, how: dict[str, Any]
) -> tuple[RiskReport, Loss]:
    from vcrf.cli.checks import read_loss
    from vcrf.cli.trees import bound_of_trees
    from vcrf.errors import InputError
    from vcrf.model.file import read_facts

    if how.pop("paper_constants"):
        raise InputError("--paper-constants is not for models of trees: leave it out.")
    given = loss if loss is not None else read_facts(model)["parameters"].get("loss")
    task_loss = read_loss("--loss", given if isinstance(given, str) and given not in ("none", "auto") else "hamming")
    return bound_of_trees(model, data, split, task_loss, **how), task_loss


def _read(
    model: Path, data: Path, split: str | None, tag: str | int | None, form: int | None, data_format: str | None,
    loss: str | None,
) -> tuple[Model, Loss, Text, UInts32]:  # fmt: skip
    from vcrf.cli.checks import read_loss
    from vcrf.cli.labelled import read_data
    from vcrf.families.text import intern_sentences
    from vcrf.labelling.labelling import check_labels_text
    from vcrf.model.file import load_model, read_facts

    trained = load_model(model)
    check_labels_text(trained, str(model))
    parameters = read_facts(model)["parameters"]
    if parameters.get("constraints") is not None:
        say(
            "The model labels under constraints. The empirical risk here is that without them; the bounds hold with "
            "them too if the true labels satisfy them."
        )
    given = loss if loss is not None else parameters.get("loss")
    if given is not None and not isinstance(given, str):
        say("The model was trained with a loss of the user's own; these bounds are about hamming. Pass --loss NAME.")
    name = given if isinstance(given, str) and given not in ("none", "auto") else "hamming"
    task_loss = read_loss("--loss", name)
    layout = trained.facts.layout if trained.facts else None
    corpus, _ = read_data(data, tag, split, data_format, form, layout)
    y = _label_numbers(corpus, trained, data)
    return trained, task_loss.for_labels(trained.labels), intern_sentences(corpus.tokens), y


def _label_numbers(corpus: Corpus, model: Model, data: Path) -> UInts32:
    import numpy as np

    from vcrf.errors import InputError

    number = {str(label): i for i, label in enumerate(model.labels)}
    unknown = sorted({str(label) for labels in corpus.labels for label in labels} - set(number))
    if unknown:
        raise InputError(
            f"{data} has the label {unknown[0]!r}, which the model does not have ({', '.join(number)}): a bound is "
            "about the labels it was trained with. Pass the data it was trained on, or their column with --tag."
        )
    return np.array([number[str(label)] for labels in corpus.labels for label in labels], np.uint32)


def meaning(report: RiskReport) -> str:
    """What the bounds say, in plain words."""
    best, largest = report.best, report.frontier.loss_bound
    measured = f"The mean loss on these {report.n_sentences:,} sentences is {report.frontier.risk:.4f}."
    if best.is_vacuous:
        said = (
            f"All bounds are vacuous: the smallest, {best.total:.3g} ({best.name}), is not below the largest loss "
            f"there is, {largest:g}, so nothing is guaranteed about new sentences. That is usual on treebanks: "
            "sentences are few for so many features. Compare models, penalties and families by the complexity at "
            "margin 1; no number here is an estimate of the error."
        )
    else:
        said = (
            f"With probability {1.0 - best.delta:g} over the draw of the sample, the mean loss on new sentences is at "
            f"most {best.total:.4f} ({best.name}). Each row holds with that probability by itself."
        )
        if best.condition:
            said += f" This one holds if {best.condition}."
    first = report.families[0]
    spends = (
        f"Family {first.name!r} spends most of the budget: {first.share:.0%} of the families' weight times complexity."
    )
    return "\n".join([measured, said, spends])


def _as_json(model: str, data: str, loss: str, delta: float, report: RiskReport) -> dict[str, Any]:
    return {
        "model": model,
        "data": data,
        "loss": loss,
        "loss_bound": report.frontier.loss_bound,
        "delta": delta,
        "sentences": report.n_sentences,
        "tokens": report.n_tokens,
        "is_training_data": report.is_training_data,
        "empirical_risk": report.frontier.risk,
        "is_vacuous": report.best.is_vacuous,
        "bounds": [
            {
                "name": found.name, "margin": margin, "rho": found.rho or None, "empirical": found.empirical,
                "complexity": found.complexity, "confidence": found.confidence, "total": found.total,
                "is_vacuous": found.is_vacuous, "complexity_at_margin_1": unit,
                "assumptions": found.assumptions, "corrections": found.corrections,
                "condition": found.condition,
            }
            for found, margin, unit in zip(report.bounds, report.margins, report.at_margin_1, strict=True)
        ],
        "families": [
            {
                "name": family.name, "tags": family.tags, "l1_mass": family.l1_mass,
                "complexity": family.complexity.value,
                "complexity_interval": [family.complexity.low, family.complexity.high],
                "share": family.share, "weighted_share": family.weighted_share,
            }
            for family in report.families
        ],
        "notes": report.notes,
        "meaning": meaning(report),
    }  # fmt: skip


def print_bounds(report: RiskReport, n_rows: int | None = None) -> None:
    """Print the bounds, or the smallest of them, with their terms."""
    rows = [
        (found.name, margin, found.rho or None, found.empirical, found.complexity, found.confidence, found.total,
         "vacuous" if found.is_vacuous else "", unit)
        for found, margin, unit in zip(report.bounds, report.margins, report.at_margin_1, strict=True)
    ]  # fmt: skip
    columns = ["bound", "margin loss", "rho", "empirical", "complexity", "confidence", "total", "", "at margin 1"]
    print_table("bounds on the risk", columns, rows[:n_rows], left=2)


def _print_families(report: RiskReport) -> None:
    rows = [
        (f.name, f.tags, f.l1_mass, f"{f.complexity.value:.4g} ± {f.complexity.half_width:.1g}", f"{f.share:.1%}",
         f"{f.weighted_share:.1%}")
        for f in report.families
    ]  # fmt: skip
    columns = ["family", "tags", "L1 mass", "complexity", "share of the budget", "share by features"]
    print_table("families", columns, rows)
