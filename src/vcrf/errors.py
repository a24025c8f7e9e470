"""Errors that say what was expected, what was found, where, and what to do."""

from __future__ import annotations


class VcrfError(Exception):
    """Base of every error that vcrf raises on purpose."""


class InputError(VcrfError, ValueError):
    """The data or an argument is wrong. The message names the file and line where there is one."""


class BudgetError(VcrfError, ValueError):
    """The exact computation asked for is larger than its budget; the message names the knob."""


class LargeProblemWarning(UserWarning):
    """Training will take long or need much memory; the message says how much, and what to do."""


class NotFittedError(VcrfError, ValueError, AttributeError):
    """A fitted attribute or method was used before `fit`."""


class WriteError(VcrfError, OSError):
    """A file could not be written: no space, a quota, a failing disk. The message names it and says what to do."""


class MissingExtraError(VcrfError, ImportError):
    """An optional dependency is not installed; the message says how to install it."""
