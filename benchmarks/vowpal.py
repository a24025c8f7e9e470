"""Vowpal Wabbit as a tagger ("learning to search"), run as a reference on the same attributes.

`accuracy.py` imports `train_vowpal`. Needs the package `vowpalwabbit` (extra `benchmarks`).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import peers

# In its text format these separate features, namespaces and weights.
_ESCAPES = str.maketrans({" ": "\\s", "\t": "\\t", ":": "\\c", "|": "\\p", "\n": "\\n"})


class VowpalRun(NamedTuple):
    """Wall and processor time of training from the text file, size of the model file, and the labels found."""

    seconds: float
    cpu_seconds: float
    model_bytes: int
    predictions: list[list[str]]


def train_vowpal(
    X: Sequence[Sequence[str]], y: Sequence[Sequence[str]], X_test: Sequence[Sequence[str]], passes: int = 5
) -> VowpalRun:
    """Search for sequences with its own defaults, `passes` passes and 2**24 weights; then label `X_test`."""
    from vowpalwabbit import Workspace

    labels = sorted({label for sentence in y for label in sentence})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder / "train", X, [[labels.index(label) + 1 for label in sentence] for sentence in y])
        _write(folder / "test", X_test, [[1] * len(sentence) for sentence in X_test])
        began, cpu_began = time.perf_counter(), time.process_time()
        Workspace(
            f"-d {folder / 'train'} --cache_file {folder / 'cache'} -k --passes {passes} --holdout_off -b 24 "
            f"--search {len(labels)} --search_task sequence -f {folder / 'model'} --quiet"
        ).finish()
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
        Workspace(f"-d {folder / 'test'} -t -i {folder / 'model'} -p {folder / 'labels'} --quiet").finish()
        rows = [row.split() for row in (folder / "labels").read_text().splitlines() if row.strip()]
        found = [[labels[int(number) - 1] for number in row] for row in rows]
        return VowpalRun(seconds, cpu_seconds, (folder / "model").stat().st_size, found)


def _write(path: Path, sentences: Sequence[Sequence[str]], numbers: Sequence[Sequence[int]]) -> None:
    with path.open("w", encoding="utf-8") as out:
        for tokens, row in zip(sentences, numbers, strict=True):
            for attributes, number in zip(peers.usual_attributes(tokens), row, strict=True):
                out.write(f"{number} |a {' '.join(_features(attributes))}\n")
            out.write("\n")


def _features(attributes: peers.Attributes) -> list[str]:
    """One word a feature; flags that are false are left out."""
    return [
        (name if value is True else f"{name}={value}").translate(_ESCAPES)
        for name, value in attributes.items()
        if value is not False
    ]
