"""Figures that README shows: those of results/figures.json, measured with this minor version."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FIGURES = json.loads((ROOT / "results" / "figures.json").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def minor(version: str) -> tuple[str, ...]:
    """The part of a version that decides whether results may differ."""
    return tuple(version.split(".")[:2])


def shown() -> list[str]:
    """Rows of README's table of figures."""
    table = README.split("<!-- figures: begin -->\n")[1].split("<!-- figures: end -->")[0]
    return [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| what")]


def test_figures_are_of_this_minor_version() -> None:
    """After a new minor version they are measured again: `make figures`."""
    version = re.search(r'^version = "([^"]+)"', PROJECT, re.MULTILINE)[1]
    old = [name for name, figure in FIGURES.items() if minor(figure["version"]) != minor(version)]
    assert not old, f"measured with another minor version than {version}: {old}; run `make figures`"


def test_readme_shows_what_was_measured() -> None:
    """No figure in README that is not in the file, and the other way round."""
    assert len(shown()) == len(FIGURES)
    for row, figure in zip(shown(), FIGURES.values(), strict=True):
        assert figure["what"] in row
        assert figure["ours"] in row
        assert figure["crfsuite"] in row
        assert f"`{figure['command']}`" in row


@pytest.mark.parametrize("name", FIGURES)
def test_figures_say_where_they_come_from(name: str) -> None:
    """Command, version, commit, machine and time."""
    figure = FIGURES[name]
    assert figure["command"] == f"python benchmarks/figures.py {name}"
    assert re.fullmatch(r"[0-9a-f]{7,40}", figure["commit"])
    assert "cores" in figure["machine"]
    assert figure["took"] > 0.0


def test_two_screens() -> None:
    """README stays short: the rest is in docs."""
    assert len(README.splitlines()) <= 110
