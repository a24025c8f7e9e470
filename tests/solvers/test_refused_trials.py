"""Line searches: a trial that is beyond the budget of memory shortens the step, and only that."""

from __future__ import annotations

import numpy as np
import pytest

from vcrf import VCRF
from vcrf.errors import BudgetError
from vcrf.solvers.newton_phase import NewtonPhase
from vcrf.surrogates.smooth import SmoothObjective

X = [["a", "b", "ab", "a"], ["b", "a", "b"], ["ab", "ba", "a", "b", "a"], ["ba"], ["a", "a", "b"]]
Y = [["A", "B", "C", "A"], ["B", "A", "C"], ["C", "A", "A", "B", "B"], ["B"], ["A", "C", "B"]]
RUNS = [("l1", 0.002, 2), ("elastic", 0.0005, 3), ("group", 0.005, 3)]


class Budget:
    """Passes at larger weights than the limit are refused; a refusal may lead to the next limit."""

    def __init__(self, monkeypatch):
        self.limit, self.largest, self.n_refused = np.inf, 0.0, 0
        self.next_limit: float | None = None
        evaluate = SmoothObjective.at

        def checked(objective, plan, w, warm=None):
            size = float(np.abs(w).max(initial=0.0))
            self.largest = max(self.largest, size)
            if size > self.limit:
                self.n_refused += 1
                self.limit = self.limit if self.next_limit is None else self.next_limit
                raise BudgetError("too large")
            return evaluate(objective, plan, w, warm)

        monkeypatch.setattr(SmoothObjective, "at", checked)


@pytest.mark.parametrize(("norm", "strength", "tags"), RUNS)
def test_a_refused_trial_shortens_the_step(norm, strength, tags, monkeypatch):
    """The largest trial of a run cannot be evaluated the second time: the optimum is found all the same."""
    budget = Budget(monkeypatch)
    free = VCRF(recipe="paper", tags=tags, norm=norm, base_strength=strength, tol=1e-5, n_jobs=1).fit(X, Y)
    assert budget.largest > 1.1 * float(np.abs(free.result_.weights).max())
    budget.limit = 0.95 * budget.largest
    tagger = VCRF(recipe="paper", tags=tags, norm=norm, base_strength=strength, tol=1e-5, n_jobs=1).fit(X, Y)
    assert budget.n_refused > 0
    assert tagger.status_.name == "CONVERGED"
    assert tagger.objective_ == pytest.approx(free.objective_, rel=2e-5)


def test_a_refused_trial_shortens_a_newton_step(monkeypatch):
    """The first trial of each Newton step cannot be evaluated."""
    budget, step = Budget(monkeypatch), NewtonPhase._step
    n_steps = []

    def refused_once(phase, state, model):
        n_steps.append(1)
        budget.limit = 0.0
        budget.next_limit = np.inf
        return step(phase, state, model)

    free = VCRF(recipe="paper", tags=2, norm="l1", base_strength=0.02, tol=1e-5, n_jobs=1).fit(X, Y)
    monkeypatch.setattr(NewtonPhase, "_step", refused_once)
    tagger = VCRF(recipe="paper", tags=2, norm="l1", base_strength=0.02, tol=1e-5, n_jobs=1).fit(X, Y)
    assert budget.n_refused == len(n_steps) > 0
    assert tagger.status_.name == "CONVERGED"
    assert tagger.objective_ == pytest.approx(free.objective_, rel=2e-5)


@pytest.mark.parametrize("norm", ["l1", "elastic", "group"])
def test_where_no_trial_can_be_evaluated_the_refusal_is_raised(norm, monkeypatch):
    """Not even the shortest step: there is nothing to go on with."""
    Budget(monkeypatch).limit = 0.0
    with pytest.raises(BudgetError, match="too large"):
        VCRF(recipe="paper", tags=2, norm=norm, base_strength=0.005, n_jobs=1).fit(X, Y)
