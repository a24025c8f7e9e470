"""`vcrf calibrate`: look at held-out sentences, so that a model can make promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vcrf.cli.errors import about, saying_warnings
from vcrf.cli.options import AsJson, Form, Format, ModelFile, Split, Tag, column, format_name, option
from vcrf.cli.output import print_json, print_rich, print_table

if TYPE_CHECKING:
    from vcrf.labelling.tagger import Tagger
    from vcrf.trust import Calibration
    from vcrf.types import UInts64

_PROMISES = (0.005, 0.01, 0.02, 0.05)


def calibrate(
    model: ModelFile,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Labelled sentences that were not trained on.")],
    split: Split = None,
    tag: Tag = None,
    form: Form = None,
    input_format: Format = "auto",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="MODEL", help="Write the model here. Default: in place of MODEL."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Reliability diagram, before and after (.png, .svg, .pdf).")
    ] = None,
    allow_seen: Annotated[bool, option("allow_seen")] = False,
    json: AsJson = False,
) -> None:
    """Calibrate a model with sentences that it was not trained on.

    \b
    vcrf calibrate my.vcrf dev.conllu
    vcrf calibrate my.vcrf treebank.conllu.gz --split dev -o calibrated.vcrf --plot reliability.png

    The model keeps what `vcrf tag --max-error`, --label-sets and --report need, and shows calibrated probabilities from
    then on. Labels stay as they are. The sentences must be drawn like those that will be labelled.
    """
    from vcrf.cli.checks import check_not_of_trees, check_output, check_picture_file
    from vcrf.cli.compiling import compile_notice
    from vcrf.cli.labelled import in_sources, read_labelled
    from vcrf.estimators.file import load, save
    from vcrf.model.container import check_name

    out = output or model
    check_name(out)
    check_output("--output", out, {data: "the data"})
    if plot is not None:
        check_picture_file(plot)
        check_output("--plot", plot, {model: "the model", data: "the data", out: "the model"})
    check_not_of_trees("calibrate", model)
    tagger = load(model)
    corpus, labels = read_labelled(tagger, model, data, split, column(tag), form, format_name(input_format))
    with compile_notice(), about(data), in_sources(corpus), saying_warnings():
        tagger.calibrate(corpus.tokens, labels, allow_seen=allow_seen)
    save(tagger, out)
    if plot is not None:
        from vcrf.trust.plots import plot_reliability

        found = tagger.model_.calibration
        plot_reliability({"as trained": found.before, "calibrated": found.after}, plot)
    if json:
        print_json(_as_json(str(out), tagger))
    else:
        _print(str(out), tagger)


def _as_json(out: str, tagger: Tagger) -> dict[str, Any]:
    found: Calibration = tagger._calibration()
    return {
        "model": out, "sentences": found.n_sentences, "tokens": found.n_tokens,
        "token_error": float(found.is_wrong.mean()), "calibration_temperature": found.calibration_temperature,
        "log_likelihood": found.log_likelihood[0], "log_likelihood_calibrated": found.log_likelihood[1],
        "calibration_error": found.before.error, "calibration_error_calibrated": found.after.error,
        "impossible_sentences": found.n_impossible, "data_checksum": found.data_checksum,
        "seen": _seen(tagger.model_.sentences, found.sentences),
        "promises": [
            {**vars(tagger.acceptance(limit)), "message": tagger.acceptance(limit).message} for limit in _PROMISES
        ],
    }  # fmt: skip


def _seen(trained: UInts64, held_out: UInts64) -> dict[str, Any] | None:
    """How many of the sentences were trained on, as `calibrate` counts them; None if the model does not know."""
    from vcrf.model.fingerprints import overlap

    if not len(trained):
        return None
    seen = overlap(trained, held_out)
    return {"sentences": seen.n_seen, "of": seen.n_sentences, "share": seen.share, "by_chance": seen.chance}


def _print(out: str, tagger: Tagger) -> None:
    found: Calibration = tagger._calibration()
    rows = [
        ("log-likelihood a sentence", *(f"{value:.3f}" for value in found.log_likelihood)),
        ("expected calibration error", f"{found.before.error:.2%}", f"{found.after.error:.2%}"),
    ]
    print_table(f"{out}: probabilities, on held-out folds", ["", "as trained", "calibrated"], rows)
    print_rich(
        f"Calibration temperature {found.calibration_temperature:.3f} from {found.n_sentences:,} "
        f"{'sentence' if found.n_sentences == 1 else 'sentences'}, "
        f"{found.n_tokens:,} tokens, of which {found.is_wrong.mean():.2%} are labelled wrong."
    )
    if found.calibration_temperature == 1.0 and found.n_impossible < found.n_sentences:
        print_rich(
            "These sentences show no best temperature, as where no label is wrong: probabilities stay as trained."
        )
    seen = _seen(tagger.model_.sentences, found.sentences)
    if seen is not None and seen["sentences"]:
        print_rich(f"{seen['sentences']:,} of the {seen['of']:,} sentences that are compared were seen in training.")
    if found.n_impossible:
        print_rich(
            f"{found.n_impossible:,} sentences have labels that the model cannot give: they count as errors, and say "
            "nothing about the temperature."
        )
    for limit in _PROMISES:
        print_rich(tagger.acceptance(limit).message)
