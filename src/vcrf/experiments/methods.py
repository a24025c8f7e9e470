"""What is compared: a method is a name, an estimator and its parameters. Strengths come from the grid."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vcrf.arguments.recipes import form_of
from vcrf.errors import InputError

if TYPE_CHECKING:
    from vcrf.estimators import VCRF

# Given by the protocol, the same for all methods.
_RESERVED = ("complexity_strength", "base_strength", "tol", "max_passes", "n_jobs", "callback", "verbose", "patience")


# What a method makes of a point of the grid, with the mean complexity; "" takes it as it is.
CONTROLS = ("", "uniform", "ties")
# Complexities that decide between twins and change nothing else.
_TIE = 1e-6


@dataclass(frozen=True)
class Method:
    """A row of the tables.

    Attributes
    ----------
    name : how the tables call it
    estimator : a class of `vcrf`
    parameters : sorted pairs of its parameters that are not the default
    control : "uniform": the point's mean strength for all families alike; "ties": the same, and of twins the one of
        the simplest family carries the weight; "" for neither
    """

    name: str
    estimator: str
    parameters: tuple[tuple[str, Any], ...]
    control: str = ""

    @classmethod
    def of(cls, name: str, estimator: str = "VCRF", **parameters: Any) -> Method:
        """Make a method; parameters that are None are left out."""
        return cls(name, estimator, tuple(sorted((key, v) for key, v in parameters.items() if v is not None)))

    def strengths(self, complexity_strength: float, base_strength: float, mean: float) -> tuple[float, float]:
        """Complexity and base strength at a point of the grid; `mean` is the mean complexity.

        Without a complexity strength there is nothing to control.
        """
        if not self.control or complexity_strength == 0.0:
            return complexity_strength, base_strength
        level = complexity_strength * mean + base_strength
        return (_TIE * level if self.control == "ties" else 0.0), level

    def build(self, complexity_strength: float, base_strength: float, tol: float, max_passes: int | None) -> VCRF:
        """The estimator at a point of the grid, with one thread."""
        return self._class()(
            **dict(self.parameters),
            complexity_strength=complexity_strength,
            base_strength=base_strength,
            tol=tol,
            max_passes=max_passes,
            n_jobs=1,
        )

    def check(self) -> None:
        """Raise InputError unless there is such an estimator, with such parameters, that takes their values."""
        if self.control not in CONTROLS:
            raise InputError(f"Method {self.name!r}: expected control=uniform or control=ties, got {self.control!r}.")
        known = self._class()().get_params()
        for key, _ in self.parameters:
            if key not in known or key in _RESERVED:
                raise InputError(
                    f"Method {self.name!r}: {self.estimator} has no parameter {key!r} to set here. Expected one of "
                    f"{', '.join(sorted(set(known) - set(_RESERVED)))}."
                )
        # Two words show what all tasks would say one by one. Constraints are apart: they speak of the data's labels.
        made = self.build(0.0, 1.0, tol=1e-3, max_passes=1).set_params(constraints=None)
        try:
            made._penalty(made._read([["a", "b"]], [["A", "B"]], None))
        except InputError as error:
            raise InputError(f"Method {self.name!r}: {error}") from error

    def _class(self) -> type[VCRF]:
        import vcrf
        from vcrf.estimators import VCRF

        found = getattr(vcrf, self.estimator, None) if self.estimator in vcrf.__all__ else None
        if not (isinstance(found, type) and issubclass(found, VCRF)):
            raise InputError(f"Method {self.name!r}: this version of vcrf has no estimator {self.estimator!r}.")
        return found

    def describe(self) -> str:
        """The call, for people."""
        control = f", control: {self.control}" if self.control else ""
        return f"{self.estimator}({', '.join(f'{key}={value!r}' for key, value in self.parameters)}){control}"

    def to_json(self) -> dict[str, Any]:
        """What decides the results; the name does not."""
        return {"estimator": self.estimator, "parameters": dict(self.parameters), "control": self.control}


def known_methods(words: int, tags: int, affix: int, **trainer: Any) -> dict[str, Method]:
    """Methods by name. Limits are those of the paper's families; `trainer` are further parameters of all methods."""
    # All methods are solved to the gap of the protocol: the paper's recipe aims at no smaller one. "default" has the
    # values of the other recipe.
    recipe: dict[str, Any] = {"recipe": "paper"} | trainer
    paper = recipe | {"families": "paper", "words": words, "tags": tags, "affix": affix, "norm": "l1"}
    methods = [
        Method.of("paper", **paper),
        replace(Method.of("uniform", **paper), control="uniform"),
        replace(Method.of("ties", **paper), control="ties"),
        Method.of("hamming", **paper, loss="hamming"),
        Method.of("order3", **{**paper, "tags": 3}),
        Method.of("default", **recipe, families="default", **form_of("accurate")),
        Method.of("default-l1", **recipe, families="default", norm="l1"),
        Method.of("structboost", "VStructBoost", **paper, loss="hamming"),
        Method.of("m3n", "M3N", **paper, loss="hamming"),
        Method.of("structsvm", "StructSVM", **paper, loss="hamming"),
    ]
    return {method.name: method for method in methods}


def chosen_methods(names: Iterable[str], known: Mapping[str, Method]) -> list[Method]:
    """The methods asked for: known names, or new ones as `NAME=KNOWN KEY=VALUE ...`.

    >>> chosen_methods(["order4=paper tags=4"], known_methods(1, 2, 3))[0].describe()
    "VCRF(affix=3, families='paper', norm='l1', recipe='paper', tags=4, words=1)"
    """
    chosen: dict[str, Method] = {}
    for text in names:
        method = _parsed(text, known)
        if method.name in chosen:
            raise InputError(f"Method {method.name!r} is given twice. Give one of them another name.")
        method.check()
        chosen[method.name] = method
    if not chosen:
        raise InputError(f"There is no method to run: expected some of {', '.join(known)}.")
    return list(chosen.values())


def _parsed(text: str, known: Mapping[str, Method]) -> Method:
    head, *settings = text.split() or [""]
    name, _, base = head.partition("=")
    if (base or name) not in known or not name:
        raise InputError(
            f"Unknown method {base or name!r}: expected one of {', '.join(known)}, or a new one as "
            "'NAME=METHOD KEY=VALUE ...', for instance 'order4=paper tags=4'."
        )
    origin = known[base or name]
    parameters = dict(origin.parameters) | {"control": origin.control}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"Method {name!r}: expected KEY=VALUE, got {setting!r}.")
        parameters[key] = _value(value)
    estimator, control = str(parameters.pop("estimator", origin.estimator)), str(parameters.pop("control") or "")
    return replace(Method.of(name, estimator, **parameters), control=control)


def _value(text: str) -> Any:
    """A number, true, false or null as in JSON; anything else is a string."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
