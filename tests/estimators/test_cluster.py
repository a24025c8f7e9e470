"""Training on blocks: the certificate and labels of one machine, whatever the workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vcrf import VCRF, VStructBoost
from vcrf.cluster import Here, OnDask
from vcrf.data import Corpus, small_english
from vcrf.errors import InputError, VcrfError
from vcrf.estimators import cluster
from vcrf.estimators.cluster import blocks_of_sentences, fit_blocks
from vcrf.solvers.result import Status
from vcrf.structures.block import ChainBlock


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """A few sentences of the small English corpus."""
    return small_english(80)


def fit(tagger: VCRF, corpus: Corpus, runner: Any, of_block: int = 200, checkpoint: Any = None) -> VCRF:
    """On blocks of so many tokens."""
    return fit_blocks(tagger, blocks_of_sentences(corpus.tokens, corpus.labels, of_block), runner, checkpoint)


def same(a: VCRF, b: VCRF) -> bool:
    """Whether two trainings found the same, to the last bit."""
    facts = [(t.objective_, t.gap_, t.result_.n_passes, t.status_, t.model_.names) for t in (a, b)]
    arrays = ("weights", "keys", "ptr", "codes", "lengths", "sentences", "vocabulary")
    return facts[0] == facts[1] and all(
        np.array_equal(getattr(a.model_, name), getattr(b.model_, name)) for name in arrays
    )


@pytest.mark.parametrize(
    "parameters", [{}, {"norm": "l2"}, {"recipe": "paper"}, {"tags": 1}, {"families": "paper"}], ids=str
)
def test_one_block_is_one_machine_and_more_have_its_certificate(corpus: Corpus, parameters: dict[str, Any]) -> None:
    """Dual start aside, which a cluster does not have; facts, names and fingerprints are the same too."""
    one = VCRF(dual_start=False, inference="dense", **parameters).fit(corpus)
    whole = VCRF(**parameters).fit(corpus, client=Here())
    assert same(one, whole)
    assert (one.n_columns_, one.n_candidates_) == (whole.n_columns_, whole.n_candidates_)
    assert one.families_ == whole.families_
    cut = fit(VCRF(**parameters), corpus, Here())
    assert cut.status_ is Status.CONVERGED
    # Both certify the same optimum.
    assert abs(cut.objective_ - one.objective_) <= max(cut.gap_, one.gap_)
    assert (one.n_columns_, one.n_candidates_) == (cut.n_columns_, cut.n_candidates_)
    assert [facts.n_columns for facts in one.families_] == [facts.n_columns for facts in cut.families_]
    agree = sum(
        a == b
        for x, y in zip(one.predict(corpus.tokens), cut.predict(corpus.tokens), strict=True)
        for a, b in zip(x, y, strict=True)
    )
    assert agree >= 0.99 * corpus.n_tokens


def test_word_classes_strengths_and_int_labels(corpus: Corpus) -> None:
    """What follows from words and sizes alone is there on a cluster."""
    classes = {word: "ab"[len(word) % 2] for sentence in corpus.tokens for word in sentence}
    names = sorted(corpus.label_set)
    y = [[names.index(label) for label in labels] for labels in corpus.labels]
    parameters = {"word_classes": classes, "complexity_strength": 0.01, "loss": None, "count_power": 0.0}
    one = VCRF(dual_start=False, inference="dense", **parameters).fit(corpus.tokens, y)
    assert same(one, VCRF(**parameters).fit(corpus.tokens, y, client=Here()))


def test_it_saves_and_loads(corpus: Corpus, tmp_path: Path) -> None:
    """The model is one like any other."""
    import vcrf

    tagger = fit(VCRF(tol=0.01), corpus, Here())
    tagger.save(tmp_path / "my.vcrf")
    assert vcrf.load(tmp_path / "my.vcrf").predict(corpus.tokens) == tagger.predict(corpus.tokens)


_KILLED = """
import os, signal, sys
from vcrf import VCRF
from vcrf.cluster import Here
from vcrf.data import small_english
from vcrf.estimators.cluster import blocks_of_sentences, fit_blocks

scans = []

def die(record):
    scans.append(record.phase == "scan")
    if sum(scans) == 4:
        os.kill(os.getpid(), signal.SIGKILL)  # after the checkpoint of this round

corpus = small_english(80)
fit_blocks(VCRF(callback=die), blocks_of_sentences(corpus.tokens, corpus.labels, 200), Here(), sys.argv[1])
"""


def test_a_driver_that_is_killed_goes_on_from_its_checkpoint(corpus: Corpus, tmp_path: Path) -> None:
    """The file holds the last round until the gap is closed; one of other data is refused."""
    path = tmp_path / "my.checkpoint"
    done = subprocess.run([sys.executable, "-c", _KILLED, str(path)], check=False, stderr=subprocess.DEVNULL)
    assert done.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == [path]
    kept = path.read_bytes()
    with pytest.raises(InputError, match=r"a checkpoint of other sentences"):
        fit(VCRF(words=0), corpus, Here(), checkpoint=path)
    assert path.read_bytes() == kept
    begun = fit(VCRF(), corpus, Here())
    resumed = fit(VCRF(), corpus, Here(), checkpoint=path)
    assert resumed.status_ is Status.CONVERGED
    assert abs(resumed.objective_ - begun.objective_) <= max(resumed.gap_, begun.gap_)
    assert resumed.history_[0].objective < begun.history_[0].objective
    assert not path.exists()
    path.write_bytes(b"no checkpoint")
    with pytest.raises(InputError, match=r"this is no checkpoint"):
        fit(VCRF(), corpus, Here(), checkpoint=path)
    path.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(VCRF(max_passes=5), corpus, Here(), checkpoint=path)
    assert path.exists()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"solver": "sgd", "norm": "l1"}, r"`solver='sgd'`"),
        ({"norm": "group"}, r"`norm='group'`"),
        ({"candidates": "observed"}, r"`candidates='observed'`"),
        ({"complexities": "massart"}, r"`complexities='massart'`"),
        ({"inference": "patterns"}, r"`inference='patterns'`"),
        ({"components": "all"}, r"`components`"),
        ({"component_pairs": "all"}, r"`component_pairs`"),
        ({"patience": 2}, r"`patience`"),
        ({"memory": "2GB"}, r"`memory`"),
        ({"tags": 3}, r"`tags` above 2"),
        ({"loss": "zero-one"}, r"Hamming losses, or none"),
    ],
)
def test_what_is_not_there_is_refused_by_name(corpus: Corpus, parameters: dict[str, Any], words: str) -> None:
    """Before the loop, with what to do."""
    with pytest.raises(InputError, match=words):
        VCRF(**parameters).fit(corpus, client=Here())


def test_arguments_and_data_that_are_not_there(corpus: Corpus) -> None:
    """Other surrogates, arguments of `fit`, open labels, feature dicts, no sentences, no y."""
    with pytest.raises(InputError, match=r"`surrogate='structboost'`"):
        VStructBoost().fit(corpus, client=Here())
    with pytest.raises(InputError, match=r"`sample_weight`"):
        VCRF().fit(corpus, client=Here(), sample_weight=[1.0] * len(corpus))
    with pytest.raises(InputError, match=r"labels are all known"):
        VCRF().fit([["a", "b"]], [["X", None]], client=Here())
    with pytest.raises(InputError, match=r"tokens that are str"):
        VCRF().fit([[{"a": 1.0}]], [["X"]], client=Here())
    with pytest.raises(InputError, match=r"`checkpoint` is for training on a cluster"):
        VCRF().fit(corpus, checkpoint="x")
    with pytest.raises(InputError, match=r"requires y to be passed"):
        VCRF().fit(corpus.tokens)
    with pytest.raises(InputError, match=r"at least one sentence"):
        cluster.read_blocks(Here(), [])


def test_a_corpus_has_its_labels_with_it(corpus: Corpus) -> None:
    """On one machine too."""
    a, b = VCRF(tol=0.1).fit(corpus), VCRF(tol=0.1).fit(corpus.tokens, corpus.labels)
    assert same(a, b)


# ----- Dask


class _Killer(OnDask):
    """Kills a worker after a task of a kind has been handed out, once for each kind."""

    def __init__(self, client: Any, kinds: list[Any]) -> None:
        super().__init__(client)
        self.kinds, self.n_killed = kinds, 0

    def submit(self, function: Any, *args: Any) -> Any:
        task = super().submit(function, *args)
        if function in self.kinds:
            self.kinds.remove(function)
            self.n_killed += 1
            os.kill(next(iter(self.client.run(os.getpid).values())), signal.SIGKILL)
        return task


@pytest.mark.filterwarnings("default")
def test_any_workers_give_the_same_bytes_and_may_be_killed(corpus: Corpus) -> None:
    """In threads and in processes; a worker is killed during a pass, and one during a scan."""
    distributed = pytest.importorskip("distributed")
    make = partial(distributed.LocalCluster, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL")
    tagger = partial(VCRF, tol=0.01)
    expected = fit(tagger(), corpus, Here())
    with make(n_workers=2, processes=False) as workers, distributed.Client(workers) as client:
        assert same(expected, fit(tagger(), corpus, client_runner := OnDask(client)))
        assert client_runner.n_bytes > 0
        assert client_runner.n_workers == 2
        tagger().fit(corpus, client=client)
    with make(n_workers=2, processes=True) as workers, distributed.Client(workers) as client:
        runner = _Killer(client, [ChainBlock.passed, ChainBlock.scan])
        assert same(expected, fit(tagger(), corpus, runner))
        assert runner.n_killed == 2


@pytest.mark.filterwarnings("default")
def test_a_scheduler_that_is_killed_leaves_the_checkpoint(corpus: Corpus, tmp_path: Path) -> None:
    """The error says that it is gone, and that training can go on."""
    pytest.importorskip("distributed")
    import socket

    from vcrf.cluster import connect

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address, path = f"tcp://127.0.0.1:{port}", tmp_path / "my.checkpoint"
    run = partial(subprocess.Popen, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    module = [sys.executable, "-m"]
    scheduler = run(
        [*module, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    )
    worker = run([*module, "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"])
    n_scans = []

    def kill(record: Any) -> None:
        n_scans.append(record.phase == "scan")
        if sum(n_scans) == 3:
            scheduler.kill()

    try:
        client = connect(address)
        client.wait_for_workers(1, timeout=600)
        with pytest.raises(VcrfError, match=r"scheduler at tcp://127\.0\.0\.1:\d+ is gone|gave a task up"):
            fit(VCRF(callback=kill), corpus, OnDask(client), checkpoint=path)
        client.close(timeout=1)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert path.exists()
    resumed = fit(VCRF(tol=0.01), corpus, Here(), checkpoint=path)
    assert resumed.status_ is Status.CONVERGED
