"""Checkpoints of a training on a cluster: the weights of each round in a file, for whoever begins again."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from vcrf.errors import InputError
from vcrf.files import replacing
from vcrf.solvers.result import IterationRecord, SolverResult, Status
from vcrf.types import Floats, Ints


class Checkpoint:
    """A watch that keeps the weights after each scan.

    Parameters
    ----------
    path : of the file
    digest : of what is trained on: sentences, labels and columns, whose numbers the file has
    """

    is_enough, preferred = False, None

    def __init__(self, path: str | os.PathLike[str], digest: str) -> None:
        self.path, self.digest = Path(path), digest

    def look(self, record: IterationRecord, features: Ints, w: Floats) -> IterationRecord:
        """Write the weights of a round; the file is whole at any moment."""
        if record.phase == "scan":
            some = np.flatnonzero(w)
            with replacing(self.path) as file:
                np.savez(file, digest=np.array(self.digest), features=features[some], weights=w[some])
        return record

    def start(self) -> SolverResult | None:
        """Where a training ended, if there is a file."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as found:
                digest, features, weights = str(found["digest"]), found["features"], found["weights"]
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise InputError(
                f"{self.path}: this is no checkpoint ({error}). Remove it, or name another file."
            ) from error
        if digest != self.digest:
            raise InputError(
                f"{self.path}: a checkpoint of other sentences, labels, families or strengths. Remove it, or name "
                "another file."
            )
        return SolverResult(features, weights, np.inf, np.inf, np.inf, Status.INTERRUPTED, 0, 0.0)

    def remove(self) -> None:
        """The training is over."""
        self.path.unlink(missing_ok=True)
