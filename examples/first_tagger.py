"""
A first tagger, and why
=======================

Six hundred sentences of a small English grammar, a tagger with nothing set, and a sentence with two words that it has
never seen. The argument, if there is one, is the path of the picture; it is written as SVG.
"""

from __future__ import annotations

import sys
from pathlib import Path

from vcrf import VCRF
from vcrf.data import small_english
from vcrf.labelling.drawing import draw_sentence
from vcrf.labelling.explain import explain
from vcrf.labelling.reasons import question, reasons

SENTENCE = [
    "The", "gloomy", "librarian", "will", "water", "the", "tulips", "when", "the", "guards", "watch", "the", "light",
    ".",
]  # fmt: skip


def main(picture: str | None = None) -> None:
    """Train, tag, explain."""
    corpus = small_english(800)
    train, test = corpus[:600], corpus[600:]
    tagger = VCRF().fit(train.tokens, train.labels)
    print(f"{tagger.score(test.tokens, test.labels):.1%} of the labels of other sentences are right")
    explained = explain(tagger, SENTENCE)
    unsure = min(range(len(SENTENCE)), key=lambda t: explained[t].probability)
    print(question(explained[unsure]))
    for reason in reasons(explained[unsure], SENTENCE, unsure)[:5]:
        print(f"  {reason.value:+.2f} {reason.text}")
    if picture:
        draw_sentence(explained, Path(picture).with_suffix(".svg"))


if __name__ == "__main__":
    main(*sys.argv[1:2])
