"""The run that compiles the kernels gives the same bytes as those that find them compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FIT = """
import hashlib
from vcrf import VCRF
from vcrf.data import SyntheticLanguage
corpus = SyntheticLanguage(n_labels=17, seed=3).sample(300, seed=4)
tagger = VCRF(max_passes=40).fit(corpus.tokens, corpus.labels)
print(hashlib.sha256(tagger.result_.weights.tobytes()).hexdigest())
"""


def fit(cache: Path) -> str:
    """Hash of the weights of a fit in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIT], env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    return done.stdout


def test_compiling_does_not_change_the_weights(tmp_path: Path) -> None:
    """Sums that may be reordered are ordered once and for all."""
    assert fit(tmp_path) == fit(tmp_path)
