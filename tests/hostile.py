"""Model files that are wrong on purpose: taken apart, edited, and put together again with right checksums."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from vcrf import tensor_file

_KINDS = {"f8": "F64", "i8": "I64", "u8": "U64", "u4": "U32", "u1": "U8", "f4": "F32"}


class Parts:
    """Document, tensors and header of a file, free to edit.

    `header` is called with safetensors' header before it is written, `text` with the document's JSON text.
    """

    def __init__(self, content: bytes) -> None:
        document, tensors = tensor_file.decode(content, "model")
        self.document: dict[str, Any] = copy.deepcopy(document)
        self.tensors = {name: tensor.copy() for name, tensor in tensors.items()}
        self.header: Callable[[dict[str, Any]], Any] = lambda _: None
        self.text: Callable[[str], str] = lambda text: text
        del self.document["tensors"]

    def assemble(self) -> bytes:
        """Put the file together; its checksums are right."""
        listed = {
            name: {"shape": list(tensor.shape), "sha256": hashlib.sha256(tensor.tobytes()).hexdigest()}
            for name, tensor in self.tensors.items()
        }
        text = self.text(json.dumps({"tensors": listed, **self.document}))
        seal = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        tensors = {**self.tensors, "document_sha256": np.frombuffer(seal, np.uint8)}
        header: dict[str, Any] = {"__metadata__": {"vcrf": text}}
        blocks: list[bytes] = []
        for name in sorted(tensors, key=lambda name: -tensors[name].itemsize):
            start = sum(map(len, blocks))
            blocks.append(tensors[name].tobytes())
            header[name] = {
                "dtype": _KINDS[tensors[name].dtype.str[1:]],
                "shape": list(tensors[name].shape),
                "data_offsets": [start, start + len(blocks[-1])],
            }
        self.header(header)
        return frame(json.dumps(header).encode(), b"".join(blocks))


def frame(header: bytes, data: bytes) -> bytes:
    """A safetensors file of a header and its data."""
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data


# ------------------------------------------------------------------------------------ at random


def damaged(content: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """Change bytes as accidents do: flips, cuts, repeats, zeros, a piece of another file."""
    raw = bytearray(content)
    first, last = sorted(rng.integers(0, len(raw) + 1, 2).tolist())
    last = min(last, first + int(rng.choice([1, 8, 64, 4096])))
    match int(rng.integers(7)):
        case 0 | 1:
            for _ in range(int(rng.choice([1, 1, 1, 5]))):
                raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
        case 2:
            del raw[first:]
        case 3:
            del raw[first:last]
        case 4:
            raw[first:first] = raw[first:last]
        case 5:
            raw[first:last] = bytes(last - first)
        case 6:
            raw[first:last] = other[first:last]
    return bytes(raw)


_JUNK: list[Any] = [
    None, True, -1, 0, 1, 7, 10**6, 2**31, 2**63, 10**300, -(2**70), 0.5, 1e308, "", "x", "inf", "nan", "\udc80",
    [], {}, [[]], [0], ["x"], {"number": "inf"}, {"families": []}, {"mapping": {"a": {}}}, {"feature": "w"}, "a" * 300,
    {"parts": [[0, "word"]], "pad": False}, [[[[[[[[[0]]]]]]]]], "__class__", "model_", "CONVERGED",
]  # fmt: skip
_NUMBERS = [0, 1, 2, 3, 255, 2**31, 2**32 - 1, 2**63 - 1, -1, -2, -(2**63), 0.5, 1e308, np.inf, -np.inf, np.nan]


def forged(content: bytes, rng: np.random.Generator) -> bytes:
    """Change what a file says, once or a few times, with the right checksums."""
    parts = Parts(content)
    for _ in range(int(rng.choice([1, 1, 2, 4]))):
        match int(rng.integers(4)):
            case 0:
                _edit_tensor(parts.tensors, rng)
            case 1 | 2:
                _edit_json(parts.document, rng)
            case 3:
                seed = int(rng.integers(1 << 32))
                parts.header = lambda header, seed=seed: _edit_header(header, np.random.default_rng(seed))
    return parts.assemble()


def _edit_tensor(tensors: dict[str, Any], rng: np.random.Generator) -> None:
    name = sorted(tensors)[int(rng.integers(len(tensors)))]
    tensor = tensors[name]
    match int(rng.integers(8)):
        case 0 | 1 | 2 if tensor.size:
            with np.errstate(all="ignore"):
                value = np.array(_NUMBERS[int(rng.integers(len(_NUMBERS)))]).astype(tensor.dtype)
            tensor.flat[int(rng.integers(tensor.size))] = value
        case 3 if tensor.size:
            i, j = rng.integers(0, tensor.size, 2)
            tensor.flat[i], tensor.flat[j] = tensor.flat[j], tensor.flat[i]
        case 4:
            tensors[name] = tensor[: int(rng.integers(len(tensor) + 1))]
        case 5:
            tensors[name] = np.concatenate([tensor, tensor])
        case 6:
            with np.errstate(all="ignore"):
                tensors[name] = tensor.astype(rng.choice(["<f8", "<i8", "<u8", "<u4", "|u1", "<f4"]))
        case _:
            del tensors[name]
            if rng.integers(2):
                tensors["other"] = tensor.reshape(1, -1)


def _edit_json(value: Any, rng: np.random.Generator) -> None:
    """Replace, delete or add something, somewhere below a list or a dict."""
    keys = sorted(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys:
        return
    key = keys[int(rng.integers(len(keys)))]
    if isinstance(value[key], (dict, list)) and len(value[key]) and rng.random() < 0.8:
        _edit_json(value[key], rng)
        return
    junk = copy.deepcopy(_JUNK[int(rng.integers(len(_JUNK)))])
    match int(rng.integers(6)):
        case 0:
            del value[key]
        case 1 if isinstance(value, list):
            value.insert(key, copy.deepcopy(value[int(rng.integers(len(value)))]))
        case 1:
            value[str(junk)[:50]] = value[key]
        case _:
            value[key] = junk


def _edit_header(header: dict[str, Any], rng: np.random.Generator) -> None:
    names = [name for name in header if name != "__metadata__"]
    name = names[int(rng.integers(len(names)))]
    about = header[name]
    big = int(rng.choice([0, 1, 8, 2**31, 2**40 - 1, 2**62]))
    match int(rng.integers(9)):
        case 0:
            about["shape"] = [big, 2]
        case 1:
            about["shape"] = [0, big]
        case 2:
            about["data_offsets"] = [big, big + 8]
        case 3:
            about["data_offsets"] = list(header[names[0]]["data_offsets"])
        case 4:
            about["data_offsets"][1] -= 1
        case 5:
            about["dtype"] = str(rng.choice(["F64", "I64", "U64", "U32", "U8", "BOOL", "x"]))
        case 6:
            about["data_offsets"].reverse()
        case 7:
            header[f"{name} again"] = about
        case 8:
            _edit_json(about, rng)
