"""The paper's figures are those of its LaTeX, where that lies beside the project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vcrf.experiments import paper

SOURCE = Path(__file__).resolve().parents[3] / "shared" / "paper" / "factor-graph-complexity.tex"


@pytest.fixture(scope="module")
def tables() -> dict[str, dict[str, str]]:
    """Rows of the tables by label, then by data set."""
    if not SOURCE.exists():
        pytest.skip("the paper is not beside the project")
    text = SOURCE.read_text(encoding="utf-8", errors="replace")
    found = {}
    for table in re.findall(r"\\begin{table}.*?\\end{table}", text, re.DOTALL):
        label = re.search(r"\\label{(table:\w+)}", table)
        rows = dict(re.findall(r"{\\tt ([\w-]+)}\s*&(.*?)\\\\", table))
        if label and rows:
            found[label[1]] = rows
    return found


def numbers(row: str) -> list[float]:
    """All numbers of a row."""
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", row.replace(r"\phantom{1}", ""))]


@pytest.mark.parametrize(
    ("label", "figures"), [("table:results", paper.RESULTS), ("table:results_noise20", paper.NOISE)]
)
def test_errors(label: str, figures: dict[str, paper.Row], tables: dict[str, dict[str, str]]) -> None:
    """Means, deviations and which are bold."""
    assert set(tables[label]) == set(figures)
    for name, row in tables[label].items():
        ours = figures[name]
        assert numbers(row) == [number for pair in ours[:4] for number in pair]
        assert (r"{\bf" in row) == ours.is_significant


def test_features_and_data(tables: dict[str, dict[str, str]]) -> None:
    """Numbers of features, and sizes of the data."""
    for name, row in tables["table:ftr_cnt"].items():
        assert numbers(row)[:2] == list(paper.FEATURES[name])
    for name, row in tables["table:data_desc"].items():
        assert numbers(row)[-4:] == list(paper.DATA[name])
    assert set(tables["table:ftr_cnt"]) == set(paper.FEATURES)
    assert set(tables["table:data_desc"]) == set(paper.DATA)
