"""The labels of many sentences: a list that scikit-learn can put together again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vcrf.types import Label


class Sequences(list[list[Label]]):
    """A list of lists of labels, which as an array is one of objects, one a sentence.

    `cross_val_predict` joins and permutes such arrays. sklearn_crfsuite 0.5 gives an array itself, so that scripts
    have written `(predicted == y).all()`: a comparison is a numpy truth value, and the only sentence of a list is
    equal to its labels too.
    """

    __hash__ = None  # as of a list

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.object_]:
        array = np.empty(len(self), dtype=object)
        for i, labels in enumerate(self):  # numpy would make a matrix of lists of one length
            array[i] = labels
        return array

    def __eq__(self, other: object) -> Any:
        other = other.tolist() if isinstance(other, np.ndarray) else other
        is_only = len(self) == 1 and isinstance(other, (list, tuple)) and self[0] == list(other)
        return np.bool_(list.__eq__(self, other) is True or is_only)

    def __ne__(self, other: object) -> Any:
        return ~(self == other)

    def tolist(self) -> list[list[Label]]:
        """As a plain list."""
        return list(self)
