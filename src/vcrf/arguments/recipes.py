"""Recipes: what a parameter is when it is left open. One that is given changes its own value and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """Values of the parameters that are left open.

    Attributes
    ----------
    occurrences : `base_strength` times the number of sentences
    aim : the gap that training aims at, as a share of `tol`
    """

    complexity_strength: float
    occurrences: float
    norm: str
    l1_ratio: float
    count_power: float
    factors: bool
    loss: str | None
    temperature: float
    tol: float
    aim: float

    def value(self, name: str, n_sentences: int) -> Any:
        """What a parameter is that is left open."""
        return self.occurrences / n_sentences if name == "base_strength" else getattr(self, name)


# What labels best in cross-validation. It takes a tenth more passes to come to a third of `tol`, and the labels are
# then those of the optimum.
_ACCURATE = Recipe(
    complexity_strength=0.0, occurrences=0.09, norm="elastic", l1_ratio=2 / 3, count_power=0.35, factors=True,
    loss="hamming:normalised=False,cost=3", temperature=1.6, tol=1e-3, aim=0.3,
)  # fmt: skip
# The objective of the paper as it stands.
_PAPER = Recipe(
    complexity_strength=0.0, occurrences=0.5, norm="l1", l1_ratio=0.5, count_power=0.0, factors=False,
    loss=None, temperature=1.0, tol=1e-3, aim=1.0,
)  # fmt: skip

Recipes = Mapping[str, Recipe]
CRF: Recipes = {"accurate": _ACCURATE, "paper": _PAPER}
# These need a loss; that of a sentence is at most 1.
LOG_MEAN: Recipes = {
    "accurate": replace(_ACCURATE, loss="hamming", temperature=1.0),
    "paper": replace(_PAPER, loss="hamming"),
}
MAX_MARGIN: Recipes = {
    "accurate": replace(LOG_MEAN["accurate"], occurrences=1.0, tol=1e-2),
    "paper": replace(LOG_MEAN["paper"], tol=1e-2),
}

# Graphs: what costs the loss of one wrong label.
GRAPH = replace(
    _ACCURATE, occurrences=0.1, norm="elastic", l1_ratio=0.5, count_power=0.0, factors=False,
    loss="hamming:normalised=False", temperature=1.0, aim=1.0,
)  # fmt: skip
# Rows of features, which are brought to length 1.
MULTILABEL = replace(GRAPH, occurrences=1.0, norm="l2")

# The parameters that a recipe has a value for.
NAMES = tuple("base_strength" if field.name == "occurrences" else field.name for field in fields(Recipe)[:-1])
# Below this `tol` itself is aimed at: whoever asks for so small a gap means it.
_LOOSE = 1e-4


def form_of(name: str) -> dict[str, Any]:
    """The form of the problem that a recipe of `VCRF` makes, whatever its strengths and however close it is solved."""
    others = ("complexity_strength", "base_strength", "tol")
    return {key: getattr(CRF[name], key) for key in NAMES if key not in others}


def is_open(name: str, value: object) -> bool:
    """Whether a parameter is left to the recipe; a loss of None is no loss."""
    return isinstance(value, str) and value == "auto" if name == "loss" else value is None


def aimed_at(recipe: Recipe, tol: float) -> float:
    """The relative gap that training aims at."""
    return recipe.aim * tol if tol >= _LOOSE else tol
