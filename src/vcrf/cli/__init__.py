"""The command `vcrf`. One thin file a command; what they do is in the library.

Files here import nothing heavy at the top: `vcrf --help` waits for neither numpy nor rich.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line: the entry point of the installed script."""
    from vcrf.cli.app import app

    app(prog_name="vcrf")
