"""
A proof that shrinks
====================

While it trains, the solver knows how far it can still be from the optimum: the certified gap. Three norms of the
penalty on the same sentences. The argument, if there is one, is the path of a picture.
"""

from __future__ import annotations

import sys
from pathlib import Path

from vcrf import VCRF
from vcrf.data import small_english
from vcrf.plots import plot_training

WAYS = {
    "elastic (the default)": {},
    "L2": {"norm": "l2"},
    "L1, the paper's": {"recipe": "paper", "base_strength": 3e-3},
}


def main(picture: str | None = None) -> None:
    """Train three times and draw the gaps and the features by family."""
    corpus = small_english(300)
    taggers = {name: VCRF(**how).fit(corpus.tokens, corpus.labels) for name, how in WAYS.items()}
    for name, tagger in taggers.items():
        gap = tagger.gap_ / tagger.objective_
        print(f"{name}: relative gap {gap:.1e} after {tagger.result_.n_passes} passes, {tagger.n_active_:,} features")
    if picture:
        plot_training(taggers, Path(picture))


if __name__ == "__main__":
    main(*sys.argv[1:2])
