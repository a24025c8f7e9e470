"""The calibration in a model file: versions, and forged files that are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vcrf
from hostile import Parts
from vcrf.errors import InputError
from vcrf.estimators import file as estimator_file


@pytest.fixture(scope="module")
def content() -> bytes:
    """The file of a calibrated tagger of entities."""
    X, y = [["a", "b"], ["b"], ["a"]] * 3, [["B-X", "O"], ["O"], ["B-X"]] * 3
    tagger = vcrf.VCRF(n_jobs=1).fit(X, y).calibrate([["a", "c"], ["c"], ["d"]], [["B-X", "O"], ["Z"], ["B-X"]])
    return estimator_file.to_bytes(tagger)


def test_only_calibrated_files_have_the_new_version(content: bytes) -> None:
    """An older vcrf reads the others, and refuses what would have other probabilities there."""
    assert Parts(content).document["version"] == 2
    plain = vcrf.VCRF(n_jobs=1).fit([["a"]], [["A"]])
    assert Parts(estimator_file.to_bytes(plain)).document["version"] == 1


def test_files_before_calibration_are_read() -> None:
    """The golden file has none, and says so when it is asked to promise."""
    golden = vcrf.load(Path(__file__).parent / "golden" / "format-1.vcrf")
    assert golden.model_.calibration is None
    with pytest.raises(InputError, match="not calibrated"):
        golden.predict_selective([["mira"]])


def test_the_calibration_comes_back(content: bytes) -> None:
    """Every number of it."""
    again = estimator_file.from_buffer(content, "m")
    found = again.model_.calibration
    assert (found.n_sentences, found.n_tokens, found.n_impossible, found.scheme) == (3, 4, 1, "BIO")
    assert estimator_file.to_bytes(again) == content
    assert found.before.n_tokens.sum() == 4


def test_first_calibrations_are_read(content: bytes) -> None:
    """They have no true spans: everything but sets of spans works, and these say what is missing."""
    parts = Parts(content)
    for name in ("ptr", "probability", "is_found"):
        del parts.tensors[f"calibration.true_span_{name}"]
    tagger = estimator_file.from_buffer(parts.assemble(), "m")
    assert tagger.model_.calibration.true_span_ptr.tolist() == [0, 0, 0, 0]
    assert tagger.predict_sets([["a"]], 0.5).sets[0][0][0] == "B-X"
    with pytest.raises(InputError, match="sentences with a span, there are 0"):
        tagger.predict_sets([["a"]], 0.5, unit="span")


def test_files_that_do_not_know_their_sentences_are_read(content: bytes) -> None:
    """Nothing is shared with what is not known; the number of those that are known has to be right."""
    parts = Parts(content)
    del parts.tensors["calibration.sentences"], parts.tensors["sentences"]
    tagger = estimator_file.from_buffer(parts.assemble(), "m")
    assert len(tagger.model_.sentences) == len(tagger.model_.calibration.sentences) == 0
    tagger.calibrate([["a", "b"]], [["B-X", "O"]])


def put(name: str, index: Any, value: Any) -> Callable[[Parts], None]:
    """Change one element of a tensor."""

    def change(parts: Parts) -> None:
        parts.tensors[f"calibration.{name}"][index] = value

    return change


def cut(name: str) -> Callable[[Parts], None]:
    """Take the last element of a tensor away."""

    def change(parts: Parts) -> None:
        parts.tensors[f"calibration.{name}"] = parts.tensors[f"calibration.{name}"][:-1].copy()

    return change


def say(key: str, value: Any) -> Callable[[Parts], None]:
    """Change a value of the document."""

    def change(parts: Parts) -> None:
        parts.document["calibration"][key] = value

    return change


FORGERIES = [
    put("ptr", 0, 1), put("ptr", 1, 0), put("ptr", -1, 99), put("span_ptr", 1, -5), put("sureness", 0, np.nan),
    put("sureness", 0, 2.0), put("true_probability", 0, -1.0), put("is_wrong", 0, 7), put("unknown_share", 0, np.inf),
    put("sequence_probability", 0, np.nan), put("span_sureness", 0, np.nan), put("span_is_wrong", 0, 9),
    put("true_span_ptr", 1, -5), put("true_span_probability", 0, np.nan), put("true_span_is_found", 0, 9),
    put("reliability", (0, 0), 1e300), put("reliability", (1, 0), np.nan), put("reliability", (3, 2), 0.5),
    *map(cut, ("ptr", "sureness", "true_probability", "is_wrong", "sequence_probability", "unknown_share", "span_ptr",
               "span_sureness", "span_is_wrong", "true_span_ptr", "true_span_probability", "true_span_is_found",
               "reliability", "sentences")),
    say("calibration_temperature", 0.0), say("calibration_temperature", "1"), say("calibration_temperature", 1e9),
    say("n_impossible", -1), say("n_impossible", 99), say("n_impossible", 1.5), say("scheme", "BILOU"),
    say("scheme", 3), say("data_checksum", None), say("log_likelihood", [0.0]), say("log_likelihood", ["nan", 0.0]),
    say("more", 1),
    lambda parts: parts.tensors.pop("calibration.true_span_ptr"),
    lambda parts: parts.tensors.pop("calibration.ptr"), lambda parts: parts.document.update(calibration=[]),
]  # fmt: skip


@pytest.mark.parametrize("change", FORGERIES, ids=range(len(FORGERIES)))
def test_forged_calibrations_are_refused(content: bytes, change: Callable[[Parts], None]) -> None:
    """With right checksums: what does not fit is an InputError that names the file."""
    parts = Parts(content)
    change(parts)
    with pytest.raises(InputError, match="m: the model file is not valid"):
        estimator_file.from_buffer(parts.assemble(), "m")
