"""The calibration of a model in its file: numbers in the document, arrays in tensors `calibration.*`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vcrf.decoding.schemes import scheme_of
from vcrf.errors import InputError
from vcrf.trust.calibration import Calibration
from vcrf.trust.reliability import N_BINS, Reliability
from vcrf.trust.temperature import HIGHEST, LOWEST
from vcrf.types import Label

# A file with a calibration has this format version: an older vcrf would show other probabilities.
VERSION = 2

# Arrays of a Calibration and their dtypes; all have one dimension.
ARRAYS: dict[str, type[np.generic]] = {
    "ptr": np.int64,
    "sureness": np.float32,
    "true_probability": np.float32,
    "is_wrong": np.uint8,
    "sequence_probability": np.float32,
    "unknown_share": np.float32,
    "span_ptr": np.int64,
    "span_sureness": np.float32,
    "span_is_wrong": np.uint8,
    "true_span_ptr": np.int64,
    "true_span_probability": np.float32,
    "true_span_is_found": np.uint8,
    "sentences": np.uint64,
}
# Files of the first calibrations have no true spans: no set of spans can be promised from them.
_LATER = ("true_span_ptr", "true_span_probability", "true_span_is_found")
# Nor did they keep which sentences they were.
_SENTENCES = "sentences"
# Tokens, sureness and accuracy of the bins, before and after: (6, n_bins).
_RELIABILITY = "calibration.reliability"


def dump_calibration(calibration: Calibration | None) -> Any:
    """What of it is no array; None if there is none."""
    if calibration is None:
        return None
    means = [float(x) if np.isfinite(x) else "-inf" for x in calibration.log_likelihood]
    return {
        "calibration_temperature": float(calibration.calibration_temperature),
        "n_impossible": int(calibration.n_impossible),
        "log_likelihood": means,
        "data_checksum": calibration.data_checksum,
        "scheme": calibration.scheme,
    }


def calibration_tensors(calibration: Calibration | None) -> dict[str, Any]:
    """The arrays, by the names they have in a file."""
    if calibration is None:
        return {}
    bins = [
        values
        for side in (calibration.before, calibration.after)
        for values in (side.n_tokens, side.sureness, side.accuracy)
    ]
    arrays = {f"calibration.{name}": np.asarray(getattr(calibration, name), kind) for name, kind in ARRAYS.items()}
    return {**arrays, _RELIABILITY: np.array(bins, np.float64)}


def load_calibration(value: Any, tensors: Mapping[str, Any], labels: list[Label]) -> Calibration | None:
    """Inverse of both, checked."""
    if value is None:
        return None
    keys = {"calibration_temperature", "n_impossible", "log_likelihood", "data_checksum", "scheme"}
    if not isinstance(value, dict) or set(value) != keys:
        raise InputError(f"calibration is no object with {', '.join(sorted(keys))}")
    has_true_spans = any(f"calibration.{name}" in tensors for name in _LATER)
    missing = {name for name in _LATER if not has_true_spans}
    if f"calibration.{_SENTENCES}" not in tensors:
        missing.add(_SENTENCES)
    arrays = {
        name: np.zeros(0, kind) if name in missing else _array(tensors, f"calibration.{name}", kind, 1)
        for name, kind in ARRAYS.items()
    }
    if not has_true_spans:
        arrays["true_span_ptr"] = np.zeros(len(arrays["ptr"]), np.int64)
    before, after = _reliabilities(_array(tensors, _RELIABILITY, np.float64, 2), len(arrays["sureness"]))
    found = Calibration(
        calibration_temperature=_number(value["calibration_temperature"], "calibration_temperature"),
        n_impossible=_count(value["n_impossible"]), log_likelihood=_likelihoods(value["log_likelihood"]),
        before=before, after=after, data_checksum=_text(value["data_checksum"]), scheme=_text(value["scheme"]),
        **arrays,
    )  # fmt: skip
    _check(found, labels)
    return found


def _array(tensors: Mapping[str, Any], name: str, kind: type[np.generic], n_dims: int) -> Any:
    tensor = tensors.get(name)
    if tensor is None or tensor.dtype != kind or tensor.ndim != n_dims:
        raise InputError(f"tensor {name!r} is missing, or not {n_dims} dimensions of {np.dtype(kind)}")
    return tensor


def _reliabilities(bins: Any, n_tokens: int) -> tuple[Reliability, Reliability]:
    if bins.shape != (6, N_BINS):
        raise InputError(f"{_RELIABILITY} has shape {bins.shape}, expected (6, {N_BINS})")
    counts, shares = bins[[0, 3]], bins[[1, 2, 4, 5]]
    is_counted = np.all((counts >= 0.0) & (counts % 1 == 0)) and np.all(counts.sum(axis=1) == n_tokens)
    if not is_counted or not np.all((shares >= 0.0) & (shares <= 1.0 + 1e-9)):
        raise InputError(f"{_RELIABILITY} does not hold bins of the calibration's tokens")
    before, after = (Reliability(side[0].astype(np.int64), side[1], side[2]) for side in (bins[:3], bins[3:]))
    return before, after


def _check(found: Calibration, labels: list[Label]) -> None:
    n, n_tokens, n_spans = found.n_sentences, found.n_tokens, len(found.span_sureness)
    _check_ptr(found.ptr, n_tokens, "calibration.ptr", least=1)
    _check_ptr(found.span_ptr, n_spans, "calibration.span_ptr", least=0)
    n_true = len(found.true_span_probability)
    _check_ptr(found.true_span_ptr, n_true, "calibration.true_span_ptr", least=0)
    sizes = {
        "true_probability": n_tokens, "is_wrong": n_tokens, "sequence_probability": n, "unknown_share": n,
        "span_ptr": n + 1, "span_is_wrong": n_spans, "true_span_ptr": n + 1, "true_span_is_found": n_true,
    }  # fmt: skip
    if len(found.sentences):  # the first calibrations have not kept them
        sizes["sentences"] = n
    for name, size in sizes.items():
        if len(getattr(found, name)) != size:
            raise InputError(f"calibration.{name} has {len(getattr(found, name))} elements, expected {size}")
    for name, kind in ARRAYS.items():
        values = getattr(found, name)
        # What has a NaN lies in no interval.
        if kind in (np.float32, np.uint8) and len(values) and not (values.min() >= 0 and values.max() <= 1.000001):
            raise InputError(f"calibration.{name} has values that are not between 0 and 1")
    if found.n_impossible > n:
        raise InputError("calibration has more impossible sentences than sentences")
    if not 0.99 * LOWEST <= found.calibration_temperature <= 1.01 * HIGHEST:
        raise InputError(f"the calibration temperature is not between {LOWEST} and {HIGHEST}")
    if found.scheme != scheme_of(labels):
        raise InputError("the scheme of the calibration is not that of the labels")


def _check_ptr(ptr: Any, end: int, name: str, least: int) -> None:
    if len(ptr) < 2 or ptr[0] != 0 or ptr[-1] != end or np.any(ptr[1:] < ptr[:-1] + least):
        raise InputError(f"{name} must rise from 0 to {end}")


def _number(value: Any, name: str) -> float:
    if type(value) not in (int, float) or not abs(value) < 1e100:
        raise InputError(f"{name} is no number")
    return float(value)


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 40:
        raise InputError("n_impossible is no count")
    return value


def _likelihoods(value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise InputError("log_likelihood is no pair of numbers")
    before, after = (-np.inf if item == "-inf" else _number(item, "log_likelihood") for item in value)
    return float(before), float(after)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InputError("data_checksum and scheme of the calibration must be text")
    return value
