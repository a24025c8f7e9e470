"""A few cases of each part of the campaign, so that its frame and its checks are run by every test."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from commands import conllu, start
from vcrf import VCRF
from vcrf.data import SyntheticLanguage

# The campaign's modules import each other as `tests.campaign`.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

posix = pytest.mark.skipif(os.name == "nt", reason="signals")


@posix
def test_kills(tmp_path: Path) -> None:
    """A labelling that is killed at once, ended half way, and left alone."""
    from tests.campaign import kills

    corpus = SyntheticLanguage(n_labels=4).sample(30)
    (tmp_path / "text.conllu").write_text(conllu(corpus) * 20, encoding="utf-8")
    VCRF(base_strength=0.1).fit(corpus.tokens, corpus.labels).save(tmp_path / "good-train")
    began = time.monotonic()
    start(*kills._arguments("tag", tmp_path, tmp_path / "good-tag")).communicate(timeout=120)
    seconds = time.monotonic() - began
    whole = (tmp_path / "good-tag").read_bytes()
    state = kills.State(tmp_path, {"tag": b"before"}, whole, {}, {"tag": seconds})
    for number, moment in ((signal.SIGKILL, 0.3), (signal.SIGTERM, 0.6), (signal.SIGINT, 60.0)):
        end = kills._case(state, "tag", number, is_group=True, moment=moment * seconds)
        assert end == "tag whole" if moment > 1.0 else end in ("tag old", "tag whole")


@posix
def test_concurrency(tmp_path: Path) -> None:
    """Threads that predict and fit at once find what one alone does."""
    from tests.campaign import concurrency

    state = concurrency._prepare(tmp_path)
    for seed in range(3):
        concurrency._threads(state, np.random.default_rng(seed))
