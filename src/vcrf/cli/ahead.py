"""Compiling kernels ahead of the first run: small jobs that use what training and tagging use."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["compile_kernels"]

# Sentences of the jobs: enough for a word to occur twice, and for every branch of the solver that one run takes.
_N_SENTENCES = 40


def compile_kernels() -> None:
    """Run small jobs, so that later processes find their kernels compiled; what has been compiled is found too.

    Kernels are compiled for what they are called with. These jobs cover training with the default recipe and with the
    paper's, tag patterns of three labels, attributes given as dicts, the drop-in for CRFsuite, and tagging from a file
    with probabilities. Rare options (losses by name, surrogates, graphs) are left to their first use.
    """
    from vcrf.data import SyntheticLanguage

    corpus = SyntheticLanguage(n_labels=5, n_stems=60).sample(_N_SENTENCES, seed=1)
    dicts = [[{"word": word, "length": float(len(word))} for word in sentence] for sentence in corpus.tokens]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the jobs need not converge
        for job in _JOBS:
            job(corpus.tokens, corpus.labels, dicts)


def _default(tokens: Any, labels: Any, _: Any) -> None:
    from vcrf import VCRF
    from vcrf.labelling.loading import load_tagger

    tagger = VCRF(n_jobs=1).fit(tokens, labels)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.vcrf"
        tagger.save(path)
        # A file is mapped, and arrays that cannot be written are another type to the compiler.
        loaded = load_tagger(path)
        loaded.predict(tokens)
        loaded.predict_marginals(tokens[:2])
        loaded.predict_kbest(tokens[:2], 2)
        loaded.predict(tokens[:2], constraints=[(loaded.classes_[0], loaded.classes_[1])])
        del loaded


def _paper(tokens: Any, labels: Any, _: Any) -> None:
    from vcrf import VCRF

    VCRF(recipe="paper", base_strength=0.02, n_jobs=1).fit(tokens, labels).predict(tokens[:2])


def _three_tags(tokens: Any, labels: Any, _: Any) -> None:
    from vcrf import VCRF

    VCRF(tags=3, max_passes=60, n_jobs=1).fit(tokens, labels).predict(tokens[:2])


def _attributes(_: Any, labels: Any, dicts: Any) -> None:
    from vcrf import VCRF
    from vcrf.compat import CRF

    VCRF(n_jobs=1).fit(dicts, labels).predict(dicts[:2])
    tagger = CRF(c1=0.1, c2=0.1, max_iterations=30).fit(dicts, labels)
    tagger.predict(dicts[:2])
    tagger.predict_marginals(dicts[:2])
    CRF(c1=0.1, c2=0.0, tol=1e-6).fit(dicts, labels)  # Newton steps, where there are few labels


_JOBS: tuple[Callable[[Any, Any, Any], None], ...] = (_default, _paper, _three_tags, _attributes)
