"""`vcrf trust`: promises for a grid of strictness, and how they are kept on labelled sentences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vcrf.cli.errors import about, saying_warnings
from vcrf.cli.options import AsJson, Form, Format, ModelFile, Split, Tag, column, format_name, option, share
from vcrf.cli.output import print_json, print_rich, print_table

if TYPE_CHECKING:
    from vcrf.trust.table import TrustRow


def trust(
    model: ModelFile,
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Labelled sentences, neither trained on nor calibrated with.")
    ],
    max_error: Annotated[
        list[str], typer.Option(metavar="SHARE", help="Error to promise: 1% or 0.01; may be repeated.")
    ] = ["0.5%", "1%", "2%", "5%"],  # noqa: B006 - typer copies it
    confidence: Annotated[
        list[str], typer.Option(metavar="SHARE", help="Confidence of the promise; may be repeated.")
    ] = ["90%", "95%", "99%"],  # noqa: B006
    unit: Annotated[str, option("unit")] = "token",
    average: Annotated[str, option("average")] = "sentences",
    longest: Annotated[int | None, option("longest")] = None,
    split: Split = None,
    tag: Tag = None,
    form: Form = None,
    input_format: Format = "auto",
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Error by share accepted, and reliability (.png, .svg, .pdf)."),
    ] = None,
    allow_seen: Annotated[bool, option("allow_seen")] = False,
    json: AsJson = False,
) -> None:
    """Show what a calibrated model promises, and how it keeps that on labelled sentences.

    \b
    vcrf trust my.vcrf test.conllu
    vcrf trust my.vcrf treebank.conllu.gz --split test --max-error 1% --unit sentence --plot trust.png

    Each row is a promise: of what is at least as sure as the threshold at most so much is wrong, with the confidence.
    The error on DATA is a mean over sentences, and so is the promise, or both are pooled (--average); its interval is
    for 95 %.
    """
    from vcrf.cli.checks import check_calibrated, check_not_of_trees, check_output, check_picture_file
    from vcrf.cli.compiling import compile_notice
    from vcrf.cli.labelled import in_sources, read_labelled
    from vcrf.labelling.loading import load_tagger

    if plot is not None:
        check_picture_file(plot)
        check_output("--plot", plot, {model: "the model", data: "the data"})
    limits = [share("--max-error", text) for text in max_error]
    sure = [share("--confidence", text) for text in confidence]
    check_not_of_trees("trust", model)
    tagger = load_tagger(model)
    check_calibrated(tagger, model)
    corpus, labels = read_labelled(tagger, model, data, split, column(tag), form, format_name(input_format))
    with compile_notice(), about(data), in_sources(corpus), saying_warnings():
        table = tagger.trust(corpus.tokens, labels, limits, sure, unit, average, longest, allow_seen=allow_seen)
    if plot is not None:
        table.plot(plot)
    if json:
        print_json({
            "model": str(model), "data": str(data), "unit": unit, "average": average, "sentences": len(corpus),
            "calibration_error": table.reliability.error, "promises": [_as_json(row) for row in table.rows],
        })  # fmt: skip
        return
    rows = [_cells(row) for row in table.rows]
    columns = [
        "max error",
        "confidence",
        "at least",
        f"{unit}s accepted",
        "sentences whole",
        "error here",
        "95 %",
    ]
    print_table(f"{model} on {data}", columns, rows, left=0)
    for row in table.rows:
        if not row.acceptance.is_any:
            print_rich(row.acceptance.message)


def _as_json(row: TrustRow) -> dict[str, Any]:
    return {
        **vars(row.acceptance), "accepted_share": row.share, "sentence_share": row.sentence_share,
        "error_here": row.error, "error_interval": [row.low, row.high], "is_kept": row.is_kept,
    }  # fmt: skip


def _cells(row: TrustRow) -> tuple[str, ...]:
    asked = row.acceptance
    first = (f"{asked.max_error:.2%}", f"{asked.confidence:.1%}")
    if not asked.is_any:
        return (*first, "", "none", "", "", "")
    return (
        *first, f"{asked.threshold:.4f}", f"{row.share:.1%}", f"{row.sentence_share:.1%}", f"{row.error:.2%}",
        f"{row.low:.2%} to {row.high:.2%}",
    )  # fmt: skip
