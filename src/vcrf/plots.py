"""Pictures of training, with matplotlib (the extra `plots`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from vcrf.errors import InputError, MissingExtraError, missing_extra
from vcrf.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vcrf.estimators import VCRF

SUFFIXES = (".png", ".svg", ".pdf")
INSTALL = missing_extra("A picture", "matplotlib", "plots")


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure; nothing global is touched, and no window is opened."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(INSTALL) from error
    return Figure(figsize=(width, height), layout="constrained")


def check_suffix(path: Path) -> str:
    """Return the kind of picture that a path's suffix says."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: expected a picture's name that ends in {', '.join(SUFFIXES)}, got {path.suffix!r}.")
    return path.suffix.lower()[1:]


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure whole or not at all; the suffix decides the format."""
    kind = check_suffix(path)
    with replacing(path) as file:
        figure.savefig(file, format=kind)


def plot_training(taggers: Mapping[str, VCRF], path: Path) -> None:
    """Draw how the certified gap of each tagger fell, and how many features of each family are active.

    Parameters
    ----------
    taggers : name -> fitted estimator, all with the same families
    path : where to write; the suffix decides the format (.png, .svg, .pdf)
    """
    figure = new_figure(11.0, 5.0)
    left, right = figure.subplots(1, 2)
    _draw_gaps(left, taggers)
    _draw_families(right, taggers)
    save_figure(figure, path)


def _draw_gaps(axes: Axes, taggers: Mapping[str, VCRF]) -> None:
    for name, tagger in taggers.items():
        points = [(r.seconds, r.gap / r.objective) for r in tagger.history_ if r.objective > 0.0]
        certified = [(seconds, gap) for seconds, gap in points if 0.0 < gap < math.inf]
        axes.plot([seconds for seconds, _ in certified], [gap for _, gap in certified], marker=".", label=name)
    axes.set(yscale="log", xlabel="seconds", ylabel="relative duality gap", title="Certified distance from the optimum")
    axes.legend()


def _draw_families(axes: Axes, taggers: Mapping[str, VCRF]) -> None:
    height = 0.8 / len(taggers)
    families: list[str] = []
    for i, (name, tagger) in enumerate(taggers.items()):
        families = [family.name for family in tagger.families_]
        rows = [row + (i - (len(taggers) - 1) / 2) * height for row in range(len(families))]
        axes.barh(rows, [family.n_active for family in tagger.families_], height, label=name)
    axes.set_yticks(range(len(families)), families, fontsize=7)
    axes.invert_yaxis()
    axes.set(xlabel="features with a weight", title="Active features by family")
    axes.legend()
