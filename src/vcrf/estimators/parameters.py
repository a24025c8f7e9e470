"""The parameters of VCRF and what they make of a problem: families, penalty, loss."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from vcrf.arguments import recipes
from vcrf.arguments.parameters import ESTIMATOR, PARAMETERS, check
from vcrf.arguments.recipes import NAMES, Recipe, is_open
from vcrf.classes import WordClasses
from vcrf.complexity.features import FeatureComplexities
from vcrf.decoding.constraints import Constraints
from vcrf.errors import InputError
from vcrf.families import Family, Text, default_families, explicit_families, paper_families
from vcrf.families.explicit import AttributeText
from vcrf.labelling.tagger import Tagger
from vcrf.losses import Loss, get_loss
from vcrf.model import Model
from vcrf.model.build import build_model
from vcrf.penalties import DEFAULT_POWER, NORMS, FamilyPenalty, check_norm
from vcrf.problem import Components, KnownLabels, Problem, components_of_labels, learn_known_labels
from vcrf.scratch import read_size
from vcrf.solvers.result import Callback
from vcrf.surrogates.choice import SMOOTH
from vcrf.types import Floats, Label, UInts8, UInts32


class SequenceEstimator(Tagger, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """A tagger with parameters that learns. A subclass sets `classes_` and `model_` in `fit`."""

    _fitted_counts: ClassVar[tuple[str, ...]] = ()  # fitted attributes that a model file must have

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one file, which `vcrf.load` reads (see docs/model_file.md).

        The file holds the model, the facts of its training and the parameters; those that are objects of the
        user (a callback) are left out. It is written whole or not at all.

        Raises
        ------
        NotFittedError
            Before `fit`.
        InputError
            When the path cannot be a file, or the model reads attributes with a class that is not vcrf's own.
        OSError
            When writing fails; an old file is then as it was.
        """
        from vcrf.estimators.file import save

        save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags


class TrainingData(NamedTuple):
    """What fitting needs of the data, whatever the strengths."""

    problem: Problem
    classes: list[Label]
    complexities: Floats  # of families; means, if features have their own
    features: FeatureComplexities | None
    surrogate: Any  # see `VCRF._surrogate`
    build: Callable[..., Model] = build_model  # from a solution to a model


def _unknown(kind: str, name: str, known: list[str]) -> str:
    if name in ("c1", "c2"):
        meant = "Its strength is `base_strength` and its form `norm`; vcrf.compat.CRF has c1 and c2, as CRFsuite"
    elif close := get_close_matches(name, known):
        meant = f"Did you mean {' or '.join(f'`{match}`' for match in close)}?"
        return f"{kind} has no parameter `{name}`. {meant}"
    else:
        meant = f"It has {', '.join(known)}"
    return f"{kind} has no parameter `{name}`. {meant}."


class Parameters(SequenceEstimator):
    """The parameters of `VCRF`, which documents them, and what is left open among them settled."""

    _fitted_counts = ("n_candidates_", "n_columns_")
    _kind = "crf"  # name of the surrogate
    _recipes = recipes.CRF

    def __new__(cls, *_: Any, **given: Any) -> Any:
        """Refuse what is no parameter, naming what may have been meant."""
        known = inspect.signature(cls.__init__).parameters
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
            for name in given.keys() - known.keys():
                raise TypeError(_unknown(cls.__name__, name, [key for key in known if key != "self"]))
        return super().__new__(cls)

    def __init__(
        self,
        *,
        recipe: str = "accurate",
        families: str | Sequence[Family] = "default",
        words: int | None = None,
        tags: int | None = None,
        affix: int | None = None,
        complexity_strength: float | None = None,
        base_strength: float | None = None,
        norm: str | None = None,
        norms: Mapping[str, str] | None = None,
        power: float | None = None,
        l1_ratio: float | None = None,
        count_power: float | None = None,
        factors: bool | None = None,
        loss: str | Loss | None = "auto",
        temperature: float | None = None,
        candidates: str = "all",
        complexities: str | Mapping[str, float] = "paper",
        tol: float | None = None,
        max_passes: int | None = None,
        n_jobs: int | None = None,
        patience: int | None = None,
        verbose: bool = False,
        callback: Callback | None = None,
        random_state: int | None = None,
        constraints: str | Sequence[tuple[Label, Label]] | Constraints | None = None,
        inference: str = "auto",
        dual_start: bool = True,
        word_classes: str | os.PathLike[str] | Mapping[str, str] | WordClasses | None = None,
        components: str | Sequence[str] | None = None,
        component_pairs: str | Sequence[str] | None = None,
        known_labels: int | None = None,
        memory: str | int | None = None,
        solver: str = "certified",
        rule: str = "fobos",
        eta: float = 0.01,
        eta_decay: float = 0.0,
        kappa: str = "1",
        radius: float | None = None,
        logarithm: bool = True,
    ) -> None:
        self.recipe = recipe
        self.families = families
        self.words = words
        self.tags = tags
        self.affix = affix
        self.complexity_strength = complexity_strength
        self.base_strength = base_strength
        self.norm = norm
        self.norms = norms
        self.power = power
        self.l1_ratio = l1_ratio
        self.count_power = count_power
        self.factors = factors
        self.loss = loss
        self.temperature = temperature
        self.candidates = candidates
        self.complexities = complexities
        self.tol = tol
        self.max_passes = max_passes
        self.n_jobs = n_jobs
        self.patience = patience
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state
        self.constraints = constraints
        self.inference = inference
        self.dual_start = dual_start
        self.word_classes = word_classes
        self.components = components
        self.component_pairs = component_pairs
        self.known_labels = known_labels
        self.memory = memory
        self.solver = solver
        self.rule = rule
        self.eta = eta
        self.eta_decay = eta_decay
        self.kappa = kappa
        self.radius = radius
        self.logarithm = logarithm

    def _check_parameters(self) -> None:
        """Refuse values that a parameter does not take; what depends on the data is checked where it is used."""
        for parameter in ESTIMATOR:
            check(parameter.name, getattr(self, parameter.name))
        if self.memory is not None:
            read_size(self.memory)
        if not self.logarithm and self._kind not in ("structboost", "exponential"):
            raise InputError(
                f"`logarithm=False` is for structboost and exponential, not for {self._kind}: leave it out."
            )
        self._check_norms()
        if self.solver == "certified":
            return
        if self._kind != "crf":
            raise InputError(
                f"`solver={self.solver!r}` is written for crf, not for {self._kind}: use `solver='certified'`."
            )
        if self._form()["norm"] != "l1":
            raise InputError(
                f"`solver={self.solver!r}` needs `norm='l1'` or `recipe='paper'`, got {self._form()['norm']!r}."
            )

    def _check_norms(self) -> None:
        """Refuse norms that cannot be combined with what else is asked for."""
        if self.norms is not None and not isinstance(self.norms, Mapping):
            raise InputError(f"`norms` must be {PARAMETERS['norms'].kind.expected}, got {self.norms!r}.")
        norm, power = self._form()["norm"], self._power
        check_norm(norm, self._value("l1_ratio"), power)
        if self.power is not None and norm not in ("lp", "family") and "lp" not in (self.norms or {}).values():
            raise InputError(f"`power` is of `norm='lp'` and 'family', not of {norm!r}: leave it out.")
        is_separable = norm not in ("group", "family")
        asked = {"norms": self.norms, "radius": self.radius}
        for name in [name for name, value in asked.items() if value is not None]:
            if not is_separable:
                raise InputError(f"`{name}` needs a norm of single weights, not `norm={norm!r}`: use one of {NORMS}.")
        if self.norms is not None:
            for family, name in self.norms.items():
                if name not in NORMS:
                    raise InputError(f"`norms`: that of {family!r} must be one of {', '.join(NORMS)}, got {name!r}.")
                check_norm(name, self._value("l1_ratio"), power)
        is_new = norm in ("lp", "family") or self.norms is not None or self.radius is not None
        what = "norms" if self.norms is not None else "radius" if self.radius is not None else f"norm={norm!r}"
        if is_new and self._kind not in SMOOTH:
            raise InputError(f"`{what}` is not there for {self._kind}: use l1, l2, elastic or group, or crf.")
        if is_new and self.solver != "certified":
            raise InputError(f"`{what}` is not there with `solver={self.solver!r}`: use `solver='certified'`.")
        if norm == "family" and self.complexities == "feature":
            raise InputError("`norm='family'` has one strength a family: use other `complexities` than 'feature'.")
        if norm == "family" and (self.components is not None or self.component_pairs is not None):
            raise InputError("`components` are not there with `norm='family'`: leave them out, or use norm='elastic'.")

    @property
    def _power(self) -> float:
        """The p of the norms that have one."""
        if self.power is not None:
            return float(self.power)
        return 2.0 if self._form()["norm"] == "family" else DEFAULT_POWER

    def _families(self, text: Text) -> list[Family]:
        limits = {"words": self.words, "tags": self.tags, "affix": self.affix}
        given = {name: limit for name, limit in limits.items() if limit is not None}
        if not isinstance(self.families, str):
            _check_no_limits(given, "a list of families")
            if not _is_family_list(self.families):
                raise InputError(f"`families` must be {PARAMETERS['families'].kind.expected}, got {self.families!r}.")
            return list(self.families)
        if isinstance(text, AttributeText):
            if self.families == "paper":
                raise InputError(
                    "`families='paper'` reads words and affixes off tokens: expected tokens as str, got given "
                    "attributes. Pass lists of str, or `families='default'`."
                )
            tags = given.pop("tags", 2)
            _check_no_limits(given, "given attributes")
            return explicit_families(text, tags)
        return default_families(**given) if self.families == "default" else paper_families(**given)

    def _components(self, classes: list[Label]) -> Components | None:
        """The components of the labels, if features of them are asked for."""
        if self.components is None and self.component_pairs is None:
            return None
        asked = "components" if self.components is not None else "component_pairs"
        if self._form()["norm"] == "group" or self._kind not in SMOOTH:
            what = "`norm='group'`" if self._kind in SMOOTH else f"`surrogate='{self._kind}'`"
            raise InputError(f"`{asked}` are not there with {what}. Leave them out, or use norm='elastic' and crf.")
        if self.component_pairs is not None and self.solver != "certified":
            raise InputError(
                f"`component_pairs` are not there with `solver={self.solver!r}`: use `solver='certified'`."
            )
        if isinstance(self.complexities, str) and self.complexities != "paper":
            raise InputError(
                f"`complexities={self.complexities!r}` counts tag patterns alone: with `{asked}` use 'paper', or a "
                "number for each family."
            )
        names, pairs = (_names_of(name, getattr(self, name)) for name in ("components", "component_pairs"))
        chosen = names if self.components is not None else pairs
        return components_of_labels(classes, chosen, pairs)

    def _known_labels(self, text: Text, y: UInts32, n_labels: int, allowed: UInts8 | None) -> KnownLabels | None:
        """The labels that words may have, if the parameter asks for it."""
        if self.known_labels is None:
            return None
        for name, is_other in (
            (f"norm={self._form()['norm']!r}", self._form()["norm"] in ("group", "family")),
            (f"solver={self.solver!r}", self.solver != "certified"),
            (f"surrogate='{self._kind}'", self._kind not in SMOOTH),
            (f"inference={self.inference!r}", self.inference != "auto"),
        ):
            if is_other:
                raise InputError(f"`known_labels` are not there with `{name}`. Leave one of them out.")
        return learn_known_labels(text, y, n_labels, self.known_labels, allowed)

    @property
    def _recipe(self) -> Recipe:
        return self._recipes[self.recipe]

    def _value(self, name: str, n_sentences: int = 1) -> Any:
        """What is in force of a parameter; of `base_strength` for a number of sentences."""
        given = getattr(self, name)
        return self._recipe.value(name, n_sentences) if is_open(name, given) else given

    def _in_force(self, n_sentences: int) -> dict[str, Any]:
        """The parameters that the recipe is about, none of them left open."""
        return {name: self._value(name, n_sentences) for name in NAMES}

    def _warn_of_idle_complexities(self) -> None:
        """A choice of complexities is multiplied by a strength that is 0 unless given; `path` and `tune` give it."""
        is_chosen = not isinstance(self.complexities, str) or self.complexities != "paper"
        if is_chosen and self.complexity_strength is None:
            warnings.warn(
                "`complexities` are what `complexity_strength` multiplies, which is 0 unless given: they do not change "
                "this training. Pass `complexity_strength`, or choose it by `tune`.",
                stacklevel=4,
            )

    def _form(self) -> dict[str, Any]:
        """The form of the penalty."""
        return {name: self._value(name) for name in ("norm", "l1_ratio", "count_power")}

    def _penalty(self, data: TrainingData) -> FamilyPenalty:
        form, problem = self._form() | {"power": self._power}, data.problem
        if self.norms is not None:
            form["norm"] = self._norms(problem.families)
        in_force = self._in_force(problem.text.n_sentences)
        base, complexity = in_force["base_strength"], in_force["complexity_strength"]
        strengths, features = base * self._factors(problem), data.features
        if features is None or complexity == 0.0:
            return FamilyPenalty.from_strengths(complexity * data.complexities + strengths, **form)
        own = complexity * features.factors, features.sizes, features.mean_sizes
        return FamilyPenalty.from_strengths(strengths, **form, own=own)

    def _norms(self, families: list[Family]) -> list[str]:
        """The norm of each family."""
        given, names = self.norms or {}, {family.name for family in families}
        unknown = sorted(set(given) - names)
        if unknown:
            raise InputError(
                f"`norms`: there is no family {unknown[0]!r}; the families are {', '.join(sorted(names))}."
            )
        return [given.get(family.name, self._form()["norm"]) for family in families]

    def _factors(self, problem: Problem) -> Floats:
        """What `base_strength` is multiplied by, (n_families,)."""
        is_used = self._value("factors")
        return np.array([family.factor if is_used else 1.0 for family in problem.families])

    def _surrogate(self, problem: Problem, classes: list[Label]) -> Any:
        """What is minimised, with its loss, as the solver takes it."""
        from vcrf.surrogates.choice import choose

        return choose(problem, self._kind, self._loss(classes), self.logarithm)

    def _loss(self, classes: list[Label]) -> Loss | None:
        loss = get_loss(self._value("loss"))
        return None if loss is None else loss.for_labels(classes)


def _names_of(parameter: str, given: Any) -> list[str] | None:
    """Names of components; None for all of them."""
    if given is None:
        return []
    names = given.split(",") if isinstance(given, str) else list(given) if isinstance(given, Iterable) else []
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise InputError(f"`{parameter}` must be {PARAMETERS[parameter].kind.expected}, got {given!r}.")
    return None if names == ["all"] else [name.strip() for name in names]


def _is_family_list(value: object) -> bool:
    return isinstance(value, Iterable) and all(isinstance(family, Family) for family in value)


def _check_no_limits(given: dict[str, int], what: str) -> None:
    if given:
        raise InputError(
            f"{', '.join(f'`{name}`' for name in sorted(given))} limit a preset that reads tokens and mean nothing "
            f"for {what}. Leave them out."
        )
