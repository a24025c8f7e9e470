"""The tables of docs/claim.md and docs/reproduce.md: every row follows from the files of results/."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import claim_tables  # noqa: E402
import figure_blocks  # noqa: E402

FIGURES = figure_blocks.read()


@pytest.mark.parametrize("name", claim_tables.BLOCKS)
def test_tables_are_those_of_results(name: str) -> None:
    """`python benchmarks/claim_tables.py --write` makes them again."""
    assert FIGURES[name]["table"] == claim_tables.table(name)
    assert {key: FIGURES[name][key] for key in ("command", "version", "commit", "machine")} == claim_tables.facts(name)


def test_tables_are_of_one_version() -> None:
    """Every folder says its command and its version, and stands in the list."""
    folders = sorted(path.parent for path in (ROOT / "results").glob("*/points.csv"))
    described = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    runs = [json.loads((folder / "run.json").read_text(encoding="utf-8")) for folder in folders]
    assert len({run["version"] for run in runs}) == 1
    assert all(f"`{folder.name}`" in described for folder in folders)
    assert all(run["command"].endswith(f"results/{folder.name}") for run, folder in zip(runs, folders, strict=True))
