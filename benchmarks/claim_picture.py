"""Error against sparsity from the tables of certified axes: the picture of docs/claim.md.

    python benchmarks/claim_picture.py results/claim-tamil-certified results/claim-twitter-certified -o docs/claim.png

Reads the folders' `points.csv`; nothing is trained.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

from vcrf.experiments.curves import curves
from vcrf.experiments.plan import Cell
from vcrf.experiments.tasks import PathPoint

# What points.csv has no column for, and what is no number in it.
_ABSENT: dict[str, Any] = {"seconds": 0.0, "families": {}}
_TEXTS = ("status",)


Cells = dict[Cell, dict[int, list[PathPoint]]]


def read(path: Path) -> Cells:
    """Points of a file by run."""
    found: Cells = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cell = Cell(row.pop("dataset"), row.pop("method"), float(row.pop("noise")))
            run = int(row.pop("run"))
            values = {key: text if key in _TEXTS else float(text) if text else None for key, text in row.items()}
            found.setdefault(cell, {}).setdefault(run, []).append(PathPoint(**values, **_ABSENT))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    points: Cells = {}
    for folder in options.folders:
        clean = {cell: runs for cell, runs in read(folder / "points.csv").items() if cell.noise == 0.0}
        n_runs = max(map(len, clean.values()))  # a mean over fewer runs is no line beside the others
        points |= {cell: runs for cell, runs in clean.items() if len(runs) == n_runs}
    curves(points).savefig(options.output, dpi=110)


if __name__ == "__main__":
    main()
