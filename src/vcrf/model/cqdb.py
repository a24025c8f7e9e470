"""CQDB, the table of strings and numbers inside a CRFsuite file. All integers are 32 bits, little-endian.

    0     "CQDB", size, 0, 0x62445371, number of strings, offset of the backward array
    24    256 times: offset of a hash table (0 = empty), its slots: two an entry
    2072  records: number, length with NUL, UTF-8 bytes, NUL
    then  the tables: slots (hash, offset of the record), 0 = free; string in table h % 256 from slot (h >> 8) on
    last  the backward array: offset of each number's record

Offsets count from the start of the CQDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.types import Ints, UInts32

_MAGIC, _BYTE_ORDER = b"CQDB", 0x62445371
_TABLES, _RECORDS, _N_TABLES = 24, 2072, 256


def read_strings(data: bytes, what: str) -> list[str]:
    """The strings of a CQDB by number; `data` may go on after it.

    Raises
    ------
    InputError
        When something lies outside the data or is not what it must be.
    """
    if len(data) < _RECORDS or data[:4] != _MAGIC:
        raise InputError(f"the table of {what} is missing or cut off")
    size, _, order, n, offset = (int(x) for x in np.frombuffer(data, "<u4", 5, 4))
    if order != _BYTE_ORDER or not _RECORDS <= size <= len(data) or offset + 4 * n > size:
        raise InputError(f"the table of {what} does not fit into the file")
    if n and offset < _RECORDS:
        raise InputError(f"the table of {what} has no records")
    starts = np.frombuffer(data, "<u4", n, offset).astype(np.int64)
    if np.any(starts < _RECORDS) or np.any(starts + 8 > offset):
        raise InputError(f"a record of the table of {what} lies outside it")
    strings = [_record(data, start, number, offset, what) for number, start in enumerate(starts.tolist())]
    if len(set(strings)) < n:
        raise InputError(f"the table of {what} has a string twice")
    return strings


def _record(data: bytes, start: int, number: int, end: int, what: str) -> str:
    found, length = (int.from_bytes(data[at : at + 4], "little") for at in (start, start + 4))
    content = data[start + 8 : start + 8 + length]
    if found != number or not 1 <= length <= end - start - 8 or content.find(0) != length - 1:
        raise InputError(f"record {number} of the table of {what} is damaged")
    try:
        return content[:-1].decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"record {number} of the table of {what} is not UTF-8") from None


def write_strings(strings: Sequence[str]) -> bytes:
    """The CQDB of strings that are numbered as they come."""
    contents = [string.encode("utf-8") + b"\0" for string in strings]
    records = b"".join(
        number.to_bytes(4, "little") + len(content).to_bytes(4, "little") + content
        for number, content in enumerate(contents)
    )
    sizes = np.fromiter(map(len, contents), np.int64, len(contents))
    starts = _RECORDS + np.cumsum(8 + sizes) - (8 + sizes)
    hashes = np.empty(len(contents), np.uint32)
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    kernels.lookup3.hash_all(ptr, np.frombuffer(b"".join(contents), np.uint8), hashes)
    heads, tables = _tables(hashes, starts, _RECORDS + len(records))
    offset = _RECORDS + len(records) + len(tables)
    backward = offset if strings else 0
    header = np.array([offset + 4 * len(strings), 0, _BYTE_ORDER, len(strings), backward], "<u4")
    return _MAGIC + header.tobytes() + heads + records + tables + starts.astype("<u4").tobytes()


def _tables(hashes: UInts32, starts: Ints, begin: int) -> tuple[bytes, bytes]:
    """Offsets and sizes of the hash tables, and the tables: linear probing in the order of the strings."""
    heads = np.zeros((_N_TABLES, 2), "<u4")
    tables: list[bytes] = []
    order = np.argsort(hashes % _N_TABLES, kind="stable")
    ends = np.searchsorted((hashes % _N_TABLES)[order], np.arange(_N_TABLES + 1)).tolist()
    for table, (first, last) in enumerate(pairwise(ends)):
        if first == last:
            continue
        slots = np.zeros((2 * (last - first), 2), "<u4")
        for i in order[first:last].tolist():
            slot = (int(hashes[i]) >> 8) % len(slots)
            while slots[slot, 1]:
                slot = (slot + 1) % len(slots)
            slots[slot] = hashes[i], starts[i]
        heads[table] = begin, len(slots)
        tables.append(slots.tobytes())
        begin += len(tables[-1])
    return heads.tobytes(), b"".join(tables)
