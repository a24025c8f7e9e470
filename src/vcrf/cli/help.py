"""Help that fits a screen: rare options are named by `--help` and described by `--help-all`."""

from __future__ import annotations

import textwrap
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

# Options that most users never need, by command.
RARE = {
    "train": {
        "--form", "--input-format", "--families", "--words", "--tags", "--affix", "--complexities", "--patience",
        "--complexity-strength", "--base-strength", "--norm", "--l1-ratio", "--count-power", "--factors", "--loss",
        "--surrogate", "--structure", "--tol", "--max-passes", "--inference", "--dual-start", "--memory",
        "--seed", "--folds", "--plot", "--watch-port", "--solver", "--rule", "--eta", "--eta-decay", "--kappa",
        "--norm-of", "--power", "--radius",
        "--logarithm", "--start", "--components", "--component-pairs", "--known-labels", "--partial", "--dask",
    },
    "tag": {
        "--nbest", "--mbr", "--unit", "--label-sets", "--form", "--confidence", "--review", "--average", "--longest",
        "--shard",
    },
    "reproduce": {
        "--words", "--tags", "--affix", "--tag", "--noise", "--noise-min-count", "--tol", "--max-passes",
        "--zero-passes", "--dask", "--method", "--cold", "--strengths", "--by-mean", "--mean", "--seeds",
        "--solver", "--rule", "--eta", "--eta-decay", "--kappa",
    },
}  # fmt: skip
_ALL = "vcrf.help_all"


class GroupedCommand(TyperCommand):
    """A command whose rare options are a group of their own."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, common options and rare ones."""
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "Rare options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                groups[self._group(parameter)].append(record)
        rare = groups.pop("Rare options")
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        if rare and ctx.meta.get(_ALL):
            with formatter.section("Rare options"):
                formatter.write_dl(rare)
        elif rare:
            with formatter.section("Rare options, which --help-all describes"):
                names = " ".join(names.split(" ")[0].rstrip(",") for names, _ in rare)
                indent = " " * formatter.current_indent
                for line in textwrap.wrap(names, formatter.width - len(indent), break_on_hyphens=False):
                    formatter.write(f"{indent}{line}\n")

    def get_help_option_names(self, ctx: Any) -> list[str]:
        """Names of the help; where no option is rare --help-all is one of them."""
        names = list(super().get_help_option_names(ctx))
        return names if self.name in RARE else [*names, "--help-all"]

    def _group(self, parameter: Any) -> str:
        if parameter.param_type_name == "argument":
            return "Arguments"
        return "Rare options" if RARE.get(self.name or "", set()) & set(parameter.opts) else "Options"


def _print_all(ctx: typer.Context, is_asked: bool) -> None:
    if is_asked:
        ctx.meta[_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool, typer.Option("--help-all", help="Describe the rare options too.", callback=_print_all, is_eager=True)
]
