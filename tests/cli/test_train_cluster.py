"""`vcrf train --dask`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from commands import Call
from vcrf import VCRF, load
from vcrf.cluster import Here
from vcrf.data.parts import parts_of_files
from vcrf.estimators.cluster import fit_blocks


@pytest.mark.filterwarnings("default")
def test_workers_read_the_files(treebank_file: Path, tmp_path: Path, call: Call) -> None:
    """The model is that of the same blocks in this process, and remembers the columns of the file."""
    distributed = pytest.importorskip("distributed")
    path = tmp_path / "m.vcrf"
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None,
        silence_logs="CRITICAL",
    ) as workers:  # fmt: skip
        result = call(
            "train", treebank_file, "--split", "train", "-o", path, "--dask", workers.scheduler_address, "--tol", 0.01,
            "--json",
        )  # fmt: skip
    report, tagger = json.loads(result.stdout), load(path)
    assert report["bytes_moved"] > 0
    assert "MB moved, 1 workers" in result.stderr
    expected = fit_blocks(VCRF(tol=0.01), parts_of_files([treebank_file], split="train")[0], Here())
    assert tagger.objective_ == expected.objective_
    assert np.array_equal(tagger.model_.weights, expected.model_.weights)
    assert tagger.model_.facts.layout.format == "conllu"
    assert not list(tmp_path.glob("*.checkpoint"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--dev", "dev.conllu"], "--dev is not there with --dask"),
        (["--split", "train", "--dev-split", "dev"], "--dev-split is not there with --dask"),
        (["--tune"], "--tune is not there with --dask"),
        (["--structure", "tree"], "Train trees on one machine"),
        (["--surrogate", "m3n"], "--surrogate m3n is not there"),
        (["--memory", "2GB"], "--memory is not there"),
        (["--norm", "group"], "--norm group is not there"),
    ],
)
def test_what_is_not_there_is_refused(
    treebank_file: Path, tmp_path: Path, call: Call, options: list[str], words: str
) -> None:
    """Before a scheduler is asked."""
    result = call("train", treebank_file, "-o", tmp_path / "m.vcrf", "--dask", "tcp://127.0.0.1:9", *options, code=2)
    assert words in " ".join(result.stderr.split())


def test_dask_may_be_missing(
    treebank_file: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """The message says how to install it."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = call("train", treebank_file, "-o", tmp_path / "m.vcrf", "--dask", "tcp://127.0.0.1:9", code=2)
    assert "pip install '.[cluster]'" in result.stderr
