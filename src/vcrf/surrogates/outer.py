"""Outer functions: how the values f_i of the sentences become one objective, and what each counts in its gradient.

    mean      F = sum_i v_i f_i                        shares v_i
    log-mean  F = log(rest + sum_i v_i exp(f_i))       shares v_i exp(f_i - F)
    mean-exp  F = sum_i v_i exp(f_i) - rest            shares v_i exp(f_i)

The log-mean takes the logarithm of 1 + the paper's objective. It is increasing, so that the path of solutions is the
same; nothing overflows; and, unlike the logarithm of the objective alone, it is not negative, so that a minimum exists
for every positive strength and the certificate of `solvers.certificate` holds. The mean-exp is the paper's objective
itself: at w = 0 it is as large as there are outputs, so that one long sentence outweighs all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from vcrf.errors import BudgetError
from vcrf.problem import Candidates
from vcrf.types import Floats


class Outer(Protocol):
    """A convex, increasing function of the values of the sentences."""

    @property
    def is_linear(self) -> bool:
        """Whether the shares are the weights, whatever the values: one sweep does."""

    def __call__(self, values: Floats, weights: Floats) -> tuple[float, Floats]:
        """Value, and the share of each sentence: the derivative by its value."""

    def mass(self, problem: Candidates) -> Floats:
        """Largest |gradient| that a feature of each column can have, whatever the weights."""


@dataclass(frozen=True)
class Mean:
    """The weighted mean."""

    is_linear = True

    def __call__(self, values: Floats, weights: Floats) -> tuple[float, Floats]:
        return float(weights @ values), weights

    def mass(self, problem: Candidates) -> Floats:
        """That of the column: the marginal and the truth both lie in [0, 1]."""
        return problem.column_mass


@dataclass(frozen=True)
class LogMean:
    """The log of `rest` + the weighted sum of exp(value); shares sum to 1 at the most.

    `rest` is what stands for the 1. Where exp(f_i) has it in each sentence, it is what the weights lack of the sum 1.
    """

    is_in_values: bool
    is_linear = False

    def rest(self, weights: Floats) -> float:
        """What is added to the weighted sum."""
        if not self.is_in_values:
            return 1.0
        rest = 1.0 - float(weights.sum())
        return rest if abs(rest) > 1e-12 else 0.0

    def __call__(self, values: Floats, weights: Floats) -> tuple[float, Floats]:
        rest = self.rest(weights)
        with np.errstate(divide="ignore"):
            terms = values + np.log(weights)
        peak = max(float(terms.max(initial=-np.inf)), 0.0 if rest else -np.inf)
        total = rest * np.exp(-peak) + float(np.exp(terms - peak).sum())
        # Not negative, but for rounding.
        value = max(peak + float(np.log(total)), 0.0)
        return value, np.exp(terms - value)

    def mass(self, problem: Candidates) -> Floats:
        """Its largest mass in one example."""
        columns = problem.columns
        size = np.abs(columns.values) if len(columns.values) else np.ones(len(columns.positions))
        if not len(size):
            return np.zeros(len(columns))
        number = problem.example_of[columns.positions]
        column = np.repeat(np.arange(len(columns)), np.diff(columns.ptr))
        begins = np.flatnonzero(np.concatenate([[True], (np.diff(number) != 0) | (np.diff(column) != 0)]))
        out = np.zeros(len(columns))
        np.maximum.at(out, column[begins], np.add.reduceat(size, begins))
        return out


@dataclass(frozen=True)
class MeanExp:
    """The weighted sum of exp(value), less that of the 1 which each of them has if it `is_in_values`."""

    is_in_values: bool
    is_linear = False

    def __call__(self, values: Floats, weights: Floats) -> tuple[float, Floats]:
        with np.errstate(over="ignore"):
            shares = weights * np.exp(values)
            value = float(weights @ np.expm1(values)) if self.is_in_values else float(shares.sum())
        if not np.isfinite(value):
            raise BudgetError(
                "The sum over label sequences is beyond double precision: sentences are too long for "
                "`logarithm=False`, or strengths too small. Use `logarithm=True`, which has the same path of solutions."
            )
        return max(value, 0.0), shares

    def mass(self, problem: Candidates) -> Floats:
        """Nothing bounds it: shares grow with the values."""
        return np.full(len(problem.columns), np.inf)
