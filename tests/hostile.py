"""Model files that are wrong on purpose: taken apart, edited, and put together again with right checksums."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from vcrf.model import container

_KINDS = {"f8": "F64", "i8": "I64", "u8": "U64", "u4": "U32", "u1": "U8", "f4": "F32", "f2": "F16"}


class Parts:
    """Document, tensors and header of a file, free to edit.

    `header` is called with safetensors' header before it is written, `text` with the document's JSON text.
    """

    def __init__(self, content: bytes) -> None:
        document, tensors = container.decode(content, "model")
        self.document: dict[str, Any] = document
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


_SURROGATE = "\udc80"
_JUNK: list[Any] = [
    None, True, -1, 0, 1, 7, 10**6, 2**31, 2**63, 10**300, 10**400, -(2**70), 0.5, 1e308, "", "x", "inf", "nan",
    _SURROGATE, [], {}, [[]], [0], ["x"], {"number": "inf"}, {"families": []}, {"mapping": {"a": {}}}, {"feature": "w"},
    "a" * 300, {"parts": [[0, "word"]], "pad": False}, [[[[[[[[[0]]]]]]]]], "__class__", "model_", "CONVERGED",
    {"loss": {"class": "HammingLoss"}}, {"constraints": {}}, {"number": []}, {_SURROGATE: 1}, "BIO", "edit", "1_0",
]  # fmt: skip
# What may stand where something of the same kind stood.
_INTS = [-1, 0, 1, 2, 3, 5, 30, 1000, 10**6, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 10**30, -(2**31), -(2**63)]
_FLOATS = [0.0, -0.0, -1.0, 0.5, 3.0, 1e-320, 1e100, 1e200, 1.7e308, -1.7e308]
_TEXTS = [
    "", " ", "\x00", "a\nb", "\t", "\x1b[31m", "\u202e", "[bold]", "{", _SURROGATE, "a\ud800b", "\U0010ffff",
    "x" * 5000,
    "word", "lower", "class", "class:1", "class:0", "suffix:1", "suffix:999999999", "prefix:\u0663", "boundary", "kind",
    "VCRF", "CRF", "M3N", "StructSVM", "VStructBoost", "VExponential", "BIO", "BILOU", "IOB1", "BIOES", "True", "1",
    "l1", "l2", "elastic", "group", "EditLoss", "SumLoss", "MarkovLoss", "conllu", "columns", "CONVERGED", "bias",
]  # fmt: skip
_NUMBERS = [
    0, 1, 2, 3, 255, 2**31, 2**32 - 1, 2**63 - 1, -1, -2, -(2**63), 0.5, 1e308, np.inf, -np.inf, np.nan,
    1e101, -1e101, 1e99, 1e16, 1e-320, -0.0, 700.0, -700.0, 1e4,
]  # fmt: skip


def forged(content: bytes, rng: np.random.Generator) -> bytes:
    """Change what a file says, once or a few times, with the right checksums."""
    parts = Parts(content)
    for _ in range(int(rng.choice([1, 1, 2, 4]))):
        match int(rng.integers(10)):
            case 0 | 1:
                _edit_tensor(parts.tensors, rng)
            case 2 | 3 | 4:
                _edit_json(parts.document, rng)
            case 5:
                _edit_strings(parts.tensors, rng)
            case 6:
                seed = int(rng.integers(1 << 32))
                parts.header = lambda header, seed=seed: _edit_header(header, np.random.default_rng(seed))
            case 7:
                edit, at = int(rng.integers(len(_TEXT_EDITS))), rng.random()
                parts.text = lambda text, edit=edit, at=at: _edit_text(text, edit, at)
            case 8:
                _edit_shape(parts, rng)
            case 9:
                _edit_weights(parts.tensors, rng)
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


def _edit_weights(tensors: dict[str, Any], rng: np.random.Generator) -> None:
    """Make some weights, or all, as large as a model may have them, or larger."""
    weights = tensors.get("weights")
    if weights is None or weights.dtype != np.float64:
        return
    large = float(rng.choice([700.0, 1e4, 1e16, 1e99, 1e100, 1.1e100, 1e200, 1.7e308]))
    kind = int(rng.integers(3))
    chosen = rng.random(weights.shape) < (1.0 if kind < 2 else 0.2)
    signs = rng.choice([-1.0, 1.0], weights.shape) if kind else 1.0
    weights[:] = np.where(chosen, signs * large, weights)


def _edit_strings(tensors: dict[str, Any], rng: np.random.Generator) -> None:
    """Put another string in place of one: odd ones, which may hold what is no character."""
    kinds = [name for name in ("names", "labels", "classes.names") if f"{name}.offsets" in tensors]
    if not kinds:
        return
    kind = kinds[int(rng.integers(len(kinds)))]
    data, offsets = tensors.get(f"{kind}.bytes"), tensors[f"{kind}.offsets"]
    if data is None or len(offsets) < 2 or offsets.dtype.kind not in "iu":
        return
    i = int(rng.integers(len(offsets) - 1))
    first, last = int(offsets[i]), int(offsets[i + 1])
    new = _TEXTS[int(rng.integers(len(_TEXTS)))].encode("utf-8", "surrogatepass")
    tensors[f"{kind}.bytes"] = np.concatenate([data[:first], np.frombuffer(new, np.uint8), data[last:]])
    longer = min(max(len(new) - (last - first), -(2**62)), 2**62)  # the offsets may be wild already
    with np.errstate(all="ignore"):
        offsets[i + 1 :] += np.array(longer).astype(offsets.dtype)


def _edit_shape(parts: Parts, rng: np.random.Generator) -> None:
    """Change several parts so that they still fit each other: longer patterns, another label, fewer weights."""
    tensors = parts.tensors
    try:
        match int(rng.integers(4)):
            case 0:  # tag patterns of any length, for one family
                families, table = parts.document["families"], tensors["family_of"]
                f, tags = int(rng.integers(len(families))), int(rng.choice([2, 3, 4, 6, 9, 12, 16, 30, 500]))
                before = families[f]["tags"]
                wider = np.full((len(table), max(tags + 1, table.shape[1])), -1)
                wider[:, : table.shape[1]] = table
                wider[:, tags] = np.where(wider[:, before] == f, f, wider[:, tags])
                wider[:, before] = np.where(wider[:, before] == f, -1, wider[:, before])
                families[f]["tags"], tensors["family_of"] = tags, wider
                tensors["lengths"][tensors["lengths"] == before] = tags
            case 1:  # one label only
                tensors["labels.bytes"], tensors["labels.offsets"] = np.array([65], np.uint8), np.array([0, 1])
                tensors["codes"][:] = 0
                parts.document["int_labels"] = []
            case 2:  # one label more
                tensors["labels.bytes"] = np.append(tensors["labels.bytes"], np.uint8(ord("Z")))
                tensors["labels.offsets"] = np.append(tensors["labels.offsets"], len(tensors["labels.bytes"]))
            case 3:  # no weights at all
                tensors["ptr"][:] = 0
                tensors |= {name: tensors[name][:0] for name in ("lengths", "codes", "weights")}
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
        return  # something else has been taken away before, or a length does not fit into a byte


_TEXT_EDITS: list[Callable[[str, str], str]] = [
    lambda before, _: before,  # cut
    lambda before, after: before + "\\ud800" + after,
    lambda before, after: before + _SURROGATE + after,
    lambda before, after: before + "NaN" + after[1:],
    lambda before, after: before + "1e999" + after[1:],
    lambda before, after: before + "[" * 2000 + "]" * 2000 + after,
    lambda before, after: before + "9" * 5000 + after,
    lambda before, after: before + after[1:],
    lambda before, after: before + after + " " * 64,
    lambda before, after: before + after + "{}",
    lambda before, after: (before + after)[:-1] + ', "x": ' + "[" * 500 + "]" * 500 + "}",
    lambda before, after: (before + after)[:-1] + ', "x": ' + "[" * 90_000 + "]" * 90_000 + "}",
    lambda before, after: (before + after)[:-1] + ', "facts": null}',
    lambda before, after: (before + after)[:-1] + ', "x": NaN}',
    lambda before, after: (before + after)[:-1] + ', "x": "\\udfff"}',
    lambda before, after: (before + after)[:-1] + ', "\\ud83d\\ude00": -Infinity}',
    lambda before, after: re.sub(r"([0-9])\.([0-9]+)", r"\1e999", before + after, count=1 + len(before) % 7),
    lambda before, after: re.sub(r"([0-9]+)", r"\1.0", before, count=1 + len(before) % 7) + after,
]


def _edit_text(text: str, edit: int, at: float) -> str:
    """Change the document's JSON text: what no JSON library would write."""
    place = int(at * len(text))
    return _TEXT_EDITS[edit](text[:place], text[place:])


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
    match int(rng.integers(10)):
        case 0:
            del value[key]
        case 1 if isinstance(value, list):
            value.insert(key, copy.deepcopy(value[int(rng.integers(len(value)))]))
        case 1:
            value[str(junk)[:50]] = value[key]
        case 2 if isinstance(value, list):
            del value[key:]
        case 3 | 4 | 5 | 6:
            value[key] = _like(value[key], rng)
        case _:
            value[key] = junk


def _like(value: Any, rng: np.random.Generator) -> Any:
    """Another value of the same kind; of None, any."""
    if value is None or isinstance(value, (list, dict)):
        choices: list[Any] = [*_INTS, *_FLOATS, *_TEXTS, True, False]
    elif isinstance(value, bool):
        choices = [not value]
    else:
        choices = _INTS if isinstance(value, int) else _FLOATS if isinstance(value, float) else _TEXTS
    return choices[int(rng.integers(len(choices)))]


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
