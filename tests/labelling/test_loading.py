"""A tagger from a file, sent to other processes."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import vcrf
from vcrf import VCRF, load_tagger
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError
from vcrf.labelling import loading
from vcrf.labelling.tagger import ModelTagger

CORPUS = SyntheticLanguage(n_labels=4, n_stems=40).sample(30, seed=2)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model."""
    path = tmp_path_factory.mktemp("models") / "small.vcrf"
    VCRF(recipe="paper", words=1, affix=1, n_jobs=1).fit(CORPUS.tokens, CORPUS.labels).save(path)
    return path


def test_a_pickled_tagger_is_small_and_read_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the path; another one that comes to the same process finds the model there."""
    tagger = load_tagger(path)
    data = pickle.dumps(tagger)
    assert len(data) < 500
    loading._kept.cache_clear()
    first, second = pickle.loads(data), pickle.loads(data)
    assert first.model_ is second.model_
    assert first.predict(CORPUS.tokens) == tagger.predict(CORPUS.tokens)
    monkeypatch.chdir(path.parent)
    relative = load_tagger(path.name)
    monkeypatch.chdir(path.parent.parent)
    assert pickle.loads(pickle.dumps(relative)).predict(CORPUS.tokens) == tagger.predict(CORPUS.tokens)


def test_constraints_go_with_it(tmp_path: Path) -> None:
    """Those that were given, in place of the model's own."""
    VCRF(recipe="paper", constraints="BIO").fit([["a", "b"]], [["B-X", "I-X"]]).save(tmp_path / "m.vcrf")
    own, free = load_tagger(tmp_path / "m.vcrf"), load_tagger(tmp_path / "m.vcrf", "BILOU")
    assert pickle.loads(pickle.dumps(own)).constraints == "BIO"
    assert pickle.loads(pickle.dumps(free)).constraints == "BILOU"


def test_another_file_at_the_path_is_refused(path: Path, tmp_path: Path) -> None:
    """Labels of two models would be mixed."""
    copy = tmp_path / "copy.vcrf"
    copy.write_bytes(path.read_bytes())
    data = pickle.dumps(load_tagger(copy))
    VCRF(recipe="paper").fit(CORPUS.tokens[:5], CORPUS.labels[:5]).save(copy)
    with pytest.raises(InputError, match="another model than the one that was sent"):
        pickle.loads(data)
    copy.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        pickle.loads(data)


def test_a_tagger_with_another_model_is_sent_whole(path: Path) -> None:
    """It is not that of the file any more."""
    tagger = load_tagger(path)
    tagger.model_ = VCRF(recipe="paper").fit(CORPUS.tokens[:5], CORPUS.labels[:5]).model_
    again = pickle.loads(pickle.dumps(tagger))
    assert type(again) is ModelTagger
    assert np.array_equal(again.model_.weights, tagger.model_.weights)


def test_it_is_public() -> None:
    """Under its name."""
    assert vcrf.load_tagger is load_tagger
    assert "load_tagger" in vcrf.__all__


@pytest.mark.filterwarnings("default")
def test_dask_bag(path: Path) -> None:
    """The recipe of docs/scaling.md, on processes."""
    bag = pytest.importorskip("dask.bag")
    import dask

    tagger = load_tagger(path)
    sentences = bag.from_sequence(CORPUS.tokens, npartitions=3)
    with dask.config.set(scheduler="processes", num_workers=1):
        found = sentences.map_partitions(tagger.predict).compute()
    assert [list(labels) for labels in found] == tagger.predict(CORPUS.tokens)
