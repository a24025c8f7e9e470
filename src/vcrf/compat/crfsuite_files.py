"""Models to CRFsuite's files, whose labels are text."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from vcrf.errors import InputError
from vcrf.files import replacing
from vcrf.model import Model
from vcrf.model.crfsuite import encode_crfsuite
from vcrf.types import Label


def write_crfsuite(model: Model, path: str | os.PathLike[str]) -> None:
    """Write the CRFsuite file of a model, whole or not at all."""
    content = encode_crfsuite(model)
    with replacing(Path(path)) as file:
        file.write(content)


def with_text_labels(model: Model) -> Model:
    """The model with every label as text."""
    return replace(model, labels=[str(label) for label in model.labels])


def check_labels_are_text(labels: Iterable[Label]) -> None:
    """Refuse labels that a CRFsuite file cannot hold."""
    for label in labels:
        if not isinstance(label, str):
            raise InputError(
                f"A CRFsuite file holds labels that are text, got {label!r}. Convert the labels to str, or leave "
                "model_filename out and call save(path)."
            )
