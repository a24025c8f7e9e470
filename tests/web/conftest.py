"""Models of an invented language, served."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import conllu
from vcrf import VCRF
from vcrf.compat import CRF
from vcrf.compat.conversion import read_any, write_any
from vcrf.data import Corpus, SyntheticLanguage
from vcrf.data.layout import conllu_layout

N_TRAIN, N_DEV, N_TEST = 60, 40, 30

# Sentences of attributes, and their labels.
X = [
    [{"bias": 1.0, "w": w, "suffix": w[-2:]} for w in tokens]
    for tokens in SyntheticLanguage(n_labels=3, n_stems=30).sample(30, seed=1).tokens
]
Y = SyntheticLanguage(n_labels=3, n_stems=30).sample(30, seed=1).labels


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """Sentences for training, calibration and trying."""
    return SyntheticLanguage(n_labels=5, n_stems=60).sample(N_TRAIN + N_DEV + N_TEST)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the files are."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def treebank(corpus: Corpus, folder: Path) -> Path:
    """One file with the splits train, dev and test."""
    path = folder / "invented.conllu"
    parts = {"train": corpus[:N_TRAIN], "dev": corpus[N_TRAIN : N_TRAIN + N_DEV], "test": corpus[N_TRAIN + N_DEV :]}
    path.write_text("".join(conllu(part, name) for name, part in parts.items()), encoding="utf-8")
    return path


def _saved(tagger: VCRF, path: Path) -> Path:
    from dataclasses import replace

    facts = tagger.model_.facts
    assert facts is not None
    tagger.model_ = replace(tagger.model_, facts=facts.with_layout(conllu_layout("upos")))
    tagger.save(path)
    return path


@pytest.fixture(scope="session")
def good(corpus: Corpus, folder: Path) -> Path:
    """A model that is calibrated."""
    tagger = VCRF(recipe="paper", base_strength=0.02, random_state=0)
    train, dev = corpus[:N_TRAIN], corpus[N_TRAIN : N_TRAIN + N_DEV]
    tagger.fit(train.tokens, train.labels, X_dev=dev.tokens, y_dev=dev.labels)
    tagger.calibrate(dev.tokens, dev.labels)
    return _saved(tagger, folder / "good.vcrf")


@pytest.fixture(scope="session")
def poor(corpus: Corpus, folder: Path) -> Path:
    """A worse model, and not calibrated."""
    train = corpus[:N_TRAIN]
    tagger = VCRF(recipe="paper", base_strength=0.3).fit(train.tokens, train.labels)
    return _saved(tagger, folder / "poor.vcrf")


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of CRFsuite, converted."""
    folder = tmp_path_factory.mktemp("converted")
    CRF(c1=0.1, c2=0.1, model_filename=str(folder / "m.crfsuite")).fit(X, Y)
    write_any(read_any(folder / "m.crfsuite"), folder / "m.vcrf")
    return folder / "m.vcrf"


@pytest.fixture(scope="session")
def models(good: Path, poor: Path, treebank: Path) -> Any:
    """Both, with labelled sentences."""
    from vcrf import read_corpus
    from vcrf.web.models import Models, read_served

    served = [read_served(path, path.stem) for path in (good, poor)]
    return Models(served, read_corpus(treebank, split="test"), treebank.name)


@pytest.fixture
def client(models: Any) -> Iterator[Any]:
    """A client of a service without a token."""
    yield from opened(models)


def opened(models: Any, **options: Any) -> Iterator[Any]:
    """A client of a service; it is closed at the end."""
    import httpx

    from vcrf.web.server import address_of, listen, serving
    from vcrf.web.service import Service

    service, listening = Service(models, **options), listen("127.0.0.1", 0)
    address = address_of(listening, "127.0.0.1")
    with serving(service, listening), httpx.Client(base_url=address, trust_env=False, timeout=60.0) as client:
        client.service = service  # type: ignore[attr-defined]
        yield client
