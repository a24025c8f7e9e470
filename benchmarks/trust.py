"""Whether promises are kept, what they cost, and which test to use.

    python benchmarks/trust.py simulate [--draws 1000] [--pooled]
    python benchmarks/trust.py splits basque english hindi [--models FOLDER] [--draws 200]
    python benchmarks/trust.py power [NAMES] [--models FOLDER]
    python benchmarks/trust.py calibrated [NAMES] [--models FOLDER] [--crfsuite [--max-iterations N]]
    python benchmarks/trust.py spans [NAMES] [--models FOLDER]

`simulate` draws calibration sets from a population of invented sentences whose rates are known, and counts how often
the error among accepted tokens is above the promise; then the same where each sentence says itself eight times, with a
test that takes tokens for independent beside ours. With --pooled promises are about all tokens together. `splits` does
it with random halves of held-out sentences of treebanks. `power` has the share of tokens accepted beside the share that
an oracle would accept, for each test. `calibrated` compares probabilities. `spans` takes runs of proper nouns for
names, and has the sets of spans by their probability beside those of the k best sequences, at the same promise. Taggers
are `VCRF()` trained on the train split; with --models they are kept in a folder as files and read from there.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import peers
from accuracy import FIRST, LABELS, MORE
from scipy.stats import binom

from vcrf import VCRF, load
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError
from vcrf.labelling.calibrating import calibration_of
from vcrf.metrics.entities import entities
from vcrf.trust import Calibration, Units, accept, evidence
from vcrf.trust.selective import GRID, STARTS, _start, oracle_share, rates, sentence_values
from vcrf.types import Floats

POPULATION = 20_000


class Promise(NamedTuple):
    """What is asked for."""

    max_error: float
    delta: float


PROMISES = [Promise(a, d) for a in (0.01, 0.05, 0.1) for d in (0.05, 0.1)]


# ------------------------------------------------------------------------------------ simulation


def simulate(draws: int, is_pooled: bool) -> None:
    """Known population: sentences are drawn from it with replacement, so that its rates are the true ones."""
    language = SyntheticLanguage()
    train, population = language.sample(300, seed=1), language.sample(POPULATION, seed=2)
    tagger = VCRF().fit(train.tokens, train.labels)
    found = calibration_of(tagger, population.tokens, population.labels, is_fitted=False)
    print(f"synthetic language, token error {found.is_wrong.mean():.2%}, {draws} draws each", flush=True)
    longest = tagger._longest("token", "pooled", None) if is_pooled else 0
    what = f"pooled, at most {longest} tokens" if is_pooled else "one clause a sentence"
    for n in (100, 300, 1000):
        report_draws(what, found, n, draws, 1, longest)
    if not is_pooled:
        report_draws("eight times the same clause", found, 300, draws, 8)


def report_draws(what: str, population: Calibration, n: int, draws: int, copies: int, longest: int = 0) -> None:
    """Shares of broken promises, ours and those of a test over tokens, and mean misses of label sets."""
    units = tiled(population.units("token"), copies)
    units = units.pooled(longest) if longest else units
    truth = [rates(units, float(t))[1] for t in GRID]
    token_truth = token_rates(units)
    broken, token_broken, accepted = np.zeros(len(PROMISES)), np.zeros(len(PROMISES)), np.zeros(len(PROMISES))
    misses: list[float] = []
    rng = np.random.default_rng(n)
    for _ in range(draws):
        drawn = rng.integers(0, units.n_sentences, n)
        part = units.take(drawn)
        for k, promise in enumerate(PROMISES):
            ours = accept(part, promise.max_error, 1.0 - promise.delta)
            if ours.is_any:
                broken[k] += truth[int(np.searchsorted(-GRID, -ours.threshold))] > promise.max_error
                accepted[k] += ours.share
            theirs = token_threshold(part, promise)
            token_broken[k] += theirs is not None and token_truth[theirs] > promise.max_error
        misses.append(mean_miss(population, drawn))
    for k, promise in enumerate(PROMISES):
        print(
            f"{what}, n = {n}: max_error {promise.max_error}, delta {promise.delta}: broken {broken[k] / draws:.3f}, "
            f"accepted {accepted[k] / draws:.3f}; test over tokens: broken {token_broken[k] / draws:.3f}",
            flush=True,
        )
    print(f"{what}, n = {n}: label sets at 5 %: mean miss {np.mean(misses):.4f}", flush=True)


def tiled(units: Units, copies: int) -> Units:
    """Every sentence several times over, as one sentence."""
    if copies == 1:
        return units
    rows = np.concatenate([np.tile(np.arange(a, b), copies) for a, b in zip(units.ptr, units.ptr[1:], strict=False)])
    return Units(units.ptr * copies, units.sureness[rows], units.is_wrong[rows])


def token_rates(units: Units) -> Floats:
    """True share of errors among accepted tokens, each token counting the same."""
    place = np.searchsorted(-GRID, -units.sureness.astype(np.float64))
    n, wrong = np.bincount(place, minlength=len(GRID)), np.bincount(place, units.is_wrong, len(GRID))
    return np.asarray(np.cumsum(wrong) / np.maximum(np.cumsum(n), 1))


def token_threshold(units: Units, promise: Promise) -> int | None:
    """What must not be done: the same sequence of tests, by a binomial distribution over tokens."""
    place = np.searchsorted(-GRID, -units.sureness.astype(np.float64))
    n = np.cumsum(np.bincount(place, minlength=len(GRID)))
    wrong = np.cumsum(np.bincount(place, units.is_wrong, len(GRID)))
    p = binom.cdf(wrong, n, promise.max_error)
    first = _start(promise.max_error)
    failed = np.flatnonzero(p[first:] > promise.delta)
    last = (first + int(failed[0]) if len(failed) else len(GRID)) - 1
    return last if last >= first else None


def mean_miss(population: Calibration, drawn: Any) -> float:
    """Expected miss of a new sentence under the threshold of the drawn ones, at 5 %."""
    size = np.diff(population.ptr)
    token = np.concatenate([np.arange(population.ptr[i], population.ptr[i + 1]) for i in drawn])
    values, wrong = population.true_probability[token], population.is_wrong[token] > 0
    q = _threshold(values[wrong], np.repeat(1.0 / size[drawn], size[drawn])[wrong], len(drawn), 0.05)
    missed = (population.is_wrong > 0) & (population.true_probability < q)
    return float(np.sum(missed / np.repeat(size, size)) / len(size))


def _threshold(values: Any, weights: Floats, n: int, miss: float) -> float:
    from vcrf.trust.sets import _largest

    return _largest(values.astype(np.float64), weights, n, miss)


# ------------------------------------------------------------------------------------ treebanks


def tagger_of(name: str, folder: Path | None) -> VCRF:
    """A tagger trained on the train split."""
    path = None if folder is None else folder / f"{name}.vcrf"
    if path is not None and path.exists():
        return load(path)
    tagger = VCRF().fit(*peers.read_treebank(name, "train", LABELS.get(name, "upos")))
    if path is not None:
        tagger.save(path)
    return tagger


def seen(tagger: VCRF, name: str, split: str) -> Calibration:
    """What a tagger says of a split; Twitter has no dev split: its test split is cut in two."""
    label = LABELS.get(name, "upos")
    if name == "twitter-tweebank":
        X, y = peers.read_treebank(name, "test", label)
        half = slice(0, None, 2) if split == "dev" else slice(1, None, 2)
        return calibration_of(tagger, X[half], y[half], is_fitted=False)
    return calibration_of(tagger, *peers.read_treebank(name, split, label), is_fitted=False)


def joined(parts: list[Calibration]) -> Units:
    """Tokens of several splits."""
    ptr = np.concatenate([[0], *(np.diff(part.ptr) for part in parts)]).cumsum()
    return Units(
        ptr, np.concatenate([part.sureness for part in parts]), np.concatenate([part.is_wrong for part in parts])
    )


def splits(names: list[str], folder: Path | None, draws: int) -> None:
    """Random halves of the held-out sentences, and draws with replacement, for which the truth is known."""
    for name in names:
        tagger = tagger_of(name, folder)
        units = joined([seen(tagger, name, split) for split in ("dev", "test")])
        n = units.n_sentences
        truth = [rates(units, float(t))[1] for t in GRID]
        for promise in (Promise(0.01, 0.05), Promise(0.02, 0.05), Promise(0.02, 0.1)):
            rng = np.random.default_rng(0)
            counts = np.zeros(5)
            for _ in range(draws):
                order = rng.permutation(n)
                half = accept(units.take(order[: n // 2]), promise.max_error, 1.0 - promise.delta)
                if half.is_any:
                    share, error = rates(units.take(order[n // 2 :]), half.threshold)
                    counts[:3] += error > promise.max_error, share, 1
                drawn = accept(units.take(rng.integers(0, n, n // 2)), promise.max_error, 1.0 - promise.delta)
                if drawn.is_any:
                    counts[3] += truth[int(np.searchsorted(-GRID, -drawn.threshold))] > promise.max_error
            print(
                f"{name}: {n} sentences, {draws} halves, max_error {promise.max_error}, delta {promise.delta}: error "
                f"of the other half above it {counts[0] / draws:.3f}, accepted {counts[1] / max(counts[2], 1):.3f} "
                f"(in {int(counts[2])}); drawn with replacement, broken {counts[3] / draws:.3f}",
                flush=True,
            )


def power(names: list[str], folder: Path | None) -> None:
    """Share of tokens accepted on the test split, beside the oracle's, by each test."""
    for name in names:
        tagger = tagger_of(name, folder)
        dev, test = seen(tagger, name, "dev"), seen(tagger, name, "test")
        for max_error in (0.005, 0.01, 0.02):
            ours = accept(dev.units("token"), max_error)
            plain = other_test(dev.units("token"), max_error, 0.05)
            whole = accept(dev.units("sentence"), max_error, unit="sentence")
            drawn = walked(one_token_p_values(dev.units("token"), max_error), max_error, 0.05)
            longest = tagger._longest("token", "pooled", None)
            pooled = accept(dev.units("token").pooled(longest), max_error)
            units = test.units("token")
            share, error = rates(units, ours.threshold)
            pooled_share, pooled_error = rates(units.pooled(longest), pooled.threshold)
            print(
                f"{name}: {dev.n_sentences} sentences, max_error {max_error}: accepted {share:.3f}, error {error:.4f}, "
                f"oracle {oracle_share(units, max_error):.3f}, missing {ours.n_missing}; Hoeffding-Bentkus "
                f"{rates(units, plain)[0]:.3f}; binomial, one token a sentence {rates(units, drawn)[0]:.3f}; pooled, "
                f"at most {longest} tokens: {pooled_share:.3f}, error {pooled_error:.4f}, oracle "
                f"{oracle_share(units.pooled(longest), max_error):.3f}; whole sentences, binomial "
                f"{rates(test.units('sentence'), whole.threshold)[0]:.3f}, oracle "
                f"{oracle_share(test.units('sentence'), max_error):.3f}",
                flush=True,
            )


def other_test(units: Units, max_error: float, delta: float) -> float:
    """The threshold by Hoeffding-Bentkus along the same sequences."""
    p = evidence.hoeffding_bentkus(sentence_values(units, max_error, GRID), max_error)
    return walked(p, max_error, delta)


def one_token_p_values(units: Units, max_error: float) -> Floats:
    """Exact too: of each sentence one token is drawn, and those that are accepted are wrong or not, independently."""
    rng = np.random.default_rng(0)
    row = units.ptr[:-1] + (rng.random(units.n_sentences) * np.diff(units.ptr)).astype(np.int64)
    is_in = units.sureness[row, None] >= GRID.astype(np.float32)
    wrong = is_in & (units.is_wrong[row, None] > 0)
    return evidence.binomial(wrong.sum(axis=0), is_in.sum(axis=0), max_error)


def walked(p: Floats, max_error: float, delta: float) -> float:
    """The threshold that sequences of tests reach."""
    best = math.inf
    for part, share in STARTS:
        first = _start(part * max_error)
        failed = np.flatnonzero(p[first:] > share * delta)
        last = (first + int(failed[0]) if len(failed) else len(GRID)) - 1
        best = min(best, float(GRID[last])) if last >= first else best
    return best


# Sequences that a set of spans may come from.
MOST_SEQUENCES = 100


def names_of(name: str, split: str) -> tuple[list[list[str]], list[list[str]]]:
    """A split with runs of proper nouns as names, in BIO."""
    X, y = peers.read_treebank(name, split)
    labels = []
    for upos in y:
        is_name = [label == "PROPN" for label in upos]
        before = [False, *is_name]
        labels.append(["O" if not a else "I-NAME" if b else "B-NAME" for a, b in zip(is_name, before, strict=False)])
    return X, labels


def spans(names: list[str], folder: Path | None) -> None:
    """Share of true spans that are missed, and the size of the sets, by probability and by k best sequences."""
    for name in names:
        path = None if folder is None else folder / f"{name}-names.vcrf"
        if path is not None and path.exists():
            tagger = load(path)
        else:
            tagger = VCRF(constraints="BIO").fit(*names_of(name, "train"))
            if path is not None:
                tagger.save(path)
        dev, test = names_of(name, "dev"), names_of(name, "test")
        tagger.calibrate(*dev)
        ranked = [ranks(tagger, *part) for part in (dev, test)]
        for miss in (0.02, 0.05, 0.1):
            print(
                f"{name}: names, miss {miss}: {by_probability(tagger, test, miss)}; {by_rank(*ranked, miss)}",
                flush=True,
            )


def by_probability(tagger: VCRF, test: Any, miss: float) -> str:
    """Sets of spans as `predict_sets` gives them."""
    X, y = test
    try:
        found = tagger.predict_sets(X, miss, unit="span")
    except InputError as error:
        return str(error)
    missed = [
        np.mean([span not in {s[:3] for s in held} for span in true])
        for held, true in zip(found.sets, map(entities, y), strict=True)
        if true
    ]
    size = np.mean([len(held) for held in found.sets])
    return f"at least {found.threshold.threshold:.3g} sure: missed {np.mean(missed):.4f}, {size:.2f} spans a sentence"


def ranks(tagger: VCRF, X: list[Any], y: list[Any]) -> list[tuple[list[int], list[int]]]:
    """Of each sentence: rank of the first sequence that has each true span, and spans in the k best for every k."""
    found = []
    for x, labels in zip(X, y, strict=True):
        held: set[Any] = set()
        first: dict[Any, int] = {}
        sizes = []
        for rank, (sequence, _) in enumerate(tagger.predict_kbest([x], MOST_SEQUENCES)[0], 1):
            for span in entities(sequence, "BIO"):
                first.setdefault(span, rank)
                held.add(span)
            sizes.append(len(held))
        sizes += sizes[-1:] * (MOST_SEQUENCES - len(sizes))
        found.append(([first.get(span, MOST_SEQUENCES + 1) for span in entities(labels)], sizes))
    return found


def by_rank(dev: Any, test: Any, miss: float) -> str:
    """The smallest k whose sequences miss few enough of the true spans, by the same rule."""
    true = [first for first, _ in dev if first]
    n = len(true)
    for k in range(1, MOST_SEQUENCES + 1):
        total = sum(np.mean([rank > k for rank in first]) for first in true)
        if (total + 1.0) / (n + 1) <= miss:
            missed = np.mean([np.mean([rank > k for rank in first]) for first, _ in test if first])
            return f"{k} best: missed {missed:.4f}, {np.mean([sizes[k - 1] for _, sizes in test]):.2f} spans a sentence"
    return f"{MOST_SEQUENCES} best miss too many"


def calibrated(names: list[str], folder: Path | None, is_beside: bool, max_iterations: int | None) -> None:
    """Expected calibration error and mean log-likelihood on the test split, before and after calibrating on dev."""
    for name in names:
        label = LABELS.get(name, "upos")
        tagger = tagger_of(name, folder)
        X, y = peers.read_treebank(name, "test", label)
        if name == "twitter-tweebank":
            X_dev, y_dev, X, y = X[::2], y[::2], X[1::2], y[1::2]
        else:
            X_dev, y_dev = peers.read_treebank(name, "dev", label)
        show_probabilities(name, "VCRF()", tagger.predict(X), tagger.predict_marginals(X), y)
        before = mean_likelihood(tagger, X, y)
        tagger.calibrate(X_dev, y_dev)
        show_probabilities(name, "calibrated", tagger.predict(X), tagger.predict_marginals(X), y)
        temperature = tagger.model_.calibration.calibration_temperature
        print(
            f"{name}: temperature {temperature:.3f}; mean log-likelihood a sentence {before:.3f}, calibrated "
            f"{mean_likelihood(tagger, X, y):.3f}",
            flush=True,
        )
        if is_beside:
            beside(name, label, X, y, max_iterations)


def mean_likelihood(tagger: VCRF, X: list[Any], y: list[Any]) -> float:
    """Of sentences whose labels are possible."""
    found = np.array(tagger.sequence_probability(X, y, log=True))
    return float(found[np.isfinite(found)].mean())


def show_probabilities(name: str, tool: str, labels: list[Any], rows: list[Any], y: list[Any]) -> None:
    """Expected calibration error, and mean log probability of the true label of a token."""
    from vcrf.trust import reliability

    sure = np.array([row[b] for s, r in zip(labels, rows, strict=True) for b, row in zip(s, r, strict=True)])
    true = np.array([row.get(t, 0.0) for s, r in zip(y, rows, strict=True) for t, row in zip(s, r, strict=True)])
    wrong = np.array([b != t for s, u in zip(labels, y, strict=True) for b, t in zip(s, u, strict=True)])
    binned = reliability(np.clip(sure, 0.0, 1.0), wrong)
    print(
        f"{name}: {tool}: expected calibration error {binned.error:.4f}, mean log probability of the true label "
        f"{np.log(np.maximum(true, 1e-12)).mean():.4f}, token error {wrong.mean():.4f}",
        flush=True,
    )


def beside(name: str, label: str, X: list[Any], y: list[Any], max_iterations: int | None) -> None:
    """CRFsuite with c1 = c2 = 0.1 and 19 attributes a token; without a limit it stops by its own criterion."""
    from sklearn_crfsuite import CRF

    crf = CRF(algorithm="lbfgs", c1=0.1, c2=0.1, all_possible_transitions=True, max_iterations=max_iterations)
    X_train, y_train = peers.read_treebank(name, "train", label)
    attributes = [peers.usual_attributes(x) for x in X_train]
    started = time.process_time()
    crf.fit(attributes, y_train)
    n_done, seconds = len(crf.training_log_.iterations), time.process_time() - started
    print(f"{name}: CRFsuite: {n_done} iterations, {seconds:.0f} s of processor time", flush=True)
    test = [peers.usual_attributes(x) for x in X]
    show_probabilities(name, "CRFsuite", crf.predict(test), crf.predict_marginals(test), y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["simulate", "splits", "power", "calibrated", "spans"])
    parser.add_argument("names", nargs="*", default=FIRST + MORE)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--draws", type=int)
    parser.add_argument("--pooled", action="store_true")
    parser.add_argument("--crfsuite", action="store_true")
    parser.add_argument("--max-iterations", type=peers.at_least(1), help="of CRFsuite")
    options = parser.parse_args()
    if options.what == "simulate":
        simulate(options.draws or 1000, options.pooled)
    elif options.what == "splits":
        splits(options.names, options.models, options.draws or 200)
    elif options.what == "power":
        power(options.names, options.models)
    elif options.what == "spans":
        spans(options.names, options.models)
    else:
        calibrated(options.names, options.models, options.crfsuite, options.max_iterations)


if __name__ == "__main__":
    main()
