"""`vcrf demo`: what the library does, once, on a small English corpus."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vcrf.cli.output import print_rich, print_table

if TYPE_CHECKING:
    from rich.text import Text

    from vcrf import VCRF, Corpus
    from vcrf.cli.compiling import Beside
    from vcrf.metrics import ErrorRate

# So many test sentences that the rare words that were never seen are enough to compare by.
N_TRAIN, N_HELD_OUT, N_TEST = 600, 800, 2000
SENTENCE = "The gloomy librarian will water the tulips when the guards watch the light ."
MAX_ERROR = 0.01
# The families of the paper's experiments, and strengths at which they train in seconds.
PAPER: dict[str, Any] = {
    "recipe": "paper", "families": "paper", "words": 1, "affix": 5, "complexity_strength": 2e-3, "base_strength": 2e-3,
}  # fmt: skip
_OURS = "vcrf as it comes"
# Rounds of the training that are shown.
_N_ROUNDS = 7
_N_REASONS = 5
# Sentences on which kernels are compiled.
_N_FEW = 30


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Directory for the model and the picture.")
    ] = Path("vcrf-demo"),
    theory: Annotated[
        bool, typer.Option("--theory", help="Show the paper's comparison and its bounds instead.")
    ] = False,
) -> None:
    """Learn, compare, tag, explain and promise on a small English corpus; nothing is downloaded.

    \b
    vcrf demo
    vcrf demo -o my-demo
    vcrf demo --theory

    About ten seconds; the first run prepares the program for a minute more.
    """
    output.mkdir(parents=True, exist_ok=True)
    if theory:
        from vcrf.cli.theory import show_theory

        show_theory(output)
        return
    _show(output)


def _show(output: Path) -> None:
    from vcrf.cli.compiling import Beside
    from vcrf.data import small_english

    corpus = small_english(N_TRAIN + N_HELD_OUT + N_TEST)
    training = corpus[:N_TRAIN]
    held_out, test = corpus[N_TRAIN : N_TRAIN + N_HELD_OUT], corpus[N_TRAIN + N_HELD_OUT :]
    print_rich(
        "The task: give each word its class: NOUN, VERB, ADJ and so on.",
        f"A program learns it from {len(training)} labelled sentences ({training.n_tokens:,} words), and is tested on "
        f"{len(test):,} others.",
        "They come from a small grammar of English: many words can be two things (light, watch, run), and the test has "
        "words that were never seen.",
        "Classes that you will meet: DET the, a; AUX will, do; SCONJ when; PUNCT full stop.",
    )
    beside = Beside("vcrf.cli.demo:compile_rest")
    try:
        tagger = _compare(training, test, beside)
        _show_sentence(tagger, held_out, SENTENCE.split(), output / "demo.svg")
        _show_promise(tagger, len(held_out), test)
    finally:
        beside.end()
    _show_gap(tagger)
    tagger.save(output / "demo.vcrf")
    _say_goodbye(output)


def compile_rest() -> None:
    """What is compiled after the first two ways to learn, on a few sentences."""
    from vcrf import VCRF
    from vcrf.data import small_english
    from vcrf.labelling.explain import explain

    corpus = small_english(2 * _N_FEW)
    few, others = corpus[:_N_FEW], corpus[_N_FEW:]
    paper, tagger = VCRF(**PAPER), VCRF()
    _fit_quietly(paper, few.tokens, few.labels)
    paper.predict(others.tokens)
    _fit_quietly(tagger, few.tokens, few.labels)
    tagger.calibrate(others.tokens, others.labels)
    explain(tagger, SENTENCE.split())
    tagger.predict_selective(others.tokens, max_error=MAX_ERROR)


def _compare(training: Corpus, test: Corpus, beside: Beside) -> Any:
    """Train three taggers on the same sentences, and print their errors; the first one is returned."""
    from vcrf import VCRF
    from vcrf.cli.compiling import compile_notice
    from vcrf.cli.usual_attributes import attributes
    from vcrf.compat import CRF
    from vcrf.metrics import token_error, unknown_word_error

    usual, usual_test = [attributes(s) for s in training.tokens], [attributes(s) for s in test.tokens]
    ways: list[tuple[str, Any, list[Any], list[Any]]] = [
        (_OURS, VCRF(), training.tokens, test.tokens),
        ("as CRFsuite does, a common program", CRF(c1=0.1, c2=0.1), usual, usual_test),
        ("as in the research behind vcrf", VCRF(**PAPER), training.tokens, test.tokens),
    ]
    known = {word for sentence in training.tokens for word in sentence}
    with compile_notice(beside.start):  # on a few sentences: the seconds below are those of learning
        for _, tagger, X, _ in ways:
            _fit_quietly(tagger, X[:_N_FEW], training.labels[:_N_FEW])
    rows, fitted = [], []
    for name, tagger, X, X_test in ways:
        began = time.perf_counter()
        fitted.append(_fit(tagger, X, training.labels))
        seconds = time.perf_counter() - began
        found = tagger.predict(X_test)
        wrong = token_error(test.labels, found)
        unseen = unknown_word_error(test.labels, found, test.tokens, known)
        rows.append((name, _with_range(wrong), _with_range(unseen), f"{seconds:.1f}"))
    columns = ["how it learns", "wrong labels", "wrong, of words never seen", "seconds to learn"]
    print_table("\nThree ways to learn from the same sentences", columns, rows)
    print_rich(
        f"Only {unseen.n:,} of the {wrong.n:,} test words were never seen in learning. In brackets: where the share "
        "lies, with 95 % confidence, for all sentences of this kind. Where two ranges overlap the table does not say "
        "which way is better."
    )
    return fitted[0]


def _fit_quietly(tagger: Any, X: list[Any], y: list[list[str]]) -> None:
    """Fit on a few sentences: a warning would be about others than the real ones."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tagger.fit(X, y)


def _fit(tagger: Any, X: list[Any], y: list[list[str]]) -> Any:
    tagger.fit(X, y)
    if tagger.status_.name == "INTERRUPTED":  # the solver answers a signal with its best weights
        raise KeyboardInterrupt
    return tagger


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")


def _with_range(error: ErrorRate) -> str:
    """An error with its interval."""
    return f"{_percent(error.rate)} ({100.0 * error.low:.1f} to {100.0 * error.high:.1f})"


def _show_sentence(tagger: VCRF, held_out: Corpus, tokens: list[str], picture: Path) -> None:
    """Label a sentence, say why, and draw both. Calibration makes the percentages those of held-out sentences."""
    from vcrf.labelling.drawing import draw_sentence
    from vcrf.labelling.explain import explain
    from vcrf.labelling.reasons import question, said_reasons

    tagger.calibrate(held_out.tokens, held_out.labels)
    explained = explain(tagger, tokens)
    print_rich(f"\nA new sentence, labelled by {_OURS}, and how sure it is")
    for line in _coloured(explained):
        print_rich(line)
    unsure = min(range(len(explained)), key=lambda t: explained[t].probability)
    found = explained[unsure]
    print_rich(f"\n{question(found)}")
    for reason in said_reasons(found, tokens, unsure, _N_REASONS):
        print_rich(reason)
    print_rich(
        "These numbers are what the program learned from the sentences, and all that decides. The command `explain` "
        "below shows each of them, the small ones too, with --top 1000."
    )
    draw_sentence(explained, picture)


def _coloured(explained: Sequence[Any]) -> list[Text]:
    """Words, labels and percentages below each other, labels in colour."""
    from rich.text import Text

    from vcrf.labelling.drawing import label_colours
    from vcrf.labelling.reasons import shown

    colours = label_colours([found.label for found in explained])
    lines = [Text("  "), Text("  "), Text("  ")]
    for found in explained:
        cells = [str(found.token), str(found.label), shown(found.probability)]
        width = max(map(len, cells)) + 2
        styles = ["bold", f"bold white on {colours[found.label]}", "dim"]
        for line, cell, style in zip(lines, cells, styles, strict=True):
            line.append(cell, style=style)
            line.append(" " * (width - len(cell)))
    return lines


def _show_promise(tagger: VCRF, n_held_out: int, test: Corpus) -> None:
    """Which labels nobody has to check."""
    found = tagger.predict_selective(test.tokens, max_error=MAX_ERROR)
    accepted = sum(map(sum, found.accepted))
    wrong = sum(
        is_accepted and mine != label
        for flags, labels, true in zip(found.accepted, found.labels, test.labels, strict=True)
        for is_accepted, mine, label in zip(flags, labels, true, strict=True)
    )
    print_rich(
        "\nWhat nobody has to check",
        f"  After a look at {n_held_out} sentences that it did not learn from, it promises: of the labels that it "
        f"accepts at most {100.0 * MAX_ERROR:.0f} % are wrong, with 95 % confidence.",
        f"  {_kept(accepted, wrong, test.n_tokens)}",
        "  A person looks at the rest. Without a promise every word would have to be read.",
    )


def _kept(accepted: int, wrong: int, n_tokens: int) -> str:
    if not accepted:
        return f"Of the {n_tokens:,} test words it accepts none: it has seen too few sentences to promise anything."
    return (
        f"Of the {n_tokens:,} test words it accepts {accepted:,} ({100.0 * accepted / n_tokens:.0f} %); {wrong} of "
        f"these are wrong ({_percent(wrong / accepted)})."
    )


def _show_gap(tagger: VCRF) -> None:
    """The certified gap, round by round."""
    certified = [(r.seconds, r.gap / r.objective) for r in tagger.history_ if 0.0 < r.gap < math.inf]
    step = -(-len(certified) // _N_ROUNDS)
    print_rich(
        "\nHow good are the numbers that it learned?",
        "  Learning looks for the numbers that fit the labelled sentences best, which one score measures: the lower, "
        "the better. As it goes on, vcrf proves how much lower the score could still become with any other numbers:",
    )
    for seconds, gap in certified[::-1][::step][::-1]:
        print_rich(f"  after {seconds:4.1f} s: by {100.0 * gap:.2f} % at the most")
    print_rich(f"  Below {100.0 * tagger._value('tol'):g} % it stops: nothing that matters is left to gain.")


def program() -> str:
    """What a user types to call the command: as it was called, where the shell does not find it by its name."""
    called, found = Path(sys.argv[0]), shutil.which("vcrf")
    if called.stem == "vcrf":
        return "vcrf" if found is not None and Path(found).absolute() == called.absolute() else str(called)
    return "vcrf" if found is not None else f"{sys.executable} -m vcrf"


def _say_goodbye(output: Path) -> None:
    model, command = output / "demo.vcrf", program()
    print_rich(
        "",
        f"Look at:  {output / 'demo.svg'}   the sentence and its reasons as a picture, for a browser",
        "Use the model:",
        f'  echo "Rose saw her duck under the table ." | {command} tag {model} --marginals',
        f'  {command} explain {model} "Rose saw her duck under the table ."',
        "Your own treebank, CoNLL-U or columns:",
        f"  {command} train my.conllu --dev my-dev.conllu -o my.vcrf",
        f"  {command} tag my.vcrf new.txt > new.conllu",
        f"The theory: {command} demo --theory",
    )
