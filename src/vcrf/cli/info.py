"""`vcrf info`: what is installed and where kernels are compiled."""

from __future__ import annotations

from typing import Annotated

import typer

from vcrf.cli.options import AsJson
from vcrf.cli.output import print_json, print_table

Compile = Annotated[
    bool, typer.Option("--compile", help="Compile the kernels of training and tagging first: for images and clusters.")
]


def info(json: AsJson = False, compile: Compile = False) -> None:  # noqa: A002 - the name of the option
    """Show versions, threads and the state of the compiled kernels.

    \b
    vcrf info
    vcrf info --json | python -m json.tool
    vcrf info --compile
    """
    from vcrf.installation import describe_installation

    if compile:
        from vcrf.cli.ahead import compile_kernels
        from vcrf.cli.compiling import compile_notice

        with compile_notice():
            compile_kernels()
    found = describe_installation()
    if json:
        print_json(found)
        return
    for title, values in found.items():
        print_table(title, ["", ""], [(key, str(value)) for key, value in values.items()], left=2)
