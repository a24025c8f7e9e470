"""`vcrf info`: what is installed and where kernels are compiled."""

from __future__ import annotations

from vcrf.cli.options import AsJson
from vcrf.cli.output import print_json, print_table


def info(json: AsJson = False) -> None:
    """Show versions, threads and the state of the compiled kernels.

    \b
    vcrf info
    vcrf info --json | python -m json.tool
    """
    from vcrf.installation import describe_installation

    found = describe_installation()
    if json:
        print_json(found)
        return
    for title, values in found.items():
        print_table(title, ["", ""], [(key, str(value)) for key, value in values.items()], left=2)
