"""Many strings in two arrays, decoded one by one when asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np

from vcrf.errors import InputError
from vcrf.types import Ints, UInts8


def has_surrogate(string: str) -> bool:
    """Whether a str holds a lone surrogate: no character, but what Python gives for bytes that it could not decode.

    No file and no terminal takes such a str.
    """
    try:
        string.encode()
    except UnicodeEncodeError:
        return True
    return False


class StringList(Sequence[str]):
    """A list of str over UTF-8 bytes: string i is data[offsets[i]:offsets[i+1]].

    Making one from arrays costs nothing; each string is decoded when it is read.

    Parameters
    ----------
    data : (n_bytes,) uint8
    offsets : (n + 1,) int64
    """

    __slots__ = ("data", "offsets")

    def __init__(self, data: UInts8, offsets: Ints) -> None:
        self.data = data
        self.offsets = offsets

    @classmethod
    def encode(cls, strings: Iterable[str]) -> StringList:
        """Encode strings. A lone surrogate is encoded too; `check` refuses it."""
        encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    def check(self, what: str) -> None:
        """Raise InputError unless the offsets cut the bytes into valid UTF-8; `what` names the strings."""
        data, offsets = self.data, self.offsets
        if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(data) or np.any(offsets[1:] < offsets[:-1]):
            raise InputError(f"the offsets of {what} must rise from 0 to their number of bytes, {len(data)}")
        try:
            str(data.data, "utf-8")
        except UnicodeDecodeError as error:
            # The encoding of a surrogate begins so, and Python stops at its first byte.
            is_surrogate = bytes(data[error.start : error.start + 2]) >= b"\xed\xa0" and data[error.start] == 0xED
            found = "a lone surrogate, which is no character," if is_surrogate else "invalid UTF-8"
            raise InputError(f"{found} at byte {error.start} of {what}") from None
        # Valid as a whole and cut before first bytes of characters only: each piece is valid.
        first = data[offsets[offsets < len(data)]]
        if np.any((first & 0xC0) == 0x80):
            raise InputError(f"an offset of {what} lies inside a character")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"string {index} of {n}")
        start = index % n
        return str(self.data[self.offsets[start] : self.offsets[start + 1]].data, "utf-8")

    def __iter__(self) -> Iterator[str]:
        raw, offsets = self.data.tobytes(), self.offsets.tolist()
        return (raw[a:b].decode() for a, b in pairwise(offsets))

    def __eq__(self, other: object) -> bool:
        """Equal to any list with the same strings."""
        if not isinstance(other, (StringList, list)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment] # like a list

    def __repr__(self) -> str:
        return f"StringList({list(self)!r})" if len(self) < 10 else f"<StringList of {len(self)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return StringList, (self.data, self.offsets)
