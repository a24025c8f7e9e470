"""A vectorised exponential: the compiled loops spend a good part of their time in exp."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_kernel
from vcrf.types import Floats, UInts64

_LOG2E = 1.4426950408889634
_LN2_HIGH = 0.6931471803691238
_LN2_LOW = 1.9082149292705877e-10
# Adding 1.5 * 2**52 rounds to an integer and leaves it in the low bits of the mantissa.
_ROUND = 6755399441055744.0
_BIAS = np.uint64(1023)
_SHIFT = np.uint64(52)


@inner_kernel
def exp_inplace(x: Floats, bits: UInts64, power: Floats) -> None:
    """X <- exp(x) for x in [-700, 700]; `power` is a view of `bits` as float64, both scratch of x's length.

    exp(x) = 2**n exp(r), |r| <= log(2)/2, Taylor to degree 13 (relative error below 1e-15).
    """
    for i in range(len(x)):
        power[i] = x[i] * _LOG2E + _ROUND
    for i in range(len(x)):
        n = power[i] - _ROUND
        r = (x[i] - n * _LN2_HIGH) - n * _LN2_LOW
        p = 1.6059043836821613e-10
        p = p * r + 2.08767569878681e-09
        p = p * r + 2.505210838544172e-08
        p = p * r + 2.755731922398589e-07
        p = p * r + 2.7557319223985893e-06
        p = p * r + 2.48015873015873e-05
        p = p * r + 0.0001984126984126984
        p = p * r + 0.001388888888888889
        p = p * r + 0.008333333333333333
        p = p * r + 0.041666666666666664
        p = p * r + 0.16666666666666666
        p = p * r + 0.5
        p = p * r + 1.0
        x[i] = p * r + 1.0
    for i in range(len(x)):
        bits[i] = (bits[i] + _BIAS) << _SHIFT
    for i in range(len(x)):
        x[i] *= power[i]
