"""`vcrf demo --theory`: the paper's two problems side by side, and what is guaranteed of their risk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from vcrf.cli.output import print_rich, print_table, say

if TYPE_CHECKING:
    from vcrf import VCRF, Corpus

N_TRAIN, N_TEST = 480, 120
# By cross-validation on the training part: a base that trains in seconds, and the best complexity strength with it.
BASE_STRENGTH, COMPLEXITY_STRENGTH = 2e-3, 2e-3
STRENGTHS = {"L1-CRF": 0.0, "VCRF": COMPLEXITY_STRENGTH}


def show_theory(output: Path) -> None:
    """Hold the L1-CRF against the VCRF on an invented language, and state the bounds on the risk."""
    from vcrf.data import SyntheticLanguage

    corpus = SyntheticLanguage().sample(N_TRAIN + N_TEST)
    training, test = corpus[:N_TRAIN], corpus[N_TRAIN:]
    print_rich(
        f"An invented language whose distribution is known: {training.n_tokens:,} tokens in {len(training)} sentences "
        f"to train on, {test.n_tokens:,} in {len(test)} to test, {len(corpus.label_set)} labels."
    )
    taggers, seconds = _train(training)
    _print_errors(taggers, seconds, test)
    _print_bound(taggers["VCRF"], training)
    _write(taggers, output)


def _train(corpus: Corpus) -> tuple[dict[str, VCRF], dict[str, float]]:
    """Fit both models; the first fit, a small one, compiles."""
    from vcrf import VCRF
    from vcrf.cli.compiling import compile_notice
    from vcrf.cli.progress import TrainingProgress

    with compile_notice():
        VCRF(recipe="paper", base_strength=0.02).fit(corpus.tokens[:40], corpus.labels[:40])
    taggers, seconds = {}, {}
    for name, strength in STRENGTHS.items():
        began = time.perf_counter()
        with TrainingProgress(1e-3, name) as progress:
            tagger = VCRF(recipe="paper", complexity_strength=strength, base_strength=BASE_STRENGTH)
            tagger.set_params(callback=progress.callback)
            taggers[name] = tagger.fit(corpus.tokens, corpus.labels)
        if tagger.status_.name == "INTERRUPTED":  # the solver answers a signal with its best weights
            raise KeyboardInterrupt
        seconds[name] = time.perf_counter() - began
    return taggers, seconds


def _print_errors(taggers: dict[str, VCRF], seconds: dict[str, float], test: Corpus) -> None:
    from vcrf.metrics import compare, token_error

    predicted = {name: tagger.predict(test.tokens) for name, tagger in taggers.items()}
    rows = []
    for name, tagger in taggers.items():
        error = token_error(test.labels, predicted[name])
        rows.append(
            (
                name, f"{error.rate:.2%}", f"{error.low:.2%} to {error.high:.2%}", tagger.n_candidates_,
                tagger.n_columns_, tagger.n_active_, f"{tagger.result_.relative_gap:.1e}", f"{seconds[name]:.1f}",
            )
        )  # fmt: skip
    columns = ["model", "token error", "95 % interval", "candidates", "columns", "active", "relative gap", "seconds"]
    print_table("", columns, rows)
    difference = compare(test.labels, predicted["L1-CRF"], predicted["VCRF"])
    print_rich(
        "The VCRF penalises each family of features by its complexity on top of the L1-CRF's strength.",
        "The gap is certified: no weights of any candidates lower the objective by more than this share.",
        f"Error of the L1-CRF less that of the VCRF: {difference.difference:+.2%}, 95 % interval {difference.low:+.2%} "
        f"to {difference.high:+.2%}, p = {difference.p_value:.2g}.",
        "Which is better depends on the data: `vcrf train --tune` finds out.",
    )


def _print_bound(tagger: VCRF, training: Corpus) -> None:
    from vcrf.arguments.inputs import label_numbers, read_text
    from vcrf.cli.bound import meaning, print_bounds
    from vcrf.cli.compiling import compile_notice
    from vcrf.complexity import risk_report
    from vcrf.losses import HammingLoss

    y = label_numbers([list(labels) for labels in training.labels], tagger.classes_)
    with compile_notice():
        report = risk_report(tagger.model_, read_text(training.tokens), y, HammingLoss())
    print_bounds(report, n_rows=3)
    print_rich(meaning(report))


def _write(taggers: dict[str, VCRF], directory: Path) -> None:
    from vcrf.errors import MissingExtraError
    from vcrf.plots import plot_training

    taggers["VCRF"].save(directory / "theory.vcrf")
    print_rich(f"Model: {directory / 'theory.vcrf'}")
    try:
        plot_training(taggers, directory / "theory.png")
        print_rich(f"Picture: {directory / 'theory.png'}")
    except MissingExtraError as error:
        say(f"No picture. {error}")
