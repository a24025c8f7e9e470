"""A corpus that is read once and kept as numbers: its files may be larger than the memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from vcrf import scratch
from vcrf.data.corpus import Corpus, Sentence
from vcrf.types import Ints, UInts32

_CHUNK = 1 << 20


class Interned(Sequence[list[str]]):
    """Lists of strings: their numbers, one after the other, and the distinct ones in order of first occurrence.

    Attributes
    ----------
    strings : list of str
    ids : (n,) uint32
    ptr : (n_lists + 1,) int64, list i is ids[ptr[i]:ptr[i+1]]
    """

    def __init__(self, strings: list[str], ids: UInts32, ptr: Ints) -> None:
        self.strings, self.ids, self.ptr = strings, ids, ptr

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @overload
    def __getitem__(self, key: int) -> list[str]: ...

    @overload
    def __getitem__(self, key: slice) -> list[list[str]]: ...

    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            return [self[i] for i in range(*key.indices(len(self)))]
        i = range(len(self))[key]
        return [self.strings[number] for number in self.ids[self.ptr[i] : self.ptr[i + 1]].tolist()]


class InternedCorpus(Corpus):
    """A `Corpus` whose lists are made when they are looked at."""

    tokens: Interned  # type: ignore[assignment]
    labels: Interned  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Nothing to check: sentences have as many labels as tokens."""

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sentence]) -> InternedCorpus:
        """Number the tokens and labels of sentences as they come."""
        tokens, labels, sources = _InternedBuilder(), _InternedBuilder(), _Sources()
        for sentence in sentences:
            tokens.add(sentence.tokens)
            labels.add(sentence.labels)
            sources.add(sentence.source)
        return cls(tokens.finish(), labels.finish(), sources)  # type: ignore[arg-type]

    @property
    def n_tokens(self) -> int:
        return len(self.tokens.ids)

    @property
    def label_set(self) -> tuple[str, ...]:
        return tuple(sorted(self.labels.strings))


class _InternedBuilder:
    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._ids, self._ends = array("I"), array("q", [0])
        self._done: list[UInts32] = []
        self._n_done = 0

    def add(self, strings: Sequence[str]) -> None:
        numbers = self._numbers
        self._ids.extend([numbers.setdefault(string, len(numbers)) for string in strings])
        self._ends.append(self._n_done + len(self._ids))
        if len(self._ids) >= _CHUNK:
            self._flush()

    def finish(self) -> Interned:
        self._flush()
        ids = scratch.concatenate([np.zeros(0, np.uint32), *self._done])
        return Interned(list(self._numbers), ids, np.array(self._ends, np.int64))

    def _flush(self) -> None:
        self._done.append(scratch.keep(np.array(self._ids, np.uint32)))
        self._n_done += len(self._ids)
        self._ids = array("I")


class _Sources(Sequence[str]):
    """`path:line` of each sentence: the line, and the number of the path."""

    def __init__(self) -> None:
        self._paths: dict[str, int] = {}
        self._path, self._line = array("I"), array("q")

    def add(self, source: str) -> None:
        path, _, line = source.rpartition(":")
        self._path.append(self._paths.setdefault(path, len(self._paths)))
        self._line.append(int(line))

    def __len__(self) -> int:
        return len(self._line)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return [self[i] for i in range(*key.indices(len(self)))]
        return f"{list(self._paths)[self._path[key]]}:{self._line[key]}"

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))
