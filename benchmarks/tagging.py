"""Tokens a second from lists of str, one core: python-crfsuite with attributes extracted in Python, beside vcrf.

    python benchmarks/tagging.py [english] [--rounds 7] [--cache build/tagging]

Both tag the test part of a treebank with tag patterns of length 2. CRFsuite's time includes `usual_attributes`. vcrf
tags with two models: one that reads the same attributes ("usual"; small differences in `usual_families`), and the
default families, which read more. Each in four situations:

    nothing known   the first text after loading the model: every word is read for the first time
    new text        after tagging the training part, as when many texts are tagged
    again           all words are known
    one by one      all words are known, one call a sentence, as CRFsuite is called

Times are processor time, the least of several rounds; the programs take turns. The models are trained once and kept in
the cache folder; they need not be at the optimum, both are stopped early. The treebanks are read from `../shared/data`.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import peers
import pycrfsuite

from vcrf import VCRF
from vcrf.families import BIAS, Family, Template, default_families, transition_families
from vcrf.labelling.loading import load_tagger
from vcrf.labelling.tagger import ModelTagger

C1 = 0.5
Sentences = list[list[str]]


def usual_families() -> list[Family]:
    """Families that read what `peers.usual_attributes` gives, as many attributes a token.

    Not quite the same ones: a word shorter than an affix has none here, the flag is any digit and not all digits, and
    both borders read alike.
    """
    own = ["word", "lower", "shape", "has_digit", "has_hyphen"]
    own += [f"prefix:{n}" for n in (1, 2, 3)] + [f"suffix:{n}" for n in (1, 2, 3, 4)]
    around = [(-1, "word"), (1, "word"), (-1, "suffix:3"), (1, "suffix:3"), (-2, "word"), (2, "word")]
    templates = [BIAS, *(Template(((0, reading),)) for reading in own)]
    templates += [Template((part,), pad=True) for part in around]
    return [*(Family(template.name, (template,)) for template in templates), *transition_families(2)[:1]]


FAMILIES = {"usual": usual_families, "default": default_families}


def crfsuite_model(name: str, cache: Path) -> Path:
    """Path of CRFsuite's model, trained if it is not there."""
    path = cache / f"{name}.crfsuite"
    if not path.exists():
        trainer = pycrfsuite.Trainer("lbfgs", verbose=False)
        trainer.set_params({"c1": C1, "c2": 0.0, "max_iterations": 100})
        for tokens, labels in zip(*peers.read_treebank(name, "train"), strict=True):
            trainer.append(peers.usual_attributes(tokens), labels)
        trainer.train(str(path))
    return path


def vcrf_model(name: str, families: str, cache: Path) -> Path:
    """Path of our model, trained if it is not there."""
    path = cache / f"{name}-{families}.vcrf"
    if not path.exists():
        tokens, labels = peers.read_treebank(name, "train")
        tagger = VCRF(
            recipe="paper", families=FAMILIES[families](), base_strength=C1 / len(tokens), tol=0.01, max_passes=150
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it may stop before it has converged
            tagger.fit(tokens, labels).save(path)
    return path


def seconds(work: Callable[[], object]) -> float:
    """Processor time of this thread."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def our_times(path: Path, known: ModelTagger, train: Sentences, test: Sentences) -> dict[str, float]:
    """Seconds in each situation; `known` knows all words."""
    fresh, used = load_tagger(path), load_tagger(path)
    used.predict(train)
    return {
        "nothing known": seconds(lambda: fresh.predict(test)),
        "new text": seconds(lambda: used.predict(test)),
        "again": seconds(lambda: known.predict(test)),
        "one by one": seconds(lambda: [known.predict([sentence]) for sentence in test]),
    }


def compare(name: str, rounds: int, cache: Path) -> None:
    train, _ = peers.read_treebank(name, "train")
    test, labels = peers.read_treebank(name, "test")
    n_tokens = sum(map(len, test))
    theirs = pycrfsuite.Tagger()
    theirs.open(str(crfsuite_model(name, cache)))
    paths = {families: vcrf_model(name, families, cache) for families in FAMILIES}
    taggers = {families: load_tagger(path) for families, path in paths.items()}

    def tag() -> list[list[str]]:
        return [theirs.tag(peers.usual_attributes(sentence)) for sentence in test]

    errors = {"python-crfsuite": peers.token_error(labels, tag())}
    for families, tagger in taggers.items():
        tagger.predict(train)
        errors[f"vcrf, {families}"] = peers.token_error(labels, tagger.predict(test))
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        times.setdefault(("python-crfsuite", "one by one"), []).append(seconds(tag))
        for families, tagger in taggers.items():
            for situation, spent in our_times(paths[families], tagger, train, test).items():
                times.setdefault((f"vcrf, {families}", situation), []).append(spent)
    reference = min(times["python-crfsuite", "one by one"])
    print(f"{name}: {len(test)} sentences, {n_tokens} tokens; load of the machine {os.getloadavg()[0]:.1f}")
    for (program, situation), spent in times.items():
        best = min(spent)
        print(
            f"  {program:16s} {situation:14s} {n_tokens / best:12,.0f} tokens/s   ratio {reference / best:5.1f}"
            f"   token error {100 * errors[program]:.2f} %"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["english"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cache", type=Path, default=Path("build/tagging"))
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    for name in options.names:
        compare(name, options.rounds, options.cache)


if __name__ == "__main__":
    main()
