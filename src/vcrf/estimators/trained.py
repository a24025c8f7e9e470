"""What every estimator that a solver trained can tell of its training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from vcrf.errors import NotFittedError
from vcrf.model import FamilyFacts
from vcrf.solvers.result import IterationRecord, SolverResult, Status


class Trained:
    """Objective, gap and the rest, from `result_` and `model_`, which `fit` sets."""

    result_: SolverResult
    _model: Callable[[], Any]
    _fitted_arrays: ClassVar[dict[str, tuple[type[np.generic], int]]] = {}  # what a model file has of it besides

    @property
    def objective_(self) -> float:
        """Value of the problem at the weights."""
        return self._result().objective

    @property
    def gap_(self) -> float:
        """Certified bound on the objective less the optimum."""
        return self._result().gap

    @property
    def kkt_violation_(self) -> float:
        """Largest violation of the optimality conditions, relative to the feature's strength."""
        return self._result().kkt_violation

    @property
    def n_active_(self) -> int:
        """Number of (merged) features with a weight."""
        return self._result().n_active

    @property
    def history_(self) -> list[IterationRecord]:
        """Records of the solver's rounds."""
        return self._result().history

    @property
    def status_(self) -> Status:
        """Why the solver stopped."""
        return self._result().status

    @property
    def families_(self) -> list[FamilyFacts]:
        """Complexity, strength, size and weight of each family."""
        return list(self._model().families)

    def _check_fitted(self) -> None:
        """Refuse, by InputError, what a model file says of the estimator besides the model and cannot be."""

    def _result(self) -> SolverResult:
        self._model()
        if not hasattr(self, "result_"):
            raise NotFittedError("This tagger was combined from others (`vote`): it has no objective, gap or status.")
        return self.result_
