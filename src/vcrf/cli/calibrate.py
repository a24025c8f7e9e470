"""`vcrf calibrate`: look at held-out sentences, so that a model can make promises."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vcrf.cli.errors import about, saying_warnings
from vcrf.cli.options import AsJson, Form, Format, ModelFile, Split, Tag, column, format_name, option
from vcrf.cli.output import print_json, print_rich, print_table

if TYPE_CHECKING:
    from vcrf.labelling.tagger import Tagger
    from vcrf.trust import Acceptance, Calibration
    from vcrf.types import UInts64

# Fixed, and the same for everybody: a level that is found by looking at the sentences would not have its confidence.
_PROMISES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


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
    promises = [tagger.acceptance(limit) for limit in _PROMISES]
    strictest = _strictest(promises)
    return {
        "model": out, "sentences": found.n_sentences, "tokens": found.n_tokens,
        "token_error": float(found.is_wrong.mean()), "calibration_temperature": found.calibration_temperature,
        "log_likelihood": found.log_likelihood[0], "log_likelihood_calibrated": found.log_likelihood[1],
        "calibration_error": found.before.error, "calibration_error_calibrated": found.after.error,
        "impossible_sentences": found.n_impossible, "data_checksum": found.data_checksum,
        "seen": _seen(tagger.model_.sentences, found.sentences),
        "promises": [{**vars(promise), "message": promise.message} for promise in promises],
        "strictest": None if strictest is None else {
            "max_error": strictest.max_error, "share": strictest.share, "confidence": strictest.confidence,
            "confidence_if_chosen_afterwards": _together(promises),
        },
    }  # fmt: skip


def _strictest(promises: list[Acceptance]) -> Acceptance | None:
    """The first of the promises, strict to loose, that accepts anything."""
    return next((promise for promise in promises if promise.is_any), None)


def _together(promises: list[Acceptance]) -> float:
    """The confidence that all of some promises hold, and so that of one chosen after a look: their doubts add up."""
    return 1.0 - math.fsum(1.0 - promise.confidence for promise in promises)


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
    _print_promises(out, [tagger.acceptance(limit) for limit in _PROMISES])


def _print_promises(out: str, promises: list[Acceptance]) -> None:
    """A row for each level, and what the rows mean; the strictest that can be kept is named where some cannot."""
    from vcrf.trust.selective import percent

    rows = [(percent(promise.max_error), *_cells(promise)) for promise in promises]
    columns = ["at most wrong", "labels accepted", "those at least so sure (as trained)", "sentences missing"]
    print_table("What can be promised", columns, rows, left=0)
    sure, together = percent(promises[0].confidence), percent(_together(promises))
    print_rich(
        f"A row is a promise: of the labels accepted at most so many are wrong, as a mean over sentences, with {sure} "
        "confidence, in text like these sentences. That holds for a row chosen before this table is seen; for one "
        f"chosen because of what it accepts the confidence is at least {together}."
    )
    strictest = _strictest(promises)
    if strictest is None:
        print_rich("None of these can be kept with so few sentences: label more of them, or train a better tagger.")
    elif strictest is not promises[0]:
        print_rich(
            f"The strictest row that can be kept with these sentences: {percent(strictest.max_error)}, which accepts "
            f"{percent(strictest.share)} of the labels: vcrf tag {out} FILE "
            f"--max-error {100.0 * strictest.max_error:g}%"
        )


def _cells(promise: Acceptance) -> tuple[str, str, str]:
    from vcrf.trust.selective import percent

    if promise.is_any:
        return percent(promise.share), f"{promise.threshold:.5g}" if promise.threshold > 0.0 else "all", ""
    missing = promise.n_missing
    return "none", "", "no number is enough" if missing is None else f"about {missing:,}"
