"""What commands write: JSON and tables on stdout, messages on stderr."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import typer

from vcrf.page.plain import to_json

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object. JSON has no infinity: numbers that are not finite are null."""
    typer.echo(to_json(value))


def say(message: str) -> None:
    """Write a message to stderr; one that cannot be written (the terminal is gone) is no reason to end the work."""
    with suppress(OSError):
        typer.echo(message, err=True)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], left: int = 1) -> None:
    """Print a table on stdout; the first `left` columns are text, the others numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title or None, box=SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    table.show_header = any(columns)
    for i, name in enumerate(columns):
        table.add_column(name, justify="left" if i < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*[_cell(value) for value in row])
    print_rich(table)


def print_rich(*items: str | Table | Text, err: bool = False) -> None:
    """Print with rich on stdout, or stderr; in a pipe plain, and wide enough for any table."""
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    if stream is None:  # closed by the shell: `2>&-`
        return
    is_terminal = stream.isatty()
    console = Console(file=stream, highlight=False, markup=False, width=None if is_terminal else 160)
    with suppress(OSError) if err else nullcontext():
        for item in items:
            console.print(item, markup=False)


def _cell(value: object) -> Any:
    from rich.text import Text

    if isinstance(value, bool) or value is None:
        return Text("" if value is None else str(value))
    if isinstance(value, int):
        return Text(f"{value:,}")
    if isinstance(value, float):
        return Text(f"{value:.4g}")
    return Text(str(value))
