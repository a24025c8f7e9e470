"""Data sets of the experiments: found in a folder or given as files, read once, passed on as bytes."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vcrf.data import Corpus, read_corpus
from vcrf.errors import InputError
from vcrf.experiments.protocol import N_FOLDS

_SUFFIXES = (".conllu", ".conllu.gz", ".conllu.bz2", ".conllu.xz")


class Known(NamedTuple):
    """A data set of the paper: the column of its labels, the splits that the paper had, its name there."""

    tag: str
    splits: tuple[str, ...] | None
    paper_name: str


# By the name of the file. Which column has the paper's number of labels is told by the data's own description.
KNOWN = {
    "basque": Known("upos", None, "Basque"),
    "dutch-alpino": Known("upos", None, "Dutch"),
    "english": Known("upos", None, "English"),
    "finnish-ftb": Known("upos", None, "Finnish-FTB"),
    "finnish-tdt": Known("xpos", ("train", "dev"), "Finnish"),
    "hindi": Known("upos", None, "Hindi"),
    "tamil": Known("upos", None, "Tamil"),
    "twitter-tweebank": Known("xpos", None, "Twitter"),
}
# The paper's names, however they are written.
_ALIASES = {known.paper_name.lower(): name for name, known in KNOWN.items()}


class DataFile(NamedTuple):
    """Where a data set is, and how to read it."""

    name: str
    path: Path
    tag: str | int
    splits: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Dataset:
    """A data set in memory.

    Attributes
    ----------
    name : of the file, without its suffixes
    tag : the column of the labels
    blob : sentences and labels, compressed (see `unpack`)
    checksum : SHA-256 of sentences and labels
    n_sentences, n_tokens, n_unique, n_labels
    n_whole : sentences of the data that this is a random part of; None if it is whole
    """

    name: str
    tag: str | int
    blob: bytes
    checksum: str
    n_sentences: int
    n_tokens: int
    n_unique: int
    n_labels: int
    n_whole: int | None = None

    @classmethod
    def from_corpus(cls, name: str, tag: str | int, corpus: Corpus) -> Dataset:
        """Pack a corpus."""
        content = json.dumps([corpus.tokens, corpus.labels], ensure_ascii=False, separators=(",", ":")).encode()
        unique = {word for sentence in corpus.tokens for word in sentence}
        return cls(
            name, tag, zlib.compress(content, 6), hashlib.sha256(content).hexdigest(), len(corpus), corpus.n_tokens,
            len(unique), len(corpus.label_set),
        )  # fmt: skip

    @cached_property
    def paper_name(self) -> str | None:
        """The row of the paper's tables, if there is one."""
        return KNOWN[self.name].paper_name if self.name in KNOWN else None


def unpack(blob: bytes) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences and labels of `Dataset.blob`."""
    tokens, labels = json.loads(zlib.decompress(blob))
    return tokens, labels


def read_dataset(file: DataFile, limit: int | None = None, seed: int = 0) -> Dataset:
    """Read a file; raise InputError with file and line if it is malformed, and if it is too small for the folds.

    Of a file with more than `limit` sentences so many are drawn, which stay in order.
    """
    corpus = read_corpus(file.path, tag=file.tag, split=file.splits)
    n = len(corpus)
    if n < N_FOLDS:
        raise InputError(f"{file.path}: {N_FOLDS} folds need at least {N_FOLDS} sentences: got {n}.")
    if limit is None or n <= limit:
        return Dataset.from_corpus(file.name, file.tag, corpus)
    drawn = np.sort(np.random.default_rng([seed, 2]).permutation(n)[:limit])  # apart from the folds and the noise
    return replace(Dataset.from_corpus(file.name, file.tag, corpus.take(drawn.tolist())), n_whole=n)


def find_data(paths: Sequence[Path], names: Iterable[str] | None, tag: str | int | None) -> list[DataFile]:
    """Files of the data sets asked for, in the order of `names`; all that are there if that is None.

    Parameters
    ----------
    paths : folders with CoNLL-U files, and files
    names : of files without their suffixes, or the paper's names of them
    tag : column of the labels; None means that of the paper for its data sets, and UPOS for others
    """
    found = {file.name: file for file in _files(paths, tag)}
    if not found:
        raise InputError(f"{_listing(paths)}: no data set. Expected files that end in {', '.join(_SUFFIXES)}.")
    if names is None:
        return list(found.values())
    chosen = []
    for name in dict.fromkeys(names):
        actual = name if name in found else _ALIASES.get(name.lower(), name)
        if actual not in found:
            raise InputError(f"There is no data set {name!r} in {_listing(paths)}: expected one of {', '.join(found)}.")
        chosen.append(found[actual])
    if not chosen:
        raise InputError(f"No data set is named: expected some of {', '.join(found)}.")
    return chosen


def _files(paths: Sequence[Path], tag: str | int | None) -> Iterable[DataFile]:
    taken: dict[str, Path] = {}
    for path in _listed(paths):
        name = path.name
        for suffix in (".gz", ".bz2", ".xz", ".conllu"):
            name = name.removesuffix(suffix)
        if name in taken:
            if taken[name].samefile(path):
                continue
            raise InputError(f"{taken[name]} and {path} are both named {name!r}. Rename one, or leave it out.")
        taken[name] = path
        known = KNOWN.get(name, Known("upos", None, ""))
        yield DataFile(name, path, known.tag if tag is None else tag, known.splits)


def _listed(paths: Sequence[Path]) -> Iterable[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(file for file in path.iterdir() if file.name.endswith(_SUFFIXES) and file.is_file())
        elif path.exists():
            yield path
        else:
            raise InputError(f"{path}: no such file or folder. Give a folder of CoNLL-U files, or files.")


def _listing(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths))
