"""All commands in one application, and what they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from vcrf.cli.bound import bound
from vcrf.cli.calibrate import calibrate
from vcrf.cli.classes import classes
from vcrf.cli.convert import convert
from vcrf.cli.demo import demo
from vcrf.cli.errors import guarded
from vcrf.cli.evaluate import evaluate
from vcrf.cli.explain import explain
from vcrf.cli.help import GroupedCommand
from vcrf.cli.info import info
from vcrf.cli.reproduce import reproduce
from vcrf.cli.serve import serve
from vcrf.cli.show import show
from vcrf.cli.suggest import suggest
from vcrf.cli.tag import tag
from vcrf.cli.train import train
from vcrf.cli.trust import trust

# Plain help and tracebacks: rich takes longer to import than everything else that help needs.
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo, "train": train, "tag": tag, "eval": evaluate, "show": show, "explain": explain, "bound": bound,
    "calibrate": calibrate, "trust": trust, "suggest": suggest, "convert": convert,
    "serve": serve, "classes": classes, "reproduce": reproduce, "info": info,
}  # fmt: skip

for name, command in _COMMANDS.items():
    app.command(name, cls=GroupedCommand)(guarded(command))


def _print_version(is_asked: bool) -> None:
    if is_asked:
        import vcrf

        typer.echo(f"vcrf {vcrf.__version__}")
        raise typer.Exit


@app.callback()
def vcrf(
    version: Annotated[  # its callback does the work
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Train sequence taggers with a certified optimum, and use them.

    \b
    vcrf demo                                    see what it does, on a small English corpus
    vcrf train my.conllu -o my.vcrf              learn from a treebank
    vcrf tag my.vcrf new.txt > new.conllu        label text
    vcrf eval my.vcrf test.conllu                measure the error
    vcrf calibrate my.vcrf dev.conllu            look at held-out sentences
    vcrf tag my.vcrf new.txt --max-error 1%      mark what a person has to check
    vcrf suggest my.vcrf pool.txt -n 100         what to label next
    vcrf serve my.vcrf --open                    look at it in a browser
    vcrf bound my.vcrf my.conllu                 what is guaranteed, term by term

    Exit codes: 0 done, 1 the work failed, 2 the call or the input is wrong; 130 ended by Ctrl-C, 143 by SIGTERM, 129 by
    SIGHUP.
    """
