"""The command `vcrf`. One thin file a command; what they do is in the library.

Files here import nothing heavy at the top: `vcrf --help` waits for neither numpy nor rich.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from contextlib import suppress
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line: the entry point of the installed script."""
    # Imports make many objects and no garbage: looking for it at each 700 of them takes a tenth of a short run.
    gc.set_threshold(50_000)
    from vcrf.cli.interrupts import leave_at_once

    leave_at_once()  # what a command has to lose it guards itself
    _write_anything()
    from vcrf.cli.app import app

    try:
        app(prog_name="vcrf")
    except SystemExit as end:
        _leave(end.code if isinstance(end.code, int) else int(end.code is not None))
    except OSError as error:  # of the help or the version, which are no command
        from vcrf.cli.errors import FAILED, system_message
        from vcrf.cli.output import say

        say(f"vcrf: {system_message(error)}")
        _leave(FAILED)
    _leave(0)


def _write_anything() -> None:
    """Letters that the terminal's encoding does not have are written as \\u0396: an odd word is no failure."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _leave(code: int) -> NoReturn:
    """End now: taking down the interpreter with a compiler in it takes 0.1 s, and there is nothing left to do."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a pipe that nobody reads any more
            if stream is not None:  # closed by the shell: `>&-`
                stream.flush()
    os._exit(code)
