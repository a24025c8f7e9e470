"""Types used in signatures; the shapes of arrays are given in the docstrings."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Floats32: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
Ints32: TypeAlias = NDArray[np.int32]
UInts32: TypeAlias = NDArray[np.uint32]
UInts64: TypeAlias = NDArray[np.uint64]
UInts8: TypeAlias = NDArray[np.uint8]
Bools: TypeAlias = NDArray[np.bool_]

# What a token is labelled with.
Label: TypeAlias = str | int
