"""
What nobody has to check
========================

After a look at held-out sentences the tagger accepts some labels and promises: at most so many of them are wrong. The
argument, if there is one, is the path of a picture: error by the share accepted, and how far to trust percentages.
"""

from __future__ import annotations

import sys
from pathlib import Path

from vcrf import VCRF
from vcrf.data import small_english


def main(picture: str | None = None) -> None:
    """Train, calibrate, promise; and count on a third part whether the promise is kept."""
    corpus = small_english(1700)
    train, held_out, test = corpus[:600], corpus[600:1400], corpus[1400:]
    tagger = VCRF().fit(train.tokens, train.labels).calibrate(held_out.tokens, held_out.labels)
    table = tagger.trust(test.tokens, test.labels, max_errors=[0.01, 0.02, 0.05], confidences=[0.95])
    for row in table.rows:
        print(f"at most {row.acceptance.max_error:.0%} wrong: {row.share:.1%} accepted, {row.error:.2%} of them wrong")
    if picture:
        table.plot(Path(picture))


if __name__ == "__main__":
    main(*sys.argv[1:2])
