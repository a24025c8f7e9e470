"""Models inside pickles of sklearn_crfsuite, taken out without running anything that is in them.

A pickle names classes and functions to call. Here every name stands for the same inert class, which accepts any call
and keeps what it is given: of the pickle's objects nothing but numbers, text, bytes and containers is real. The one
exception turns text into bytes.
"""

from __future__ import annotations

import bz2
import io
import lzma
import pickle
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from vcrf.errors import InputError
from vcrf.model.crfsuite import MAGIC

# A CRFsuite file is smaller than this: what is larger when it is decompressed is no model.
_MAX_BYTES = 1 << 32
# joblib compresses with these; by the first bytes.
_COMPRESSED: list[tuple[bytes, Callable[[bytes], bytes]]] = [
    (b"\x78", lambda data: zlib.decompressobj().decompress(data, _MAX_BYTES)),
    (b"\x1f\x8b", lambda data: zlib.decompressobj(wbits=31).decompress(data, _MAX_BYTES)),
    (b"BZh", lambda data: bz2.BZ2Decompressor().decompress(data, _MAX_BYTES)),
    (b"\xfd7zXZ", lambda data: lzma.LZMADecompressor().decompress(data, _MAX_BYTES)),
    (b"\x5d\x00", lambda data: lzma.LZMADecompressor().decompress(data, _MAX_BYTES)),
]
_BROKEN = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError,
    RecursionError, MemoryError, OSError, ImportError, struct.error, zlib.error, lzma.LZMAError,
)  # fmt: skip


class _Inert:
    """Stands for any class or function of a pickle."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.held: list[Any] = [args, kwargs]

    def __setstate__(self, state: Any) -> None:
        self.held = [*getattr(self, "held", []), state]

    def __call__(self, *args: Any, **kwargs: Any) -> _Inert:
        return _Inert(*args, **kwargs)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.held.append((key, value))

    def append(self, item: Any) -> None:
        self.held.append(item)

    def extend(self, items: Any) -> None:
        self.held.extend(items)

    add = append


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        # Before protocol 3 bytes were written as text to encode.
        return _latin1 if (module, name) == ("_codecs", "encode") else _Inert


def _latin1(text: Any, *_: Any) -> bytes:
    return text.encode("latin1") if isinstance(text, str) else b""


def crfsuite_in_pickle(data: bytes, name: str) -> tuple[bytes, dict[str, Any]]:
    """The CRFsuite file inside a pickle or joblib file of `sklearn_crfsuite.CRF`, and the estimator's plain parameters.

    Raises
    ------
    InputError
        When it is no pickle, or has no model in it.
    """
    try:
        for magic, decompress in _COMPRESSED:
            if data.startswith(magic):
                data = decompress(data)
                break
        held = list(_walk(_Reader(io.BytesIO(data)).load()))
    except _BROKEN as error:
        raise InputError(
            f"{name}: cannot be read as a pickle: {type(error).__name__}. Expected a .crfsuite or .vcrf file, or an "
            "sklearn_crfsuite.CRF written by pickle or joblib."
        ) from None
    if b"vcrf.compat.crf" in data:
        raise InputError(
            f"{name}: a pickle of vcrf.compat.CRF, which is not run here. Where it can be trusted load it in Python, "
            "and call `crf.save('new.vcrf')`."
        )
    models = [item for item in held if isinstance(item, bytes) and item.startswith(MAGIC)]
    if len(models) != 1:
        raise InputError(
            f"{name}: expected the pickle of one trained sklearn_crfsuite.CRF, found {len(models)} CRFsuite models in "
            "it. If it was trained with model_filename, convert that file."
        )
    states = [item for item in held if isinstance(item, dict) and "algorithm" in item and "c2" in item]
    return models[0], states[0] if states else {}


def _walk(root: Any) -> Iterator[Any]:
    """Everything that a pickle holds, each object once."""
    seen: set[int] = set()
    left = [root]
    while left:
        item = left.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        yield item
        if isinstance(item, _Inert):
            left.extend(getattr(item, "held", []))
        elif isinstance(item, dict):
            left.extend([*item.keys(), *item.values()])
        elif isinstance(item, (list, tuple, set, frozenset)):
            left.extend(item)
