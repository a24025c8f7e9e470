"""`vcrf tag`: label text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple, cast

import typer

from vcrf.cli.help import HelpAll
from vcrf.cli.options import Form, ModelFile, Tag, column, option, share
from vcrf.cli.output import say

if TYPE_CHECKING:
    from vcrf.data.pieces import Shard
    from vcrf.labelling.pieces import Labelled
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
    jobs: Annotated[int, option("jobs")] = 1,
    shard: Annotated[str | None, option("shard")] = None,
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

    Text is read and written in blocks, so files of any size can be labelled; --jobs and --shard (docs/scaling.md) share
    the work. CoNLL-U stays as it is but for the column of the labels: that of the training data, or --tag. A column
    file gets the label where the training data had it, otherwise as a new last column.

    --max-error, --label-sets and --report need a model that `vcrf calibrate` has seen. What is to be checked has
    Check=Yes in MISC, `Yes` in a last column, or true in the JSON key check.
    """
    from vcrf.data.pieces import read_shard

    promise = _Promise(max_error, confidence, unit, average, longest, label_sets, report, review)
    asked = _Asked(
        model, file, None if output_format is None else output_format.value, input_format.value, marginals, nbest, mbr,
        constraints, column(tag), form, jobs, None if shard is None else read_shard(shard), output, promise,
    )  # fmt: skip
    asked.check()
    asked.way()(asked)


class _Asked(NamedTuple):
    """What the command was asked for."""

    model: Path
    file: Path
    output_format: str | None
    input_format: str
    marginals: bool
    nbest: int
    mbr: str | None
    constraints: str | None
    tag: str | int | None
    form: int | None
    jobs: int
    shard: Shard | None
    output: Path | None
    promise: _Promise

    def check(self) -> None:
        """Refuse what does not go together, and outputs that are inputs."""
        from vcrf.cli.checks import check_output
        from vcrf.errors import InputError

        if self.mbr is not None and self.nbest:
            raise InputError("--nbest writes the likeliest sequences and --mbr one sequence: ask for one of them.")
        self.promise.check(self.mbr, self.nbest, self.constraints)
        review, output = self.promise.review, self.output
        if review is not None:
            others = {} if output is None else {output: "--output"}
            check_output("--review", review, {self.model: "the model", self.file: "the input", **others})
        if output is not None:  # it may be the input: that is read before it is replaced
            check_output("--output", output, {self.model: "the model"})

    def way(self) -> Callable[[_Asked], None]:
        """How such an input is labelled."""
        from vcrf.cli.trees import is_tree_model
        from vcrf.data.docbin import is_docbin

        if is_tree_model(self.model):
            return _tag_trees
        if self.input_format == InputFormat.ATTRIBUTES:
            return _tag_attributes
        return _tag_docs if is_docbin(self.file) else _tag_words

    def refuse(self, what: str, *names: str) -> None:
        """Refuse options where they mean nothing."""
        from vcrf.errors import InputError

        given = {
            "--nbest": self.nbest > 0, "--mbr": self.mbr is not None, "--marginals": self.marginals,
            "--format": self.output_format is not None, "--max-error": self.promise.max_error is not None,
            "--label-sets": self.promise.label_sets is not None, "--report": self.promise.report,
            "--jobs": self.jobs > 1,
        }  # fmt: skip
        if any(given[name] for name in names):
            raise InputError(f"{', '.join(names[:-1])} and {names[-1]} are not for {what}: leave them out.")


# What only words in sequences can be asked for.
_OF_WORDS = ("--nbest", "--mbr", "--format", "--max-error", "--label-sets", "--report")


def _tag_trees(asked: _Asked) -> None:
    """CoNLL-U with heads."""
    from vcrf.cli.trees import tag_trees

    conllu = asked.output_format in (None, OutputFormat.CONLLU)
    asked._replace(output_format=None if conllu else asked.output_format).refuse(
        "a model of trees, which writes CoNLL-U", *_OF_WORDS, "--jobs"
    )
    _write(tag_trees(asked.model, asked.file, asked.marginals, asked.shard), asked)


def _tag_attributes(asked: _Asked) -> None:
    """CRFsuite's data."""
    from vcrf.data.attributes import attribute_pieces
    from vcrf.data.stream import stream_name
    from vcrf.labelling.loading import load_tagger
    from vcrf.labelling.pieces import AttributeLabeller
    from vcrf.processes import map_in_order

    asked.refuse("--input-format attributes", *_OF_WORDS)
    label = AttributeLabeller(
        load_tagger(asked.model, asked.constraints), stream_name(asked.file), asked.marginals
    )  # fmt: skip
    found = map_in_order(label, attribute_pieces(asked.file, asked.shard), asked.jobs)
    _write(_reported(found, None, None), asked)


def _tag_docs(asked: _Asked) -> None:
    """Documents of spaCy."""
    from vcrf.cli.compiling import compile_notice
    from vcrf.labelling.docbin import label_docbin
    from vcrf.labelling.labelling import check_labels_text
    from vcrf.labelling.loading import load_tagger

    tagger = load_tagger(asked.model, asked.constraints)
    check_labels_text(tagger.model_, str(asked.model))
    asked.refuse(".spacy files", *_OF_WORDS[:3], "--marginals", *_OF_WORDS[3:], "--jobs")
    with compile_notice():
        n_docs = label_docbin(tagger, asked.file, asked.output, asked.tag, asked.shard)
    say(f"{asked.output}: {n_docs:,} documents")


def _tag_words(asked: _Asked) -> None:
    """Text, CoNLL-U and columns."""
    from vcrf.cli.checks import check_calibrated, read_loss
    from vcrf.cli.compiling import load_numba_without_scipy
    from vcrf.data.raw import check_written_column, open_pieces
    from vcrf.files import replacing_text
    from vcrf.labelling.labelling import OutputChoice, check_labels_text
    from vcrf.labelling.loading import load_tagger
    from vcrf.labelling.pieces import WordLabeller
    from vcrf.labelling.reporting import TextReport
    from vcrf.processes import map_in_order

    promise, output_format = asked.promise, cast(Any, asked.output_format)
    loss = None if asked.mbr is None else read_loss("--mbr", asked.mbr)
    tagger = load_tagger(asked.model, asked.constraints)
    check_labels_text(tagger.model_, str(asked.model))
    facts = tagger.model_.facts
    if str(asked.file) == "-" and sys.stdin is not None and sys.stdin.isatty():
        say("Reading from the terminal: one sentence a line, Ctrl-D ends.")
    if promise.is_asked:
        check_calibrated(tagger, asked.model)
    layout = facts.layout if facts else None
    text, pieces = open_pieces(asked.file, cast(Any, asked.input_format), asked.tag, asked.form, layout, asked.shard)
    check_written_column(text, asked.marginals or promise.has_notes, output_format)
    accepted, sets = promise.thresholds(tagger)
    wanted = OutputChoice(output_format, asked.marginals, asked.nbest, loss, accepted, sets)
    load_numba_without_scipy()
    seen = TextReport(tagger, promise.report) if promise.report or promise.review else None
    found = map_in_order(WordLabeller(tagger, text, wanted, seen), pieces, asked.jobs)
    with ExitStack() as stack:
        review = stack.enter_context(replacing_text(promise.review)) if promise.review else None
        _write(_reported(found, seen, review), asked)
    for message in promise.said(accepted, sets, seen):
        say(message)


def _reported(found: Iterator[Labelled], seen: TextReport | None, review: BinaryIO | None) -> Iterator[bytes]:
    """The text of pieces, while what they report is joined and what is to be checked is written to a file."""
    with closing(cast("Generator[Labelled, None, None]", found)):
        for piece in found:
            if seen is not None and piece.report is not None:
                seen.join(piece.report)
                if review is not None:
                    review.write("".join(piece.report.reviewed).encode())
            yield piece.text


def _write(pieces: Iterator[bytes], asked: _Asked) -> None:
    """Write text as it comes, to a file or to standard output; that there is none is said."""
    from vcrf.cli.compiling import compile_notice
    from vcrf.data.stream import stream_name
    from vcrf.files import replacing_text

    output, is_any = asked.output, False
    with compile_notice(), ExitStack() as stack:
        stack.enter_context(
            closing(cast("Generator[bytes, None, None]", pieces))
        )  # what works for it ends here, also on errors
        out = stack.enter_context(replacing_text(output)) if output else sys.stdout.buffer
        for piece in pieces:
            out.write(piece)
            is_any = is_any or bool(piece.strip())
            if output is None:  # who reads from a pipe waits for its answer
                out.flush()
    if not is_any and asked.shard is None:  # a part of a short file may well have nothing
        say(f"{stream_name(asked.file)}: 0 sentences, so that nothing is labelled. Check that this is the right file.")
