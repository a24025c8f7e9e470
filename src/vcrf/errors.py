"""Errors that say what was expected, what was found, where, and what to do."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any


class VcrfError(Exception):
    """Base of every error that vcrf raises on purpose."""


class InputError(VcrfError, ValueError):
    """The data or an argument is wrong. The message names the file and line where there is one."""


class BudgetError(VcrfError, ValueError):
    """The exact computation asked for is larger than its budget; the message names the knob."""


class LargeProblemWarning(UserWarning):
    """Training will take long or need much memory; the message says how much, and what to do."""


class NotFittedError(VcrfError, ValueError, AttributeError):
    """A fitted attribute or method was used before `fit`. Also scikit-learn's, where that is imported: `not_fitted`."""

    def __reduce__(self) -> Any:
        return not_fitted, (str(self),)


def not_fitted(message: str) -> NotFittedError:
    """The error, which is also scikit-learn's own of this name if that can be caught by anyone."""
    theirs = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
    return NotFittedError(message) if theirs is None else _also(theirs)(message)


@cache
def _also(theirs: type) -> type[NotFittedError]:
    return type("NotFittedError", (NotFittedError, theirs), {"__module__": __name__})


class WriteError(VcrfError, OSError):
    """A file could not be written: no space, a quota, a failing disk. The message names it and says what to do."""


class MissingExtraError(VcrfError, ImportError):
    """An optional dependency is not installed; the message says how to install it."""


def missing_extra(what: str, packages: str, extra: str) -> str:
    """The message for what needs packages of an extra; vcrf is in no package index, so that its clone is named."""
    are_not, them = ("are not", "them") if " and " in packages else ("is not", "it")
    return (
        f"{what} needs {packages}, which {are_not} installed. Install {them} in the clone of vcrf: "
        f"pip install '.[{extra}]' (after `make demo`: .venv/bin/pip)."
    )
