"""Tests of "the mean of Z is at least 0" against "it is below", for independent Z between -limit and 1 - limit.

Here Z_i = sum over the accepted units of sentence i of (wrong - limit) / (units of the sentence), and the mean of Z is
below 0 if and only if the share of errors among accepted units, averaged over sentences, is below the limit.

Every test takes Z as an array (n_sentences, n_thresholds) and gives one p-value a threshold.
"""

from __future__ import annotations

import math

import numpy as np

from vcrf.types import Floats, Ints

# A bet of 1 could lose everything to one sentence that is wrong throughout.
MOST = 0.95
# Before any sentence is seen: as if so many had been seen, with half the errors that are allowed.
_PRIOR = 20.0


def betting(z: Floats, limit: float) -> Floats:
    """p-value of an e-process (Waudby-Smith and Ramdas 2023), `1 / max_i K_i` by Ville's inequality.

    With X_i = 1 - limit - Z_i in [0, 1] and mu0 = 1 - limit,

        K_i = prod_{j <= i} (1 + bet_j (X_j - mu0) / mu0),      0 <= bet_j < 1

    is a martingale, or falls, if the mean of X is mu0 or less, whatever bets are made from X_1 .. X_{j-1}. Ours are
    Kelly's to the second order: mean over second moment of what was seen.
    """
    mu0 = 1.0 - limit
    gains = -z / mu0  # (X_j - mu0) / mu0, at least -1
    prior = 0.5 * limit / mu0
    first = _PRIOR * prior + _before(gains)
    second = _PRIOR * prior**2 + _before(gains**2)
    bets = np.clip(first / np.maximum(second, 1e-300), 0.0, MOST)
    log_wealth = np.cumsum(np.log1p(bets * gains), axis=0)
    return np.asarray(np.exp(-np.maximum(log_wealth.max(axis=0, initial=0.0), 0.0)))


def _before(values: Floats) -> Floats:
    """Sums of what comes before each row."""
    return np.asarray(np.cumsum(values, axis=0) - values)


def hoeffding_bentkus(z: Floats, limit: float) -> Floats:
    """The plain alternative: the smaller of Hoeffding's and Bentkus' bounds for the mean of Z + limit, in [0, 1]."""
    from scipy.stats import binom

    n = len(z)
    mean = np.clip(z.mean(axis=0) + limit, 0.0, 1.0)
    kl = np.array([divergence(min(float(rate), limit), limit) for rate in mean])
    bentkus = np.e * binom.cdf(np.ceil(n * mean - 1e-9), n, limit)
    return np.asarray(np.minimum(1.0, np.minimum(np.exp(-n * kl), bentkus)))


def binomial(n_wrong: Ints, n_accepted: Ints, limit: float) -> Floats:
    """Exact p-value where a sentence is one unit: P(Bin(n_accepted, limit) <= n_wrong)."""
    from scipy.stats import binom

    return np.asarray(binom.cdf(n_wrong, n_accepted, limit))


def divergence(rate: float, limit: float) -> float:
    """Kullback-Leibler divergence of a coin with one rate from a coin with another."""
    heads = rate * math.log(rate / limit) if rate > 0.0 else 0.0
    return heads + (1.0 - rate) * math.log((1.0 - rate) / (1.0 - limit))
