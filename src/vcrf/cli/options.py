"""Arguments and options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class DataFormat(StrEnum):
    """Formats of labelled files; auto looks at the name and the first line."""

    AUTO = "auto"
    CONLLU = "conllu"
    COLUMNS = "columns"


ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file, as `vcrf train` writes it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, and nothing else there.")]
Split = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only the sentences with a comment `# split = NAME`."),
]
Tag = Annotated[
    str | None,
    typer.Option(
        metavar="upos|xpos|N",
        help="Column of the labels: a name, or a number from 0, negative from the end.",
    ),
]
Form = Annotated[
    int | None,
    typer.Option(metavar="N", help="Column of the tokens: by default 1 in CoNLL-U, 0 in a column file."),
]
Format = Annotated[
    DataFormat, typer.Option("--input-format", help="Format of the data; auto looks at the name and the first line.")
]


def column(text: str | None) -> str | int | None:
    """A column as the library wants it: a number if it is one."""
    if text is None:
        return None
    return int(text) if text.removeprefix("-").isdecimal() else text.lower()


def format_name(data_format: DataFormat) -> str | None:
    """The library's name for a format; None guesses."""
    return None if data_format is DataFormat.AUTO else data_format.value
