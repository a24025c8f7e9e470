"""Edit distance: the least cost of turning the candidate into the reference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from vcrf.errors import InputError
from vcrf.losses.alternatives import Alternatives
from vcrf.losses.automaton import LossAutomaton
from vcrf.losses.hamming import token_share
from vcrf.losses.loss import Loss
from vcrf.types import Floats, Ints

_ADVICE = "Use a narrower band (band=1), a cap (cap=3), costs that are multiples of one number, or raise max_states."


@dataclass(frozen=True, eq=False)
class EditLoss(Loss):
    """Least cost of deleting, inserting and substituting labels so that the candidate becomes the reference.

    After i labels of the candidate and j of the reference,

        D[i, j] = min(D[i-1, j] + deletion(y_i), D[i, j-1] + insertion(y_true_j), D[i-1, j-1] + substitution)

    The automaton of the full distance grows exponentially with the length. With `band`, only cells |i - j| <= band
    count: at least the distance, at most the Hamming loss, and equal to the distance up to 2 band + 1 unit edits.
    With `cap`, min(distance, cap).

    Parameters
    ----------
    insertion, deletion : float or (n_labels,) array
    substitution : float or (n_labels, n_labels) array, substitution[candidate, reference]
        Equal labels cost nothing.
    band : int or None
        None is the full distance.
    cap : float, optional
    normalised : bool
        Divide by the length of the reference.
    max_states : int
        Budget of the automaton before it is made minimal.
    """

    insertion: Any = 1.0
    deletion: Any = 1.0
    substitution: Any = 1.0
    band: Any = 1
    cap: float | None = None
    normalised: bool = False
    max_states: int = 50_000

    def __post_init__(self) -> None:
        if self.band is not None and (not isinstance(self.band, int | np.integer) or self.band < 0):
            raise InputError(
                f"band must be an integer of at least 0, or None for the full distance; got {self.band!r}."
            )
        if self.cap is not None and not (np.isfinite(self.cap) and self.cap > 0):
            raise InputError(f"cap must be a positive number or None, got {self.cap!r}.")
        self._costs(self._known_labels() or 2)

    @cached_property
    def is_symmetric(self) -> bool:  # type: ignore[override]
        """Whether all labels cost the same."""
        return self._known_labels() is None

    def _bound(self, length: int, n_labels: int) -> float:
        """M: substituting everything, or deleting and inserting it, or the cap."""
        if n_labels < 2:
            return 0.0
        insertion, deletion, substitution = self._costs(n_labels)
        token = float(substitution.max())
        if self.band != 0:
            token = min(token, float(insertion.max() + deletion.max()))
        total = token * length if self.cap is None else min(token * length, self.cap)
        return total * token_share(length, self.normalised)

    def _known_labels(self) -> int | None:
        # Single numbers serve any number of labels.
        sizes = {len(cost) for cost in (self.insertion, self.deletion, self.substitution) if np.ndim(cost)}
        if len(sizes) > 1:
            raise InputError(f"The edit costs are for different numbers of labels: {sorted(sizes)}.")
        return sizes.pop() if sizes else None

    def _costs(self, n_labels: int) -> tuple[Floats, Floats, Floats]:
        """Insertion (n_labels,), deletion (n_labels,), substitution (candidate, reference)."""
        insertion = _spread("insertion", self.insertion, (n_labels,))
        deletion = _spread("deletion", self.deletion, (n_labels,))
        substitution = _spread("substitution", self.substitution, (n_labels, n_labels)).copy()
        if np.ndim(self.substitution) == 0:
            np.fill_diagonal(substitution, 0.0)
        if np.diag(substitution).any():
            raise InputError("Equal labels must cost 0: the diagonal of substitution is not 0.")
        return insertion, deletion, substitution

    def _check_lengths(self, y: Ints, y_true: Ints) -> None:
        if self.band is not None and abs(len(y) - len(y_true)) > self.band:
            raise InputError(
                f"Sequences of {len(y)} and {len(y_true)} labels cannot be compared inside band={self.band}. "
                "Use band=None."
            )

    def _value(self, y: Ints, y_true: Ints) -> float:
        n_labels = self._known_labels()
        if n_labels is None:  # number those that occur, however large the numbers are
            present, numbers = np.unique(np.concatenate([y, y_true]), return_inverse=True)
            n_labels, y, y_true = max(len(present), 1), numbers[: len(y)], numbers[len(y) :]
        distance = edit_distance(y, y_true, *self._costs(n_labels), self.band)
        capped = distance if self.cap is None else min(distance, self.cap)
        return capped * token_share(len(y_true), self.normalised)

    def _automaton(self, y_true: Ints, n_labels: int) -> LossAutomaton:
        length = len(y_true)
        width = length if self.band is None else min(self.band, length)
        built = _column_automaton(y_true, n_labels, self._costs(n_labels), width, self.cap)
        return built.build(self.max_states, _ADVICE).scaled(token_share(length, self.normalised))


def edit_distance(
    y: Ints, y_true: Ints, insertion: Floats, deletion: Floats, substitution: Floats, band: int | None
) -> float:
    """Edit distance by dynamic programming over columns; O(len(y)) numpy operations."""
    inserted = np.concatenate([[0.0], np.cumsum(insertion[y_true])])  # of the first j labels
    at = np.arange(len(y_true) + 1)
    column = np.where(at <= (len(y_true) if band is None else band), inserted, np.inf)
    for i, label in enumerate(y.tolist(), start=1):
        moved = column + deletion[label]
        moved[1:] = np.minimum(moved[1:], column[:-1] + substitution[label, y_true])
        if band is not None:
            moved[np.abs(at - i) > band] = np.inf
        # min over k <= j of moved[k] + the cost of inserting labels k+1 .. j
        column = np.minimum.accumulate(moved - inserted) + inserted
        if band is not None:
            column[np.abs(at - i) > band] = np.inf
    return float(column[-1])


def _column_automaton(
    y_true: Ints, n_labels: int, costs: tuple[Floats, Floats, Floats], width: int, cap: float | None
) -> Alternatives:
    """Nodes d = 0 .. 2 width: the cell j = t + d - width of the column after t labels; the last node is the cap."""
    insertion, deletion, substitution = costs
    length, n_nodes = len(y_true), 2 * width + 2
    start, final = np.full(n_nodes, np.inf), np.full(n_nodes, np.inf)
    start[width], final[width] = 0.0, 0.0
    columns = Alternatives(length, n_labels, start, final)
    t, b, d = np.ogrid[:length, :n_labels, : 2 * width + 1]
    j, group = t + d - width, t * n_labels + b
    following = np.concatenate([y_true, [0]])  # the label after j labels of the reference
    is_cell = (j >= 0) & (j <= length) & (b >= 0)
    columns.reading.add(group, d, d - 1, deletion[b], is_cell & (d > 0))
    columns.reading.add(group, d, d, substitution[b, following[np.clip(j, 0, length)]], is_cell & (j < length))
    t, d = np.ogrid[: length + 1, : 2 * width]
    j = t + d - width
    columns.silent.add(t, d, d + 1, insertion[following[np.clip(j, 0, length)]], (j >= 0) & (j < length))
    if cap is not None:
        start[-1], final[-1] = cap, 0.0
        groups = np.arange(length * n_labels)
        columns.reading.add(groups, n_nodes - 1, n_nodes - 1, 0.0, groups >= 0)
    return columns


def _spread(name: str, cost: Any, shape: tuple[int, ...]) -> Floats:
    values = np.asarray(cost, np.float64)
    if values.ndim and values.shape != shape:
        raise InputError(f"{name} must be a number or an array of shape {shape}, got shape {values.shape}.")
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError(f"{name} must be finite and at least 0, got {values[~(np.isfinite(values) & (values >= 0))]}.")
    return np.broadcast_to(values, shape)
