"""The end of a run that nothing but more steps could bring closer to its certificate, and they hardly move.

CRFsuite's rule: stop when so many steps have decreased the objective by less than a share of it. Its steps are on all
features at once. Here a round that becomes slow ends, a scan adds what else is violated, and the run ends with a round
that is slow from its beginning.
"""

from __future__ import annotations

_PERIOD = 10


class Settling:
    """Looks at the objective after each step.

    Attributes
    ----------
    share : of the objective; 0 never ends a run
    """

    def __init__(self, share_of_hundred: float) -> None:
        self.share = share_of_hundred * _PERIOD / 100.0
        self._objectives: list[float] = []

    def begin_round(self, objective: float) -> None:
        """Steps on another working set."""
        self._objectives = [objective]

    def is_slow(self, objective: float) -> bool:
        """Whether the last steps of this round decreased the objective by too little; to be asked after each."""
        self._objectives.append(objective)
        return len(self._objectives) > _PERIOD and self._decrease(_PERIOD) < self.share

    @property
    def is_over(self) -> bool:
        """Whether the whole round was that slow."""
        n_steps = len(self._objectives) - 1
        return n_steps >= _PERIOD and self._decrease(n_steps) < self.share * n_steps / _PERIOD

    def _decrease(self, n_steps: int) -> float:
        """Of so many last steps, as a share of the objective."""
        last = self._objectives[-1]
        return (self._objectives[-1 - n_steps] - last) / max(last, 1e-300)
