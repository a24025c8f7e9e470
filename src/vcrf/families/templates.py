"""Templates: what to look at around a position. One template gives at most one attribute a position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vcrf import kernels, scratch
from vcrf.families.text import WORD_FUNCTIONS, Text, reads_class
from vcrf.types import Floats, Ints, UInts32, UInts64

if TYPE_CHECKING:
    from vcrf.classes import WordClasses


class Occurrences(NamedTuple):
    """Where the attributes of one source occur, in order of position.

    `values` is None for indicators; `is_single` says that no position has two attributes. `zeros` are
    occurrences of value 0 (positions and keys): they only count as observations.
    """

    positions: UInts32
    keys: UInts64
    values: Floats | None
    is_single: bool
    zeros: tuple[UInts32, UInts64] = (np.zeros(0, np.uint32), np.zeros(0, np.uint64))


@dataclass(frozen=True)
class Template:
    """Conjunction of readings at offsets from the position: ((-1, "word"), (0, "suffix:2")).

    With `pad`, an offset outside the sentence reads as the boundary; without, the attribute is absent there.
    No parts at all is the bias: one attribute that occurs everywhere. "class", or "class:N" for the first N characters
    of its name, reads the word's class in the table `classes`.
    """

    parts: tuple[tuple[int, str], ...] = ()
    pad: bool = False
    classes: WordClasses | None = None

    def read(self, text: Text) -> Occurrences:
        keys = self.keys(text)
        positions = np.flatnonzero(keys).astype(np.uint32)
        return Occurrences(positions, keys[positions], None, True)

    def keys(self, text: Text) -> UInts64:
        """Key of this template's attribute at each position, 0 = none; (n_tokens,) uint64."""
        out = scratch.empty(text.n_tokens, np.uint64)
        offsets = np.array([offset for offset, _ in self.parts], np.int64)
        readings = np.zeros((len(self.parts), len(text.words) + 1), np.uint64)
        for i, reading in enumerate(self.readings):
            readings[i] = text.reading(*reading)
        kernels.hashing.template_keys(text.sent_ptr, text.word_ids, text.boundary, offsets, readings, self.pad, out)
        return out

    @property
    def readings(self) -> list[tuple[str, WordClasses | None]]:
        """What the parts read, with the table if they read classes."""
        return [(reading, self.classes if reads_class(reading) else None) for _, reading in self.parts]

    @property
    def reads_words(self) -> bool:
        """Whether a part looks at more than the ends of the sentence."""
        return any(reading != "boundary" for _, reading in self.parts)

    @property
    def window(self) -> tuple[int, ...]:
        """The offsets looked at."""
        return tuple(sorted({offset for offset, _ in self.parts}))

    def log_cardinality(self, text: Text) -> float:
        """Log of the number of attributes the template can give: |V| a word, |Sigma| an affix character."""
        return float(sum(_log_cardinality(*reading, text) for reading in self.readings))

    def describe(self, text: Text, position: int) -> str:
        """The attribute at a position, for people: "word[-1]=the suffix:2=ly"."""
        return self.describe_each(text, np.array([position]))[0]

    def describe_each(self, text: Text, positions: Ints) -> list[str]:
        """The attributes at some positions."""
        if not self.parts or not len(positions):
            return ["bias"] * len(positions)
        shown = [self._shown(text, positions, offset, reading) for offset, reading in self.parts]
        return shown[0] if len(shown) == 1 else [" ".join(parts) for parts in zip(*shown, strict=True)]

    def _shown(self, text: Text, positions: Ints, offset: int, reading: str) -> list[str]:
        """One part at some positions; a word is read once."""
        sentence, at = np.searchsorted(text.sent_ptr, positions, side="right"), positions + offset
        is_inside = (text.sent_ptr[sentence - 1] <= at) & (at < text.sent_ptr[sentence])
        words, which = np.unique(text.word_ids[np.where(is_inside, at, positions)], return_inverse=True)
        start = f"{reading}[{offset:+d}]=" if offset else f"{reading}="
        values = [start + self._value(reading, text.words[word]) for word in words.tolist()]
        which[~is_inside] = len(values)
        values.append(f"{start}<boundary>")
        return [values[i] for i in which.tolist()]

    def _value(self, reading: str, word: str) -> str:
        kind, _, size = reading.partition(":")
        if kind == "prefix":
            return word[: int(size)]
        if kind == "suffix":
            return word[len(word) - int(size) :]
        if kind == "class" and self.classes is not None:
            return (self.classes.class_of(word) or "")[: int(size) if size else None]
        return WORD_FUNCTIONS[kind](word) if kind in WORD_FUNCTIONS else word

    @property
    def name(self) -> str:
        return "+".join(f"{reading}[{offset:+d}]" if offset else reading for offset, reading in self.parts) or "bias"


BIAS = Template()
START = Template(((-1, "boundary"),), pad=True)
END = Template(((1, "boundary"),), pad=True)


def _log_cardinality(reading: str, classes: WordClasses | None, text: Text) -> float:
    kind, _, size = reading.partition(":")
    if kind in ("prefix", "suffix"):
        return int(size) * float(np.log(max(text.n_characters(), 1)))
    if kind == "boundary":
        return 0.0
    return float(np.log(max(text.n_distinct(reading, classes), 1)))
