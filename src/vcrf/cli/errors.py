"""From exceptions to messages and exit codes."""

from __future__ import annotations

import functools
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import typer

from vcrf.cli.interrupts import exit_code, stoppable
from vcrf.cli.output import say

FAILED, WRONG_CALL = 1, 2

# A parameter in a message is code: `tags`, `norm='l1'`, and with its value in plain text too.
_CODE = re.compile(r"`(\w+)(?:=([^`]*))?`|\b(\w+)=('[^']*'|-?\w+)")
_QUOTES = "'\""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that it ends with a message and the right exit code, never with a traceback of ours."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        from vcrf.errors import InputError, MissingExtraError, VcrfError

        try:
            with stoppable():
                _check_streams()
                command(*args, **kwargs)
                sys.stdout.flush()
        except (InputError, MissingExtraError) as error:
            fail(in_options(str(error)), WRONG_CALL)
        except BrokenPipeError:
            _leave_quietly()
        except KeyboardInterrupt:
            fail("Interrupted: no file was written.", exit_code())
        except VcrfError as error:
            fail(in_options(str(error)), FAILED)
        except OSError as error:
            fail(system_message(error), FAILED)
        except MemoryError:
            fail("Out of memory. Use less data, fewer families (--words, --tags, --affix) or a larger machine.", FAILED)
        except Exception as error:
            if not _is_interrupted(error):
                raise
            fail("Interrupted: no file was written.", exit_code())

    return run


def _is_interrupted(error: BaseException) -> bool:
    """Whether an interrupt is at the bottom of it: compiled modules turn one into an error of their own."""
    cause = error.__cause__ or error.__context__
    return cause is not None and (isinstance(cause, KeyboardInterrupt) or _is_interrupted(cause))


@contextmanager
def about(name: object) -> Iterator[None]:
    """Put the file before a message that is about its contents and does not name it."""
    from vcrf.errors import BudgetError, InputError

    try:
        yield
    except (InputError, BudgetError) as error:
        if str(name) in str(error):
            raise
        raise type(error)(f"{name}: {error}") from error


def _check_streams() -> None:
    """Refuse a closed standard output (`>&-`), which Python knows as None."""
    if sys.stdout is None:
        raise OSError("Standard output is closed: there is nowhere to write to.")


def system_message(error: OSError) -> str:
    """What the system refused, with the file that it is about."""
    from vcrf.files import write_error

    if error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}."
    # All files that are written have their names in their errors.
    return str(write_error("standard output", error)) if error.errno else str(error)


def fail(message: str, code: int) -> NoReturn:
    """Write a message to stderr and exit."""
    with suppress(OSError):  # nobody may be there to read it
        typer.echo(f"vcrf: {message}", err=True)
    raise typer.Exit(code)


def in_options(message: str) -> str:
    """A message of the library, with options in place of its parameters: --norm l1 for `norm='l1'`."""
    return _CODE.sub(_as_option, message)


@contextmanager
def saying_warnings() -> Iterator[None]:
    """Say at once, and once, what the library warns of: that a pass takes hours is told before it."""
    said: set[str] = set()

    def show(message: Warning | str, *_: Any) -> None:
        if str(message) not in said:
            said.add(str(message))
            say(in_options(str(message)))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _as_option(code: re.Match[str]) -> str:
    from vcrf.arguments.parameters import PARAMETERS

    name, value = code[1] or code[3], code[2] or code[4]
    option = PARAMETERS[name].option if name in PARAMETERS else ""
    if not option:  # no parameter, or one that the command line does not have
        return code[0]
    return option if value is None else f"{option} {value.strip(_QUOTES)}"


def _leave_quietly() -> NoReturn:
    """End as if all were written: who reads from us wants no more (`| head`)."""
    # Python flushes standard output once more at exit: let that go nowhere.
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    raise typer.Exit(0)
