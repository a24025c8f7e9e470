"""The report: tables, pictures, what was done with which versions, and how long it took."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vcrf.errors import MissingExtraError
from vcrf.experiments.document import Code, Section, Table, to_html, to_markdown
from vcrf.experiments.plan import Results
from vcrf.experiments.tables import figures, points_csv, table_sections
from vcrf.experiments.tasks import code_version
from vcrf.files import replacing

TITLE = "Voted CRFs against L1-CRFs: the paper's experiments"


def write_report(results: Results, directory: Path, commands: list[str], missing: Sequence[str] = ()) -> list[str]:
    """Write all files of the report; returns what could not be done. `missing` says which data and work are not in it.

    `tables.md`, `tables.json` and `points.csv` depend on the results alone: the same experiment writes the same bytes,
    interrupted or not. `report.md` and `report.html` have pictures, versions and times too.
    """
    from vcrf.experiments.pictures import draw

    tables = table_sections(results)
    problems, drawn = [], Section("Pictures")
    try:
        drawn.parts.extend(draw(results))
    except MissingExtraError as error:
        problems.append(f"No pictures. {error}")
        drawn.parts.append(f"None: {error}")
    absent = [Section("Missing", [Code("\n".join(missing))])] if missing else []
    sections = [*absent, *tables, drawn, *_circumstances(results, commands)]
    contents = {
        "tables.md": to_markdown("Tables", tables),
        "tables.json": json.dumps({"unit_of_errors": "per cent", "tables": figures(results)}, indent=1) + "\n",
        "points.csv": points_csv(results),
        "report.md": to_markdown(TITLE, sections),
        "report.html": to_html(TITLE, sections),
    }
    for picture in drawn.parts:
        if not isinstance(picture, (str, Table, Code)):
            contents[f"pictures/{picture.name}.svg"] = picture.svg
    for name, content in contents.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(content.encode())
    return problems


def _circumstances(results: Results, commands: list[str]) -> list[Section]:
    plan, settings = results.plan, results.plan.settings
    grid = f"complexity strengths {_listing(plan.grid.complexity_strengths)}; base strengths " + _listing(
        plan.grid.base_strengths
    )
    protocol = [
        f"Five random folds (seed {settings.seed}). Run i validates on fold i, tests on fold i + 1 (mod 5), trains on "
        f"the other three. Runs: {_listing(plan.runs)}; runs 5 to 9 are those of the next seed, and so on.",
        f"Grid: {grid}.",
        "Every point begins at zero." if settings.is_cold else "Every point begins at the one before it on its path.",
        f"A point ends at a relative gap of {settings.tol:g}"
        + ("." if settings.max_passes is None else f", or after {settings.max_passes} passes over the data."),
        f"Noise: the labels of words with at least {settings.noise_min_count} occurrences in the data are replaced by "
        f"another one, drawn uniformly, with probability {plan.noise:g}; in the training part only.",
        "Methods: " + "; ".join(f"`{method.name}` = `{method.describe()}`" for method in plan.methods) + ".",
    ]
    return [
        Section("Protocol", list(protocol)),
        Section("Time", [_times(results)]),
        Section("Versions", [Table(["", ""], [[key, str(value)] for key, value in _versions().items()], n_left=2)]),
        Section("Commands", [Code("\n".join(commands))]),
    ]


def _times(results: Results) -> Table:
    rows = [
        [cell.dataset, cell.method, f"{cell.noise:g}", f"{seconds:,.0f}"] for cell, seconds in results.seconds.items()
    ]
    rows.append(["all", "", "", f"{sum(results.seconds.values()):,.0f}"])
    return Table(["data", "method", "noise", "seconds in tasks, one thread each"], rows, n_left=2)


def _versions() -> dict[str, Any]:
    from vcrf.installation import describe_installation

    found = describe_installation()
    machine = {key: found["machine"][key] for key in ("platform", "processor", "cores")}
    return {**found["versions"], "vcrf": code_version(), **machine}


def _listing(values: tuple[float, ...] | tuple[int, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)
