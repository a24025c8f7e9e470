"""Draw the picture of docs/trust.md: how often promises are broken, and what is accepted.

    python benchmarks/trust_picture.py

The numbers are those of the two tables under "Measured: promises are kept", which `benchmarks/trust.py simulate` and
`splits` printed. Nothing is measured here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from vcrf.plots import new_figure, save_figure

DOCS = Path(__file__).resolve().parents[1] / "docs"
_SIZES = (100, 300, 1000)


def rows_of(text: str) -> tuple[list[Any], list[Any]]:
    """Rows of the simulation (promise, [(broken, accepted), ...]) and of the treebanks (name, promise, broken)."""
    simulated, treebanks, name = [], [], ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"\d+ %, 0\.\d\d", cells[0]):
            simulated.append((cells[0], [tuple(map(float, cell.split(", "))) for cell in cells[1:]]))
        elif len(cells) == 5 and re.fullmatch(r"\d+ %, 0\.\d\d", cells[1]):
            name = cells[0].partition(",")[0] or name
            treebanks.append((name, cells[1], float(cells[3])))
    return simulated, treebanks


def delta_of(promise: str) -> float:
    """1 - confidence of "5 %, 0.10"."""
    return float(promise.rpartition(" ")[2])


def draw(simulated: list[Any], treebanks: list[Any], path: Path) -> None:
    """Broken promises against what is allowed; share accepted; the same on treebanks."""
    drawing = new_figure(14.0, 4.0)
    broken, accepted, real = drawing.subplots(1, 3)
    for promise, found in simulated:
        style = {"marker": "o", "label": promise, "linestyle": "-" if delta_of(promise) < 0.07 else "--"}
        broken.plot(_SIZES, [share / delta_of(promise) for share, _ in found], **style)
        accepted.plot(_SIZES, [share for _, share in found], **style)
    for axes in (broken, accepted):
        axes.set_xscale("log")
        axes.set_xticks(_SIZES, [f"{n:,}" for n in _SIZES])
        axes.minorticks_off()
        axes.set_xlabel("calibration sentences")
    broken.set_title("invented language: broken promises")
    accepted.set_title("share of tokens accepted")
    broken.legend(title="max_error, 1 - confidence", fontsize="small", loc="upper left", bbox_to_anchor=(0.0, 0.95))
    names = [f"{name} {promise}" for name, promise, _ in treebanks]
    real.barh(names, [share / delta_of(promise) for _, promise, share in treebanks])
    real.invert_yaxis()
    real.set_title("treebanks: broken promises")
    for axes, line in ((broken, broken.axhline), (real, real.axvline)):
        line(1.0, color="black", linewidth=1.0)
        (axes.set_ylabel if axes is broken else axes.set_xlabel)("broken / allowed")
    save_figure(drawing, path)


def main() -> None:
    """Read the tables and draw."""
    simulated, treebanks = rows_of((DOCS / "trust.md").read_text(encoding="utf-8"))
    draw(simulated, treebanks, DOCS / "promises.png")


if __name__ == "__main__":
    main()
