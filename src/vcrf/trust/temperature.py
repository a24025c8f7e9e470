"""The calibration temperature: what scores are divided by so that probabilities fit held-out sentences.

With s = 1 / T it minimises the convex function

    f(s) = mean over sentences of  log Z(s * scores) - s * score(true labels)

in which the mean of the first term is one sweep over the sentences. The best labels do not depend on s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from vcrf.decoding.potentials import Potentials
from vcrf.types import Floats, Ints

# Beyond these every probability is nearly uniform, or nearly 0 or 1.
LOWEST, HIGHEST = 0.05, 20.0
# Values of f settle the logarithm of s no better than this: eight digits of f.
_TOLERANCE = 1e-4
# A difference of f that is none.
_NO_LESS = 1e-9


class Sweeps:
    """Log partitions of many sentences at any s.

    Parameters
    ----------
    blocks : potentials of all sentences, in blocks
    scores : (n_sentences,) score of the true labels; -inf where they are impossible
    """

    def __init__(self, blocks: Sequence[Potentials], scores: Floats) -> None:
        self.blocks, self.scores = blocks, scores

    def losses(self, s: float) -> Floats:
        """Negative log likelihood of each sentence at s; infinite where the labels are impossible."""
        log_z = np.concatenate([np.zeros(0), *(block.scaled(s).log_partitions() for block in self.blocks)])
        return np.asarray(np.maximum(log_z - s * self.scores, 0.0))


def best_temperature(sweeps: Sweeps, sentences: Ints) -> float:
    """T with the largest likelihood of some sentences, 1 if there is none.

    There is none where no sentence is possible, and where the likelihood rises, or stays, down to the smallest T: the
    tagger gives the true labels everywhere, as it does of few sentences, and would be made sure of whatever it says.
    """
    kept = sentences[np.isfinite(sweeps.scores[sentences])]
    if not len(kept):
        return 1.0
    part = Sweeps(_taken(sweeps.blocks, kept), sweeps.scores[kept])

    def loss(s: float) -> float:
        return float(part.losses(s).mean())

    best = _minimum(loss, 1.0 / HIGHEST, 1.0 / LOWEST)
    return 1.0 if loss(1.0 / LOWEST) <= loss(best) + _NO_LESS else 1.0 / best


def _taken(blocks: Sequence[Potentials], sentences: Ints) -> list[Potentials]:
    """The chosen sentences of the blocks; `sentences` rise."""
    ends = np.cumsum([0, *map(len, blocks)])
    cuts = np.searchsorted(sentences, ends)
    return [
        block.take(sentences[a:b] - start)
        for block, start, a, b in zip(blocks, ends, cuts, cuts[1:], strict=False)
        if b > a
    ]


def _minimum(f: Callable[[float], float], low: float, high: float) -> float:
    """Where a convex function of s is least; parabolas through values, within golden sections (Brent)."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda x: f(float(np.exp(x))), bounds=(np.log(low), np.log(high)), method="bounded",
        options={"xatol": _TOLERANCE},
    )  # fmt: skip
    return float(np.exp(found.x))
