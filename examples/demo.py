"""Train an L1-CRF and a VCRF on an invented corpus, compare them, and tag a new sentence with probabilities.

    python examples/demo.py

Under a minute on two cores, the compilation of the first run included. Apart from the seconds, every run
prints the same.
"""

from __future__ import annotations

import time
from math import sqrt

from vcrf import VCRF, Corpus
from vcrf.data import SyntheticLanguage

N_TRAIN, N_TEST = 480, 120
# Chosen on the last fifth of the training part: the base for the L1-CRF, then the other on top of it.
BASE_STRENGTH, COMPLEXITY_STRENGTH = 3e-3, 4e-3
# Quantile of the normal distribution for 95 %.
Z = 1.959964


def wilson(n_wrong: int, n: int) -> tuple[float, float]:
    """Interval of Wilson for a share; it takes tokens for independent, so it is a little too narrow."""
    share, z2 = n_wrong / n, Z * Z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z * sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return centre - half, centre + half


def count_wrong(tagger: VCRF, corpus: Corpus) -> int:
    """Return the number of tokens with a wrong label."""
    pairs = zip(corpus.labels, tagger.predict(corpus.tokens), strict=True)
    return sum(a != b for true, found in pairs for a, b in zip(true, found, strict=True))


def train(corpus: Corpus, complexity_strength: float) -> tuple[VCRF, float]:
    """Return a fitted tagger and the seconds it took."""
    began = time.perf_counter()
    tagger = VCRF(complexity_strength=complexity_strength, base_strength=BASE_STRENGTH)
    tagger.fit(corpus.tokens, corpus.labels)
    return tagger, time.perf_counter() - began


def report(name: str, tagger: VCRF, seconds: float, test: Corpus) -> None:
    """Print a line of the table."""
    n_wrong = count_wrong(tagger, test)
    low, high = wilson(n_wrong, test.n_tokens)
    print(
        f"{name:7} {n_wrong / test.n_tokens:8.2%}  [{low:6.2%}, {high:6.2%}] {tagger.n_candidates_:11,} "
        f"{tagger.n_columns_:8,} {tagger.n_active_:7,}  {tagger.gap_ / tagger.objective_:8.1e} {seconds:8.1f}"
    )


def show_marginals(tagger: VCRF, tokens: list[str]) -> None:
    """Print each token with its label in the best sequence, and the most probable other label."""
    (best,), (marginals,) = tagger.predict([tokens]), tagger.predict_marginals([tokens])
    for token, label, probs in zip(tokens, best, marginals, strict=True):
        other = max((name for name in probs if name != label), key=probs.__getitem__)
        print(f"  {token:14} {label:8} {probs[label]:6.1%}   or {other:8} {probs[other]:6.1%}")


def main() -> None:
    """Compare the two models on one corpus."""
    language = SyntheticLanguage()
    corpus = language.sample(N_TRAIN + N_TEST)
    training, test = corpus[:N_TRAIN], corpus[N_TRAIN:]
    print(f"An invented language: {training.n_tokens:,} tokens in {len(training)} sentences to train on,")
    print(f"{test.n_tokens:,} in {len(test)} to test, {len(corpus.label_set)} labels.")

    print("The first run on a machine compiles the kernels; later runs find them on disk.")
    began = time.perf_counter()
    VCRF(base_strength=0.02).fit(training.tokens[:40], training.labels[:40])
    print(f"Compiling, or reading from disk: {time.perf_counter() - began:.1f} s.\n")

    print("model    token error  95 % interval    candidates  columns  active  rel. gap  seconds")
    for name, complexity_strength in (("L1-CRF", 0.0), ("VCRF", COMPLEXITY_STRENGTH)):
        tagger, seconds = train(training, complexity_strength)
        report(name, tagger, seconds, test)
    print("\nThe VCRF penalises each family of features by its complexity on top of the L1-CRF's strength.")
    print("The gap is certified: no weights of any candidates lower the objective by more than this share.")
    print("Each interval is for one model alone: where they overlap, they do not settle which model is better.")

    (tokens,) = language.sample(1, seed=1).tokens
    print("\nA new sentence, tagged by the VCRF, with probabilities:")
    show_marginals(tagger, tokens)


if __name__ == "__main__":
    main()
