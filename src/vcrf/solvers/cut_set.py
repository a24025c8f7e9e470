"""The outputs that cutting planes have found, with what each says of the objective."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vcrf.structures.outputs import Mixture, Outputs
from vcrf.types import Floats, Ints


@dataclass
class Cuts:
    """Outputs found, sorted by example, each with its loss (intercept), slope, multiplier and age."""

    outputs: Outputs = field(default_factory=lambda: Outputs.of(np.zeros(0, np.int64), []))
    intercept: Floats = field(default_factory=lambda: np.zeros(0))
    slope: Floats = field(default_factory=lambda: np.zeros(0))
    lam: Floats = field(default_factory=lambda: np.zeros(0))
    age: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return self.outputs.n

    @property
    def mixture(self) -> Mixture:
        """The outputs with the shares that the multipliers give them."""
        return Mixture(self.outputs, self.lam * self.slope)

    def take(self, which: Ints) -> Cuts:
        """Some of them."""
        intercept, slope, lam = (x[which] for x in (self.intercept, self.slope, self.lam))
        return Cuts(self.outputs.take(which), intercept, slope, lam, self.age[which])

    def plus(self, outputs: Outputs, intercept: Floats, slope: Floats) -> Cuts:
        """These and new ones without multipliers, sorted by example."""
        joined = Cuts(
            self.outputs.plus(outputs),
            np.concatenate([self.intercept, intercept]),
            np.concatenate([self.slope, slope]),
            np.concatenate([self.lam, np.zeros(outputs.n)]),
            np.concatenate([self.age, np.zeros(outputs.n, np.int64)]),
        )
        return joined.take(np.argsort(joined.outputs.example, kind="stable"))
