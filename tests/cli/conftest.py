"""A small invented treebank, and models trained on it through the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Call, conllu
from vcrf.data import Corpus, SyntheticLanguage

N_TRAIN, N_TEST = 60, 20


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """An invented corpus."""
    return SyntheticLanguage(n_labels=5, n_stems=60).sample(N_TRAIN + N_TEST)


@pytest.fixture(scope="session")
def treebank_file(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file with the splits train and test."""
    path = tmp_path_factory.mktemp("treebank") / "invented.conllu"
    path.write_text(conllu(corpus[:N_TRAIN], "train") + conllu(corpus[N_TRAIN:], "test"), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def call() -> Call:
    """Call the command in this process."""
    return Call()


@pytest.fixture(scope="session")
def model(call: Call, treebank_file: Path) -> Path:
    """A model trained on the split train, labels UPOS."""
    path = treebank_file.parent / "upos.vcrf"
    call("train", treebank_file, "--split", "train", "-o", path, "--recipe", "paper", "--base-strength", "0.02")
    return path


@pytest.fixture(scope="session")
def xpos_model(call: Call, treebank_file: Path) -> Path:
    """A weaker model, labels XPOS."""
    path = treebank_file.parent / "xpos.vcrf"
    call(
        "train", treebank_file, "--split", "train", "-o", path, "--recipe", "paper", "--base-strength", "0.2", "--tag",
        "xpos",
    )  # fmt: skip
    return path
