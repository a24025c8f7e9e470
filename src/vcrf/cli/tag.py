"""`vcrf tag`: label text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from vcrf.cli.options import Form, ModelFile, Tag, column
from vcrf.cli.output import say


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
    tag: Tag = None,
    form: Form = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file, whole or not at all.")
    ] = None,
) -> None:
    """Label text: CoNLL-U, column files, or plain text.

    \b
    vcrf tag my.vcrf new.txt > new.conllu
    vcrf tag my.vcrf new.conllu.gz --marginals -o labelled.conllu
    echo "the cat sleeps" | vcrf tag my.vcrf --format json

    Text is read and written in blocks, so files of any size can be labelled. CoNLL-U stays as it is, byte for byte,
    but for the column of the labels: that of the training data, or --tag. A column file gets the label where the
    training data had it, otherwise as a new last column.

    --nbest K writes each sentence K times, each after the comments `# nbest = 1` and `# probability = 0.912`; with
    --format json the list is in the field nbest of the one object a sentence.
    """
    from vcrf.cli.checks import check_output, read_loss
    from vcrf.cli.compiling import compile_notice, load_numba_without_scipy
    from vcrf.data.docbin import is_docbin
    from vcrf.data.raw import check_written_column, open_raw
    from vcrf.errors import InputError
    from vcrf.labelling.attributes import label_attribute_file
    from vcrf.labelling.docbin import label_docbin
    from vcrf.labelling.labelling import Wanted, check_labels_text, label_file
    from vcrf.labelling.loading import load_tagger

    loss = None if mbr is None else read_loss("--mbr", mbr)
    if mbr is not None and nbest:
        raise InputError("--nbest writes the likeliest sequences and --mbr one sequence: ask for one of them.")
    if output is not None:  # it may be the input: that is read before it is replaced
        check_output("--output", output, {model: "the model"})
    tagger = load_tagger(model)
    if input_format is InputFormat.ATTRIBUTES:
        if nbest or mbr is not None or output_format is not None:
            raise InputError("--nbest, --mbr and --format are not for --input-format attributes: leave them out.")
        _write(label_attribute_file(tagger, str(file), marginals), output)
        return
    check_labels_text(tagger.model_, str(model))
    if is_docbin(file):
        if nbest or mbr is not None or output_format is not None or marginals:
            raise InputError("--nbest, --mbr, --format and --marginals are not for .spacy files: leave them out.")
        with compile_notice():
            n_docs = label_docbin(tagger, file, output, column(tag))
        say(f"{output}: {n_docs:,} documents")
        return
    facts = tagger.model_.facts
    layout = facts.layout if facts else None
    if str(file) == "-" and sys.stdin is not None and sys.stdin.isatty():
        say("Reading from the terminal: one sentence a line, Ctrl-D ends.")
    text = open_raw(file, cast(Any, input_format.value), column(tag), form, layout)
    check_written_column(text, marginals, output_format.value if output_format else None)
    wanted = Wanted(output_format.value if output_format else None, marginals, nbest, loss)
    load_numba_without_scipy()
    _write(label_file(tagger, text, wanted), output)


def _write(pieces: Iterator[str], output: Path | None) -> None:
    """Write text as it comes, to a file or to standard output."""
    from vcrf.cli.compiling import compile_notice
    from vcrf.files import replacing

    with compile_notice(), ExitStack() as stack:
        out = stack.enter_context(replacing(output)) if output else sys.stdout.buffer
        for piece in pieces:
            out.write(piece.encode())
            out.flush()
