"""Figures that README and docs show: those of results/figures.json, each with the version that it was measured with."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import figure_blocks  # noqa: E402
from figure_blocks import is_measured_here, loose_rows, quantities, sections, shown, written  # noqa: E402

FIGURES = figure_blocks.read()
PAGES = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in figure_blocks.pages()}
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
# Numbers that are not measured: versions, limits, defaults, levels of confidence, what may be asked for.
SET = {
    "README.md": {"3.11"},
    "docs/choosing.md": {"0.09", "0.03", "0.25", "20 points", "0.1 %", "20 passes"},
    "docs/command_line.md": {"2 GB", "16 MB", "95 %", "0.05", "20 %"},
    "docs/compare.md": {"24,000 weights"},
    "docs/faq.md": {"1 %", "2 %"},
    "docs/installation.md": {"3.11", "3.14"},
    "docs/migration.md": {"0.16"},
    "docs/reliability.md": {"2 GB"},
    "docs/reproduce.md": {"64 points", "5 %", "20 %", "50 passes"},
    "docs/serving.md": {"8 MB", "30 seconds", "64 MB", "10 seconds", "20 seconds", "5 seconds"},
    "docs/scaling.md": {"2 GB"},
    "docs/solver.md": {"0.35"},
    "docs/trust.md": {"1 %", "5 %", "20 %", "70 %", "95 %", "0.001", "0.985", "0.981"},
    "docs/tutorial/treebank.md": {"1 %", "95 %"},
}
# Tables of parameters and of what is promised, by the beginning of their head.
PARAMETERS = {
    "README.md": "| you want",
    "docs/families.md": "| given",
    "docs/graphs.md": "| attribute",
    "docs/model.md": "| |",
    "docs/reproduce.md": "| option",
    "docs/serving.md": "| view",
    "docs/surrogates.md": "| parameter",
}


def minor(version: str) -> tuple[str, ...]:
    """The part of a version that decides whether results may differ."""
    return tuple(version.split(".")[:2])


def test_readme_is_of_this_minor_version() -> None:
    """After a new minor version its figures are measured again: `make figures`."""
    version = re.search(r'^version = "([^"]+)"', PROJECT, re.MULTILINE)[1]
    chosen = {name: figure for name, figure in FIGURES.items() if is_measured_here(figure)}
    old = [name for name, figure in chosen.items() if minor(figure["version"]) != minor(version)]
    assert chosen
    assert not old, f"measured with another minor version than {version}: {old}; run `make figures`"


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_what_the_file_has(page: str) -> None:
    """A table that was edited, or a stamp with another version, is found."""
    assert written(PAGES[page], FIGURES) == PAGES[page], "run `python benchmarks/figures.py --write`, or --keep"


@pytest.mark.parametrize("page", PAGES)
def test_no_figure_without_a_version(page: str) -> None:
    """Figures in sentences are those of an entry that the same section shows; tables with figures are in blocks."""
    for section in sections(PAGES[page]):
        known = SET.get(page, set()) | {
            said for name in shown(section) for said in FIGURES.get(name, {}).get("said", ())
        }
        unknown = [quantity for quantity in quantities(section) if quantity not in known]
        loose = [row for row in loose_rows(section) if page not in PARAMETERS or not row.startswith(PARAMETERS[page])]
        title = section.split("\n", 1)[0]
        assert not unknown, f"{page}, {title}: figures that no block of this section has: {unknown}"
        assert not loose, f"{page}, {title}: rows with figures outside of a block: {loose}"


def test_every_figure_is_shown() -> None:
    """In one page, by one name; README shows all that benchmarks/figures.py measures."""
    names = [name for text in PAGES.values() for name in shown(text)]
    kept = sorted(name for name, figure in FIGURES.items() if not is_measured_here(figure))
    assert sorted(name for name in names if name != figure_blocks.MEASURED) == kept
    assert figure_blocks.MEASURED in shown(PAGES["README.md"])


@pytest.mark.parametrize("name", FIGURES)
def test_figures_say_where_they_come_from(name: str) -> None:
    """Version, commit, machine, and a command that is there."""
    figure = FIGURES[name]
    assert re.fullmatch(r"\d+\.\d+\.\d+", figure["version"])
    assert re.fullmatch(r"[0-9a-f]{7,40}", figure["commit"])
    assert "cores" in figure["machine"]
    if is_measured_here(figure):
        assert figure["command"] == f"python benchmarks/figures.py {name}"
        assert figure["took"] > 0.0
    for script in re.findall(r"(?:benchmarks|examples)/\w+\.py", figure["command"]):
        assert (ROOT / script).exists()


def test_an_old_figure_is_found() -> None:
    """In a sentence and in a table, until a block of the section has it; code is no figure."""
    text = "# A\n\n## B\n\nTamil takes 1.5 s.\n\n| a | b |\n|---|---|\n| x | 2.5 |\n\n    sleep 3 s\n\n`4 s`\n"
    _, section = sections(text)
    assert quantities(section) == ["1.5 s"]
    assert list(loose_rows(section)) == ["| a | b | | x | 2.5 |"]
    rows = "| a | b |\n|---|---|\n| x | 2.5 |\n"
    blocked = text.replace(rows, f"<!-- figures: name -->\n{rows}<!-- figures: end -->\n")
    entry = {"table": rows.splitlines(), "version": "0.1.0", "commit": "abcdef0", "machine": "2 cores", "command": ""}
    page = written(blocked, {"name": entry})
    assert "| x | 2.5 |\n\n*Measured with version 0.1.0 (commit abcdef0; 2 cores).*\n<!-- figures: end -->" in page
    assert not list(loose_rows(sections(page)[1]))
    assert written(page, {"name": entry}) == page


def test_two_screens() -> None:
    """README stays short: the rest is in docs."""
    assert len(PAGES["README.md"].splitlines()) <= 110
