"""From one model file to another: CRFsuite's, ours, and pickles of sklearn_crfsuite."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Any

from vcrf.compat.crf import CRF
from vcrf.compat.crfsuite_files import write_crfsuite
from vcrf.compat.pickles import crfsuite_in_pickle
from vcrf.errors import InputError
from vcrf.estimators import SequenceEstimator
from vcrf.estimators.file import load
from vcrf.model import container
from vcrf.model.crfsuite import MAGIC, decode_crfsuite

OURS, THEIRS = ".vcrf", ".crfsuite"


def read_any(path: Path) -> SequenceEstimator:
    """The estimator of a .vcrf or .crfsuite file, or of a pickle of sklearn_crfsuite: told by what is in it."""
    data = bytes(container.map_file(path))
    if data.startswith(MAGIC):
        return _crf_of(data, str(path), {})
    if data[8:10] == b'{"':  # safetensors: the length of the header, and the header
        loaded: SequenceEstimator = load(path)
        return loaded
    return _crf_of(*_taken_out(data, str(path)))


def write_any(estimator: SequenceEstimator, path: Path) -> None:
    """Write a model in the format of the path's suffix. A CRFsuite file has no room for a calibration: that is told."""
    check_suffix(path)
    if path.suffix == THEIRS:
        model = estimator._model()
        write_crfsuite(model, path)
        if model.calibration is not None:
            warnings.warn(
                f"{path}: without the calibration, which CRFsuite's files have no place for: its probabilities are "
                f"those before calibration (T = {model.calibration.calibration_temperature:.3f}).",
                stacklevel=2,
            )
    else:
        estimator.save(path)


def check_suffix(path: Path) -> None:
    """Refuse a path that does not say which format is wanted."""
    if path.suffix not in (OURS, THEIRS):
        raise InputError(f"{path}: expected a name that ends in {OURS} or {THEIRS}, which says what to write.")


def _taken_out(data: bytes, name: str) -> tuple[bytes, str, dict[str, Any]]:
    model, state = crfsuite_in_pickle(data, name)
    return model, name, state


def _crf_of(data: bytes, name: str, state: dict[str, Any]) -> CRF:
    """A CRF that was not trained here: it has no objective."""
    known = inspect.signature(CRF).parameters
    plain: dict[str, Any] = {
        key: value
        for key, value in state.items()
        if key in known and key not in ("model_filename", "trainer_cls") and isinstance(value, (str, bool, int, float))
    }
    crf = CRF(**plain)
    crf.model_ = decode_crfsuite(data, name)
    crf.classes_ = list(crf.model_.labels)
    return crf
