"""Facts of a training run: what was solved, how well, on which data, with which versions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vcrf.data.layout import Layout, conllu_layout
from vcrf.families.explicit import AttributeText
from vcrf.families.text import Text
from vcrf.problem import Candidates
from vcrf.solvers.result import IterationRecord, SolverResult, Status
from vcrf.strings import StringList
from vcrf.types import UInts32


@dataclass(frozen=True)
class TrainingFacts:
    """One training run. `objective` and `gap` are in the problem's units: mean over sentences + penalty.

    Attributes
    ----------
    data_checksum : SHA-256 of the sentences and labels trained on (see `data_checksum`)
    n_candidates : attributes x tag patterns before any reduction
    n_columns, n_kept_columns : distinct columns, and those left by count screening
    n_active : (merged) features with a weight
    status : name of a `Status`
    versions : of vcrf, numpy and numba at training
    history : records of the solver's rounds
    file_format, form_column, tag_column, n_file_columns : the `Layout` of the training file; "" without a file
    tag_bundle : its columns where a label is a bundle, as in "UPOS+FEATS"; "" where it is one column
    """

    data_checksum: str
    n_sentences: int
    n_tokens: int
    n_candidates: int
    n_columns: int
    n_kept_columns: int
    n_active: int
    objective: float
    gap: float
    kkt_violation: float
    status: str
    n_passes: int
    seconds: float
    versions: dict[str, str] = field(default_factory=dict)
    history: list[IterationRecord] = field(default_factory=list)
    file_format: str = ""
    form_column: int = 0
    tag_column: int = 0
    n_file_columns: int = 0
    tag_bundle: str = ""

    @property
    def layout(self) -> Layout | None:
        """Format and columns of the training file."""
        if not self.file_format:
            return None
        if self.tag_bundle:
            return conllu_layout(self.tag_bundle, self.form_column)
        return Layout(self.file_format, self.form_column, self.tag_column, self.n_file_columns)

    def with_layout(self, layout: Layout) -> TrainingFacts:
        """Return the same facts, with the format and columns of the training file."""
        return replace(
            self,
            file_format=layout.format,
            form_column=layout.form,
            tag_column=layout.tag,
            n_file_columns=layout.n_columns,
            tag_bundle=layout.bundle,
        )


@dataclass(frozen=True)
class StoredResult(SolverResult):
    """A solver's result as a model file keeps it: without the merged features, whose number it knows."""

    n_stored: int = 0

    @property
    def n_active(self) -> int:
        return self.n_stored


def training_facts(problem: Candidates, result: SolverResult, labels: Sequence[str | int]) -> TrainingFacts:
    """Collect the facts of a run that has ended."""
    return TrainingFacts(
        data_checksum=data_checksum(problem.text, problem.y, labels),
        n_sentences=len(problem.weights),
        n_tokens=problem.n_instances,
        n_candidates=int(problem.n_candidates),
        n_columns=int(problem.columns.class_counts.sum()),
        n_kept_columns=int(result.n_kept_columns),
        n_active=result.n_active,
        objective=float(result.objective),
        gap=float(result.gap),
        kkt_violation=float(result.kkt_violation),
        status=result.status.name,
        n_passes=int(result.n_passes),
        seconds=float(result.seconds),
        versions={name: _version_of(name) for name in ("vcrf", "numpy", "numba")},
        history=list(result.history),
    )


def stored_result(facts: TrainingFacts) -> StoredResult:
    """Return the result that the facts tell of."""
    return StoredResult(
        np.zeros(0, np.int64), np.zeros(0), facts.objective, facts.gap, facts.kkt_violation, Status[facts.status],
        facts.n_passes, facts.seconds, list(facts.history), facts.n_kept_columns, facts.n_active,
    )  # fmt: skip


def data_checksum(text: Text, y: UInts32, labels: Sequence[str | int]) -> str:
    """SHA-256 of sentences and labels, as training sees them: without sentences that are empty or of weight 0.

    It depends on the content alone, because words, attributes and labels are numbered in a fixed order.
    """
    digest = hashlib.sha256()
    arrays: list[NDArray[Any]] = [text.sent_ptr, text.word_ids, y]
    strings = [text.words, [str(label) for label in labels]]
    if isinstance(text, AttributeText):
        arrays += [text.positions, text.attributes, text.values, text.zero_positions, text.zero_attributes]
        strings.append(text.names)
    for listed in strings:
        encoded = StringList.encode(listed)
        arrays += [encoded.offsets, encoded.data]
    for array in arrays:
        # The length first: two arrays that meet elsewhere have another sum.
        digest.update(len(array).to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _version_of(package: str) -> str:
    # Late: a model that tags asks for no versions.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:  # a source tree that is not installed
        return "0+unknown"
