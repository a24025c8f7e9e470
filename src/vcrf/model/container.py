"""The container of a model file: tensors in safetensors' format, with a JSON document in the header.

    8 bytes    length of the header, little endian
    header     JSON: dtype, shape and place of each tensor; "__metadata__": {"vcrf": the document as JSON text}
    tensors    one after the other, without gaps

The document lists every tensor with its shape and SHA-256; the tensor `document_sha256` is that of the document.
So every byte is checked, by itself or against another. Files are written with the safetensors library and read
here: the library copies tensors, we give views on the mapped file.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from vcrf.errors import InputError
from vcrf.files import COMPRESSED, replacing

FORMAT = "vcrf model"
# The newest version that is read; a document may say that it needs no more than an older one.
VERSION = 5
_KEY = "vcrf"
_SEAL = "document_sha256"
# The limit of the safetensors library.
_MAX_HEADER = 100_000_000

# An escaped surrogate: half of a character, if the other half follows.
_LONE = re.compile(r"\\u[dD][89a-fA-F]")

_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "U64": "<u8", "U32": "<u4", "U8": "|u1"}

Tensor = NDArray[Any]
Buffer = bytes | mmap.mmap


class Contents(NamedTuple):
    """What a file holds; the tensors may be views on it."""

    document: dict[str, Any]
    tensors: dict[str, Tensor]


# ------------------------------------------------------------------------------------ writing


def encode(document: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> bytes:
    """Return the bytes of a file; the same for the same contents."""
    from safetensors.numpy import save

    native = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    listed = {name: {"shape": list(tensor.shape), "sha256": _sha256(tensor)} for name, tensor in native.items()}
    text = json.dumps(
        {"format": FORMAT, "version": VERSION, **document, "tensors": listed},
        allow_nan=False, separators=(",", ":"), sort_keys=True,
    )  # fmt: skip
    native[_SEAL] = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)
    # One key only: the library writes several in any order.
    content = bytes(save(native, {_KEY: text}))
    if int.from_bytes(content[:8], "little") > _MAX_HEADER:
        raise InputError(
            f"The model cannot be saved: its families, sources and history need a header of more than {_MAX_HEADER:,} "
            "bytes. Use fewer feature names: name and value as 'name=value', so that values share a name."
        )
    return content


def check_name(path: Path) -> None:
    """Refuse the name of a compressed file: models are mapped into memory as they are."""
    if path.suffix.lower() in COMPRESSED:
        raise InputError(
            f"{path}: a model file is not compressed: expected a name without {path.suffix}, as in {path.stem}."
        )


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: under another name first, synced, then moved.

    Raises
    ------
    InputError
        When the path cannot be a file, or has the name of a compressed one.
    OSError
        When writing fails; the old file is then as it was.
    """
    check_name(path)
    with replacing(path) as file:
        file.write(content)


# ------------------------------------------------------------------------------------ reading


def map_file(path: Path) -> Buffer:
    """Map a file into memory; pages are read when touched. Changes to arrays on it stay in this process."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return file.read()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{path}: cannot be read: {reason}. Check the path and the permissions.") from error


def decode(buffer: Buffer, name: str) -> Contents:
    """Check a file and return its contents; `name` is for the messages.

    Raises
    ------
    InputError
        When the bytes are not a file of ours, or of a newer version, or damaged.
    """
    document, entries = _read_header(buffer, name)
    listed = document["tensors"]
    if not isinstance(listed, dict) or set(listed) != set(entries) - {_SEAL}:
        _refuse(name, "its list of tensors does not match the tensors")
    tensors = {}
    for key, about in listed.items():
        tensor = entries[key]
        if not isinstance(about, dict) or about.get("shape") != list(tensor.shape):
            _refuse(name, f"tensor {key!r} has another shape than listed")
        if about.get("sha256") != _sha256(tensor):
            _refuse(name, f"the checksum of tensor {key!r} does not match")
        tensors[key] = tensor
    return Contents(document, tensors)


def read_document(buffer: Buffer, name: str) -> dict[str, Any]:
    """Return the checked document only; the tensors are not read."""
    return _read_header(buffer, name)[0]


def checksum(document: Mapping[str, Any]) -> str:
    """Of all that a file holds: its document has the checksums of the tensors."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _read_header(buffer: Buffer, name: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    size = len(buffer)
    length = int.from_bytes(buffer[:8], "little")
    if size < 8 or length > _MAX_HEADER or buffer[8:9] not in (b"", b"{"):
        raise _foreign(name)
    if size < 8 + length:
        _refuse(name, f"the file ends after {size} bytes, inside its header of {length}")
    header = _parse(buffer[8 : 8 + length], name)
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not isinstance(metadata.get(_KEY), str):
        raise _foreign(name)
    text = metadata[_KEY].encode()
    document = _parse(text, name)
    _check_version(document, name)
    entries = _entries(header, buffer, 8 + length, name)
    seal = entries.get(_SEAL)
    if seal is None or seal.tobytes() != hashlib.sha256(text).digest():
        _refuse(name, "the checksum of its header does not match")
    if "tensors" not in document:
        _refuse(name, "it does not list its tensors")
    return document, entries


def _check_version(document: dict[str, Any], name: str) -> None:
    version = document.get("version")
    if document.get("format") != FORMAT or type(version) is not int or version < 1:
        raise _foreign(name)
    if version > VERSION:
        raise InputError(
            f"{name}: the model file has format version {version}, this vcrf reads up to {VERSION}. "
            "Upgrade vcrf, or save the model with this version."
        )


def _entries(header: dict[str, Any], buffer: Buffer, start: int, name: str) -> dict[str, Tensor]:
    """Views on all tensors. They must cover the bytes after the header, each once."""
    places = []
    for key, about in header.items():
        dtype, shape, first, last = _entry(about, key, name)
        places.append((first, last, key))
        if last - first != math.prod(shape) * dtype.itemsize:
            _refuse(name, f"tensor {key!r} has {last - first} bytes, which is not its shape {shape}")
    end = 0
    for first, last, key in sorted(places):
        if first != end:
            _refuse(name, f"tensor {key!r} starts at byte {first}, not where the one before ends ({end})")
        end = last
    if end != len(buffer) - start:
        _refuse(name, f"expected {end} bytes of tensors, got {len(buffer) - start}")
    views: dict[str, Tensor] = {}
    for key, about in header.items():
        dtype, shape, first, _ = _entry(about, key, name)
        if (start + first) % dtype.itemsize:
            _refuse(name, f"tensor {key!r} is not aligned")
        views[key] = np.ndarray(shape, dtype, buffer, start + first)
    return views


def _entry(about: Any, key: str, name: str) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    """Dtype, shape, first byte and last byte + 1 of a tensor, as the header has them."""
    if not isinstance(about, dict) or set(about) != {"dtype", "shape", "data_offsets"}:
        _refuse(name, f"tensor {key!r} is not described by dtype, shape and data_offsets")
    kind, shape, offsets = about["dtype"], about["shape"], about["data_offsets"]
    if not isinstance(kind, str) or kind not in _DTYPES:
        _refuse(name, f"tensor {key!r} has dtype {str(kind)[:20]!r}: expected one of {', '.join(_DTYPES)}")
    if not _is_counts(shape) or len(shape) > 2 or not _is_counts(offsets) or len(offsets) != 2:
        _refuse(name, f"tensor {key!r} has no valid shape and place")
    return np.dtype(_DTYPES[kind]), tuple(shape), offsets[0], offsets[1]


def _is_counts(value: Any) -> bool:
    """Whether a value is a list of integers that fit into 40 bits and are not negative."""
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 1 << 40 for item in value)


def _parse(raw: bytes, name: str) -> dict[str, Any]:
    try:
        text = raw.decode()
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
        is_text = _LONE.search(text) is None or _is_text(value)
    except (ValueError, RecursionError):
        _refuse(name, "its header is not valid JSON")
    if not isinstance(value, dict):
        _refuse(name, "its header is not a JSON object")
    if not is_text:
        _refuse(name, "its header holds a lone surrogate, which is no character")
    return value


def _is_text(value: Any) -> bool:
    """Whether all strings of a JSON value are text: halves of a pair may be escaped one by one."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _sha256(tensor: Tensor) -> str:
    return hashlib.sha256(tensor.data.cast("B") if tensor.size else b"").hexdigest()


def _foreign(name: str) -> InputError:
    return InputError(
        f"{name}: not a vcrf model file. Pass a file that `vcrf train` or `save` wrote. A CRFsuite file, or a "
        "pickle of sklearn_crfsuite.CRF: `vcrf convert old.pkl new.vcrf`."
    )


def _refuse(name: str, reason: str) -> NoReturn:
    reason = reason[:300]  # it may quote the file
    raise InputError(f"{name}: the model file is damaged: {reason}. Copy the file again, or save the model again.")
