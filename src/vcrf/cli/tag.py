"""`vcrf tag`: label text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from vcrf.cli.help import HelpAll
from vcrf.cli.options import Form, ModelFile, Tag, column, option, share
from vcrf.cli.output import say

if TYPE_CHECKING:
    from vcrf.labelling.reporting import TextReport
    from vcrf.labelling.tagger import ModelTagger
    from vcrf.trust import Acceptance, SetThreshold


class InputFormat(StrEnum):
    """Formats that can be labelled."""

    AUTO = "auto"
    CONLLU = "conllu"
    COLUMNS = "columns"
    TEXT = "text"
    ATTRIBUTES = "attributes"


class OutputFormat(StrEnum):
    """Formats that can be written."""

    CONLLU = "conllu"
    TSV = "tsv"
    JSON = "json"


class _Promise(NamedTuple):
    """The options about trust."""

    max_error: str | None
    confidence: str
    unit: str
    average: str
    longest: int | None
    label_sets: str | None
    report: bool
    review: Path | None

    @property
    def has_notes(self) -> bool:
        """Whether something is written beside the labels."""
        return self.max_error is not None or self.label_sets is not None

    @property
    def is_asked(self) -> bool:
        """Whether anything of it is wanted."""
        return self.has_notes or self.report

    def check(self, mbr: str | None, nbest: int, constraints: str | None) -> None:
        """Refuse what does not go together."""
        from vcrf.errors import InputError

        if self.is_asked and (mbr is not None or nbest):
            raise InputError(
                "--max-error, --label-sets and --report are about the best labels: drop --mbr and --nbest."
            )
        if self.is_asked and constraints is not None:
            raise InputError(
                "--constraints change what was calibrated: train with them, calibrate, and leave them out here."
            )
        how = (self.confidence, self.average, self.longest)
        if how != ("95%", "sentences", None) and self.max_error is None:
            raise InputError(
                "--confidence, --average and --longest are about what --max-error accepts: add --max-error 1%."
            )
        if self.unit != "token" and not self.has_notes:
            raise InputError("--unit is about --max-error and --label-sets: add one of these.")
        if self.review is not None and self.max_error is None:
            raise InputError("--review writes what --max-error does not accept: add --max-error 1%.")

    def thresholds(self, tagger: ModelTagger) -> tuple[Acceptance | None, SetThreshold | None]:
        """What was asked for, from the calibration of the model."""
        from vcrf.trust import set_threshold

        calibration = tagger._calibration() if self.is_asked else None
        accepted = sets = None
        if self.max_error is not None:
            limit, sure = share("--max-error", self.max_error), share("--confidence", self.confidence)
            accepted = tagger.acceptance(limit, sure, self.unit, self.average, self.longest)
        if self.label_sets is not None and calibration is not None:
            sets = set_threshold(calibration, share("--label-sets", self.label_sets), self.unit)
        return accepted, sets

    def said(self, accepted: Acceptance | None, sets: SetThreshold | None, seen: TextReport | None) -> Iterator[str]:
        """What is promised, and what the text looks like."""
        yield from (promise.message for promise in (accepted, sets) if promise is not None)
        if seen is None:
            return
        # Of spans alone is something accepted or not; the tokens outside are in none.
        if accepted is not None and self.unit != "span" and seen.n_tokens:
            yield f"{1.0 - seen.n_checked / seen.n_tokens:.1%} of the {seen.n_tokens:,} tokens are accepted."
        if self.review is not None:
            yield f"{self.review}: {seen.n_reviewed:,} sentences to check."
        if self.report:
            yield from _report(seen, accepted is None)


# What a report tells of without being asked for one of them.
_LIMITS = (0.01, 0.02, 0.05)


def _report(seen: TextReport, has_shares: bool) -> Iterator[str]:
    found = seen.expected()
    for limit in _LIMITS if has_shares else ():
        promise, share = seen.share_accepted(limit)
        few = f"--max-error {100.0 * limit:g}%"
        yield f"{few}: {share:.1%} of the tokens would be accepted." if promise.is_any else f"{few}: {promise.message}"
    yield (
        f"Expected wrong labels: {found.number:,.0f} of {found.n_tokens:,}, 95 % interval {found.low:,.0f} to "
        f"{found.high:,.0f}, if the text is like the calibration sentences."
    )
    yield seen.drift().message
    for row in seen.least_sure():
        yield f"least sure: line {row['line']}, probability {row['probability']:.2g}: {row['text'][:100]}"


def tag(
    model: ModelFile,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Text to label, plain, .gz, .bz2 or .xz; `-` is standard input.")
    ] = Path("-"),
    marginals: Annotated[
        bool, typer.Option("--marginals", help="Write the probability of each label: Prob=0.987 in MISC.")
    ] = False,
    nbest: Annotated[
        int, typer.Option(metavar="K", min=0, help="Write the K best sequences of each sentence with probabilities.")
    ] = 0,
    mbr: Annotated[
        str | None,
        typer.Option(
            metavar="LOSS",
            help="Write the labels with the least expected loss, not the likeliest: hamming, edit, ngram, edit:band=2.",
            show_default=False,
        ),
    ] = None,
    output_format: Annotated[
        OutputFormat | None,
        typer.Option("--format", help="Output. Default: that of the input; conllu for text.", show_default=False),
    ] = None,
    input_format: Annotated[
        InputFormat,
        typer.Option(
            help="Input: CoNLL-U, columns, text with one sentence a line and blanks between tokens, or CRFsuite's "
            "attributes for a model that was trained on such."
        ),
    ] = InputFormat.AUTO,
    max_error: Annotated[str | None, option("max_error", show_default=False)] = None,
    confidence: Annotated[str, option("confidence")] = "95%",
    unit: Annotated[str, option("unit")] = "token",
    average: Annotated[str, option("average")] = "sentences",
    longest: Annotated[int | None, option("longest")] = None,
    label_sets: Annotated[str | None, option("miss", show_default=False)] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Say on stderr how many labels are wrong, and whether the text is alike.")
    ] = False,
    review: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the sentences that have something to check to this file too."),
    ] = None,
    constraints: Annotated[str | None, option("constraints")] = None,
    tag: Tag = None,
    form: Form = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file, whole or not at all.")
    ] = None,
    help_all: HelpAll = False,  # noqa: ARG001 - its callback does the work
) -> None:
    """Label text: CoNLL-U, column files, or plain text.

    \b
    vcrf tag my.vcrf new.txt > new.conllu
    vcrf tag my.vcrf new.conllu.gz --marginals -o labelled.conllu
    echo "the cat sleeps" | vcrf tag my.vcrf --format json

    Text is read and written in blocks, so files of any size can be labelled. CoNLL-U stays as it is, byte for byte,
    but for the column of the labels: that of the training data, or --tag. A column file gets the label where the
    training data had it, otherwise as a new last column.

    --max-error, --label-sets and --report need a model that `vcrf calibrate` has seen. What is to be checked has
    Check=Yes in MISC, `Yes` in a last column, or true in the JSON key check.
    """
    from vcrf.cli.checks import check_calibrated, check_output, read_loss
    from vcrf.cli.compiling import compile_notice, load_numba_without_scipy
    from vcrf.cli.trees import is_tree_model, tag_trees
    from vcrf.data.docbin import is_docbin
    from vcrf.data.raw import check_written_column, open_raw
    from vcrf.errors import InputError
    from vcrf.files import replacing_text
    from vcrf.labelling.attributes import label_attribute_file
    from vcrf.labelling.docbin import label_docbin
    from vcrf.labelling.labelling import Wanted, check_labels_text, label_file
    from vcrf.labelling.loading import load_tagger
    from vcrf.labelling.reporting import TextReport

    loss = None if mbr is None else read_loss("--mbr", mbr)
    if mbr is not None and nbest:
        raise InputError("--nbest writes the likeliest sequences and --mbr one sequence: ask for one of them.")
    promise = _Promise(max_error, confidence, unit, average, longest, label_sets, report, review)
    promise.check(mbr, nbest, constraints)
    if review is not None:
        others = {} if output is None else {output: "--output"}
        check_output("--review", review, {model: "the model", file: "the input", **others})
    if output is not None:  # it may be the input: that is read before it is replaced
        check_output("--output", output, {model: "the model"})
    if is_tree_model(model):
        if nbest or mbr is not None or output_format not in (None, OutputFormat.CONLLU) or promise.is_asked:
            raise InputError("A model of trees writes CoNLL-U: only --marginals and --output are for it.")
        _write(tag_trees(model, file, marginals), output)
        return
    tagger = load_tagger(model, constraints)
    if input_format is InputFormat.ATTRIBUTES:
        if nbest or mbr is not None or output_format is not None or promise.is_asked:
            raise InputError(
                "--nbest, --mbr, --format, --max-error, --label-sets and --report are not for --input-format "
                "attributes: leave them out."
            )
        _write(label_attribute_file(tagger, str(file), marginals), output)
        return
    check_labels_text(tagger.model_, str(model))
    if is_docbin(file):
        if nbest or mbr is not None or output_format is not None or marginals or promise.is_asked:
            raise InputError(
                "--nbest, --mbr, --format, --marginals, --max-error, --label-sets and --report are not for .spacy "
                "files: leave them out."
            )
        with compile_notice():
            n_docs = label_docbin(tagger, file, output, column(tag))
        say(f"{output}: {n_docs:,} documents")
        return
    facts = tagger.model_.facts
    layout = facts.layout if facts else None
    if str(file) == "-" and sys.stdin is not None and sys.stdin.isatty():
        say("Reading from the terminal: one sentence a line, Ctrl-D ends.")
    if promise.is_asked:
        check_calibrated(tagger, model)
    text = open_raw(file, cast(Any, input_format.value), column(tag), form, layout)
    has_notes = marginals or promise.has_notes
    check_written_column(text, has_notes, output_format.value if output_format else None)
    accepted, sets = promise.thresholds(tagger)
    wanted = Wanted(output_format.value if output_format else None, marginals, nbest, loss, accepted, sets)
    load_numba_without_scipy()
    with ExitStack() as stack:
        checked = stack.enter_context(replacing_text(review)) if review else None
        onlooker = TextReport(tagger, checked, report) if report or review else None
        _write(label_file(tagger, text, wanted, onlooker), output)
    for message in promise.said(accepted, sets, onlooker):
        say(message)


def _write(pieces: Iterator[str], output: Path | None) -> None:
    """Write text as it comes, to a file or to standard output."""
    from vcrf.cli.compiling import compile_notice
    from vcrf.files import replacing_text

    with compile_notice(), ExitStack() as stack:
        out = stack.enter_context(replacing_text(output)) if output else sys.stdout.buffer
        for piece in pieces:
            out.write(piece.encode())
            if output is None:  # who reads from a pipe waits for its answer
                out.flush()
