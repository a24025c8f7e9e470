"""Arguments and options that several commands have."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from vcrf.arguments.kinds import Choice, Integer, Number
from vcrf.arguments.parameters import PARAMETERS

# More choices than this do not fit beside the option's name: they go into the text.
_WIDEST = 60


def option(name: str, **changes: Any) -> Any:
    """The option of a parameter, as the table has it; `changes` are keywords of `typer.Option`."""
    parameter = PARAMETERS[name]
    kind = parameter.kind
    how: dict[str, Any] = {"metavar": parameter.metavar, "help": _help(name)}
    if isinstance(kind, Choice):
        how |= {"metavar": f"[{'|'.join(kind.names)}]", "parser": _one_of(kind.names)}
        if len(how["metavar"]) > _WIDEST:
            how |= {"metavar": "NAME", "help": f"{_help(name)} One of {', '.join(kind.names)}."}
    elif isinstance(kind, Integer) or (isinstance(kind, Number) and not kind.is_open):
        # Of limits that are excluded the library speaks itself.
        how |= {"min": _limit(kind.least), "max": _limit(kind.most)}
    return typer.Option(parameter.flag, **(how | changes))


def _one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in names:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(map(repr, names))}.")
        return text

    return parse


def _limit(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _help(name: str) -> str:
    parameter = PARAMETERS[name]
    values = "; paper: ".join(parameter.in_recipes)
    return f"{parameter.help} Default: {values}." if values else parameter.help


ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file, as `vcrf train` writes it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, and nothing else there.")]
Split = Annotated[str | None, option("split")]
Tag = Annotated[str | None, option("tag")]
Form = Annotated[int | None, option("form")]
Format = Annotated[str, option("format")]


def share(option_name: str, text: str) -> float:
    """A share as it is written: 1% or 0.01."""
    from vcrf.errors import InputError

    digits = text.strip()
    try:
        value = float(digits.removesuffix("%")) / (100.0 if digits.endswith("%") else 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 < value < 1.0:
        raise InputError(f"{option_name} {text}: expected a share between 0 and 1, written as 1% or 0.01.")
    return value


def column(text: str | None) -> str | int | None:
    """A column as the library wants it: a number if it is one."""
    if text is None:
        return None
    return int(text) if text.removeprefix("-").isdecimal() else text.lower()


def format_name(data_format: str) -> str | None:
    """The library's name for a format; None guesses."""
    return None if data_format == "auto" else data_format
