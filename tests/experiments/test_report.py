"""The report says what the results say, in Markdown and in one page that needs nothing else."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from points import point
from vcrf.errors import MissingExtraError
from vcrf.experiments import pictures
from vcrf.experiments.curves import curves
from vcrf.experiments.datasets import Dataset
from vcrf.experiments.document import Code, Picture, Section, Table, to_html, to_markdown
from vcrf.experiments.plan import Cell, Plan, Results
from vcrf.experiments.report import write_report
from vcrf.experiments.tables import points_csv, table_sections


def fabricated(plan: Plan, dataset: Dataset) -> Results:
    """Three runs of Tamil; the VCRF makes 10, 11, 12 mistakes in 100 tokens, the L1-CRF 20, 22, 24."""
    tamil = replace(dataset, name="tamil")
    points = {}
    for noise in (0.0, 0.2):
        for method in plan.methods:
            points[Cell("tamil", method.name, noise)] = {
                run: [
                    point(
                        complexity_strength=c, base_strength=b, validation_wrong=wrong, test_wrong=wrong,
                        validation_tokens=100, test_tokens=100, n_active=n_active, test_sentences=50,
                        test_sentences_wrong=wrong, families={"H(1,1,0)": 3, "tags:2": 1},
                    )
                    for c, b, wrong, n_active in [
                        *((0.01, 0.1, 10 + run, 50), (0.01, 0.01, 60, 70)),
                        *((0.0, 0.1, 20 + 2 * run, 100), (0.0, 0.01, 70, 9)),
                    ]
                ]
                for run in range(3)
            }  # fmt: skip
    return Results(replace(plan, datasets=[tamil], runs=(0, 1, 2)), points, dict.fromkeys(points, 3.0))


@pytest.fixture
def results(plan: Plan, dataset: Dataset) -> Results:
    """See `fabricated`."""
    return fabricated(plan, dataset)


def table(results: Results, title: str) -> Table:
    """The table under a title."""
    (section,) = [section for section in table_sections(results) if section.title == title]
    (found,) = [part for part in section.parts if isinstance(part, Table)]
    return found


def test_errors_stand_beside_those_of_the_paper(results: Results) -> None:
    """Means, standard deviations, significance; the paper's row for the same data."""
    assert table(results, "Errors").rows == [
        ["tamil", "paper", "3", "**11.00 ± 1.00**", "**22.00 ± 2.00**", "22.00 ± 2.00", "44.00 ± 4.00"],
        ["tamil", "the paper's table", "5", "**19.82 ± 0.69**", "**89.83 ± 2.13**", "22.50 ± 1.57", "92.00 ± 1.54"],
    ]
    noisy = table(results, "Errors with 20% label noise in training")
    assert noisy.rows[1][3] == "20.77 ± 0.70"
    (row,) = table(results, "Errors: VCRF less L1-CRF, points of per cent").rows
    assert row[2] == "-11.00"
    # Differences -10, -11, -12: t = -11 / (1 / sqrt(3)), two degrees of freedom.
    assert row[4] == "**0.001**"
    assert row[-1] == "3"


def test_features_stand_beside_those_of_the_paper(results: Results) -> None:
    """Both ways of counting, and candidates."""
    first, second = table(results, "Features").rows
    assert first[2:5] == ["50", "100", "0.5"]
    assert second[5:8] == ["1,583", "668,545", "0.00237"]


def test_methods_are_rows_of_one_table(results: Results) -> None:
    """A second method is compared with the L1-CRF of the first."""
    assert not [s for s in table_sections(results) if s.title == "Methods" and s.parts]
    other = replace(results.plan.methods[0], name="other")
    two = fabricated(replace(results.plan, methods=[*results.plan.methods, other]), results.plan.datasets[0])
    rows = table(two, "Methods").rows
    assert [row[1] for row in rows] == ["paper", "other"]
    assert rows[1][5] == "-11.00"


def test_missing_runs_are_told(results: Results) -> None:
    """Tables have what is there, and say that it is not all."""
    assert results.is_complete
    cell = next(iter(results.points))
    del results.points[cell][1]
    assert not results.is_complete
    assert table_sections(results)[0].title == "State"
    assert table(results, "Errors").rows[0][2] == "2"


def test_the_page_needs_no_other_file(results: Results, tmp_path: Path) -> None:
    """Well-formed, pictures inside, no link to anything."""
    assert write_report(results, tmp_path, ["vcrf reproduce --data here"]) == []
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert checker.tags.count("svg") == 6
    assert checker.ids
    assert len(checker.ids) == len(set(checker.ids))
    assert not [target for target in checker.targets if not target.startswith("#")]
    assert {target[1:] for target in checker.targets} <= set(checker.ids)
    assert "vcrf reproduce --data here" in page
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    for name in ("path", "families", "difference"):
        assert f"](pictures/{name}.svg)" in markdown
        assert (tmp_path / "pictures" / f"{name}.svg").exists()


def test_the_same_results_write_the_same_bytes(results: Results, tmp_path: Path) -> None:
    """Whatever the time: only the report itself has it."""
    slower = replace(results, seconds=dict.fromkeys(results.seconds, 9.0))
    for name, which in (("a", results), ("b", slower)):
        (tmp_path / name).mkdir()
        write_report(which, tmp_path / name, [])
    for name in ("tables.md", "tables.json", "points.csv", "pictures/path.svg", "pictures/families.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert (tmp_path / "a" / "report.md").read_bytes() != (tmp_path / "b" / "report.md").read_bytes()


def test_pictures_of_points_left_out_and_of_no_mistakes(results: Results) -> None:
    """A method that needs a penalty has no last point; a data set may be too easy."""
    for runs in results.points.values():
        for points in runs.values():
            del points[-1]
    assert len(pictures.draw(results)) == 6
    for runs in results.points.values():
        for points in runs.values():
            points[:] = [point._replace(test_wrong=0) for point in points]
    assert len(pictures.draw(results)) == 6


def test_curves_of_a_grid_of_axes(results: Results) -> None:
    """The L1-CRF's points lie on one curve, those with a complexity strength on another; (0, 0) on none."""
    for runs in results.points.values():
        for points in runs.values():
            points[:] = [
                point._replace(base_strength=0.0 if point.complexity_strength else point.base_strength)
                for point in points
            ]
            points[1] = points[1]._replace(complexity_strength=0.001)
            points.append(points[-1]._replace(base_strength=0.0, n_active=10_000))
    axes = replace(results, plan=replace(results.plan, grid=results.plan.grid._replace(is_axes=True)))
    left, right = curves({cell: results.points[cell] for cell in results.cells(0.0)}).axes
    drawn = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in left.lines}
    assert drawn == {
        "L1-CRF": ([100.0, 9.0], [pytest.approx(22.0), pytest.approx(70.0)]),
        "VCRF": ([50.0, 70.0], [pytest.approx(11.0), pytest.approx(60.0)]),
    }
    assert len(right.lines) == 2
    assert "one strength at a time" in pictures.draw(axes)[0].caption


def test_families_are_named_by_what_they_read() -> None:
    """Orders stay apart; lengths of affixes and places do not."""
    names = {
        "H(1,2,3)": "k1 = 1, k2 = 2", "tags:3": "tags:3", "affix:2[-1]": "affix", "word[+2]": "word",
        "word pairs": "word pairs", "bias": "bias",
    }  # fmt: skip
    assert {name: pictures._kind(name) for name in names} == names


def test_the_row_of_the_paper_comes_though_a_method_failed(results: Results) -> None:
    """It follows the last method that has results."""
    plan = replace(results.plan, methods=[*results.plan.methods, replace(results.plan.methods[0], name="failed")])
    for title in ("Errors", "Features"):
        assert [row[1] for row in table(replace(results, plan=plan), title).rows] == ["paper", "the paper's table"]


def test_numbers_for_other_programs(results: Results, tmp_path: Path) -> None:
    """JSON has the figures of the tables, CSV every point."""
    write_report(results, tmp_path, [])
    clean, noisy = json.loads((tmp_path / "tables.json").read_text(encoding="utf-8"))["tables"]
    assert (clean["noise"], noisy["noise"]) == (0.0, 0.2)
    assert clean["vcrf"]["token_errors"] == [10.0, 11.0, 12.0]
    assert clean["crf"]["strengths"] == [[0.0, 0.1]] * 3
    assert clean["token_difference"]["is_significant"]
    rows = list(csv.DictReader(io.StringIO(points_csv(results))))
    assert len(rows) == 2 * 3 * 4
    assert np.isclose(float(rows[0]["objective"]), 1 / 3)


def test_without_matplotlib_the_report_says_so(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything but the pictures is written."""

    def refuse(*_: object) -> None:
        raise MissingExtraError("A picture needs matplotlib.")

    monkeypatch.setattr(pictures, "new_figure", refuse)
    assert write_report(results, tmp_path, []) == ["No pictures. A picture needs matplotlib."]
    assert "None: A picture needs matplotlib." in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_documents_escape_what_is_not_markup() -> None:
    """Angle brackets of a name or a command do no harm."""
    svg = '<?xml version="1.0"?><svg id="a"><use href="#a"/></svg>'
    parts: list[str | Table | Picture | Code] = ["a **b** `c<d>`", Table(["x"], [["<y>"]]), Code("1 < 2")]
    section = Section("T", [*parts, Picture("p", "cap", svg)])
    page = to_html("A & B", [section, Section("empty")])
    assert "<title>A &amp; B</title>" in page
    assert "a <strong>b</strong> <code>c&lt;d&gt;</code>" in page
    assert "&lt;y&gt;" in page
    assert "1 &lt; 2" in page
    assert '<svg id="p-a"><use href="#p-a"/></svg>' in page
    assert "empty" not in page
    assert to_markdown("T", [section]).count("pictures/p.svg") == 1


class Checker(HTMLParser):
    """Collects tags, names and links; `open` is what was not closed."""

    VOID = frozenset({"meta", "br", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of a tag."""
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of a tag that has no end."""
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("src", "href", "xlink:href"):
                self.targets.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        """Match the last open tag."""
        assert self.open.pop() == tag
