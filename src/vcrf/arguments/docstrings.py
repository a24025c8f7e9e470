"""Docstrings of estimators: the section of the parameters, from the table."""

from __future__ import annotations

import textwrap
from typing import TypeVar

from vcrf.arguments.parameters import ESTIMATOR, PARAMETERS, Parameter

T = TypeVar("T")

_MARK, _INDENT, _WIDTH = "    {parameters}\n", " " * 4, 120


def documented(cls: type[T]) -> type[T]:
    """Put the parameters into the docstring of a class, in place of {parameters}."""
    if cls.__doc__ is not None:  # there is none under python -OO
        own = getattr(cls, "_parameters", None)
        listed = ESTIMATOR if own is None else [PARAMETERS[name] for name in own]
        cls.__doc__ = cls.__doc__.replace(_MARK, "".join(map(_section, listed)))
    return cls


def _section(parameter: Parameter) -> str:
    """Numpydoc: the name with its type, then what it is."""
    optional = ", optional" if parameter.default is None else ""
    text = " ".join(filter(None, [parameter.help, parameter.more, _left_open(parameter)]))
    lines = textwrap.wrap(
        text, _WIDTH, initial_indent=2 * _INDENT, subsequent_indent=2 * _INDENT, break_on_hyphens=False
    )
    return "\n".join([f"{_INDENT}{parameter.name} : {parameter.kind.type_name}{optional}", *lines, ""])


def _left_open(parameter: Parameter) -> str:
    """What the recipes have for it."""
    if not parameter.in_recipes:
        return ""
    return f"{parameter.default} means {'; in the recipe of the paper '.join(parameter.in_recipes)}."
