"""What a pass over a block of sentences reads and writes, as the kernels take it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.types import Floats, Ints, UInts8, UInts32


class Sentences(NamedTuple):
    """Where sentences are, their labels, and per sentence the loss of a wrong label and the weight.

    `allowed` (n_tokens, L) marks the labels that a token may have where some are not known, else it has no rows.
    `bounds` (n_sentences,) says how far the costs of a loss automaton can differ; empty if there is none.
    """

    ptr: Ints
    y: UInts32
    costs: Floats
    weights: Floats
    allowed: UInts8
    bounds: Floats = np.zeros(0)


class PassOutput(NamedTuple):
    """What a pass writes: values (sentences), residuals (tokens, labels), corrections' residuals, flags."""

    values: Floats
    residuals: Floats
    cor_residuals: Floats
    hard: UInts32
