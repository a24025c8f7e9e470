"""The log of a training in CRFsuite's words: written from what the solver tells, and read again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from vcrf.compat.crf import CRF
    from vcrf.solvers.result import IterationRecord
    from vcrf.types import Label

_ITERATION = re.compile(r"\*{5} (?:Iteration|Epoch) #(\d+) \*{5}\n")
_SECONDS = re.compile(r"Seconds required: (\d+\.\d+)")
_TOTAL = re.compile(r"Total seconds required for training: (\d+\.\d+)")
_FEATURES = re.compile(r"Number of features: (\d+)")
# A loss may be negative, and any number may have an exponent.
_NUMBERS: list[tuple[str, re.Pattern[str], Any]] = [
    (key, re.compile(pattern), kind)
    for key, pattern, kind in [
        ("loss", r"Loss: (\S+)", float),
        ("feature_norm", r"Feature norm: (\S+)", float),
        ("error_norm", r"Error norm: (\S+)", float),
        ("active_features", r"Active features: (\d+)", int),
        ("linesearch_trials", r"Line search trials: (\d+)", int),
        ("linesearch_step", r"Line search step: (\S+)", float),
        ("time", r"Seconds required for this iteration: (\S+)", float),
    ]
]
_MACRO = re.compile(r"Macro-average precision, recall, F1: \((\S+), (\S+), (\S+)\)")
_ACCURACY = re.compile(r"(Item|Instance) accuracy: (\d+) / (\d+)")
_LABEL = re.compile(r"\s{4}(.+): \((\d+), (\d+), (\d+)\) \(([\d.*]+), ([\d.*]+), ([\d.*]+)\)")


class LabelScore(NamedTuple):
    """Counts and scores of a label on the held-out data; None where there is nothing to divide by."""

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


class TrainLogParser:
    """Reads a log piece by piece: `feed` returns the event that a piece completes, or None.

    Attributes
    ----------
    iterations, last_iteration : what is told of each: "num", "loss", "active_features", "time", "scores", ...
    featgen_percent, featgen_num_features, featgen_seconds, training_seconds, storing_seconds
    log, events : all pieces; the events with the pieces that belong to them
    """

    def __init__(self) -> None:
        self.state: str | None = None
        self.featgen_percent = -2
        self.featgen_num_features: int | None = None
        self.featgen_seconds: float | None = None
        self.training_seconds: float | None = None
        self.storing_seconds: float | None = None
        self.iterations: list[dict[str, Any]] = []
        self.last_iteration: dict[str, Any] | None = None
        self.log: list[str] = []
        self.events: list[tuple[str, int, int]] = []

    def feed(self, line: str) -> str | None:
        """Read a piece of the log."""
        self.log.append(line)
        if self.state is None:
            self.state = "FEATGEN" if line.startswith("Feature generation") else "STARTING"
            self.events.append(("start", 0, 1))
            return "start"
        event: str | None = getattr(self, f"_{self.state.lower()}")(line)
        if event is not None:
            # What begins the next part is not of this one.
            end = len(self.log) - (event in ("prepared", "optimization_end"))
            self.events.append((event, self.events[-1][2], end))
        return event

    @property
    def last_log(self) -> str:
        """The text of the last event."""
        _, start, end = self.events[-1]
        return "".join(self.log[start:end])

    def _starting(self, line: str) -> None:
        if line.startswith("Feature generation"):
            self.state = "FEATGEN"

    def _featgen(self, line: str) -> str | None:
        if line in "0123456789.10":
            self.featgen_percent += 2
            return "featgen_progress"
        count, seconds = _FEATURES.match(line), _SECONDS.match(line)
        if count is not None:
            self.featgen_num_features = int(count[1])
        if seconds is None:
            return None
        self.featgen_seconds, self.state = float(seconds[1]), "AFTER_FEATGEN"
        return "featgen_end"

    def _after_featgen(self, line: str) -> str | None:
        if _ITERATION.match(line):
            self.state = "ITERATION"
            self._iteration(line)
            return "prepared"
        if "terminated with error" in line:
            self.state = "AFTER_ITERATION"
            return "prepare_error"
        return None

    def _iteration(self, line: str) -> str | None:
        head = _ITERATION.match(line)
        if head is not None:
            self.last_iteration = {"num": int(head[1]), "scores": {}}
            self.iterations.append(self.last_iteration)
        elif line == "\n":
            self.state = "AFTER_ITERATION"
            return "iteration"
        elif self.last_iteration is not None:
            _read_line(line, self.last_iteration)
        return None

    def _after_iteration(self, line: str) -> str | None:
        if _ITERATION.match(line):
            self.state = "ITERATION"
            return self._iteration(line)
        total = _TOTAL.match(line)
        if total is not None:
            self.training_seconds = float(total[1])
        if line.startswith("Storing the model"):
            self.state = "STORING"
            return "optimization_end"
        return None

    def _storing(self, line: str) -> str | None:
        seconds = _SECONDS.match(line)
        if seconds is not None:
            self.storing_seconds = float(seconds[1])
        return "end" if line == "\n" else None


def _read_line(line: str, into: dict[str, Any]) -> None:
    """What a line tells of an iteration."""
    for key, pattern, kind in _NUMBERS:
        found = pattern.match(line)
        if found is not None:
            into[key] = kind(found[1])
    macro, accuracy, label = _MACRO.match(line), _ACCURACY.match(line), _LABEL.match(line)
    if macro is not None:
        into["avg_precision"], into["avg_recall"], into["avg_f1"] = map(float, macro.groups())
    if accuracy is not None and int(accuracy[3]):
        share, name = Fraction(int(accuracy[2]), int(accuracy[3])), f"{accuracy[1].lower()}_accuracy"
        into[name], into[f"{name}_float"] = share, float(share)
    if label is not None:
        scores = [None if "*" in text else float(text) for text in label.groups()[4:]]
        into["scores"][label[1]] = LabelScore(*map(int, label.groups()[1:4]), *scores)


# ------------------------------------------------------------------------------------ writing


def training_log(crf: CRF) -> TrainLogParser:
    """The log of a fit, read."""
    parser = TrainLogParser()
    facts = crf.model_.facts
    pieces = [*first_lines(crf), *feature_lines(crf, 0 if facts is None else facts.n_candidates)]
    before = None
    for i, record in enumerate(crf.result_.history, 1):
        scores = crf._dev_lines if i == len(crf.result_.history) else ()
        pieces += [*iteration_lines(i, record, before, crf.n_sentences_), *scores, "\n"]
        before = record
    for piece in [*pieces, *last_lines(crf)]:
        parser.feed(piece)
    return parser


def first_lines(crf: CRF) -> list[str]:
    """What is known before the training."""
    return [
        "Feature generation\n", "type: CRF1d\n", f"feature.minfreq: {crf.min_freq or 0.0:f}\n",
        f"feature.possible_states: {int(bool(crf.all_possible_states))}\n",
        f"feature.possible_transitions: {int(bool(crf.all_possible_transitions))}\n",
    ]  # fmt: skip


def feature_lines(crf: CRF, n_candidates: int) -> list[str]:
    """What is known when the sentences are read."""
    return [
        f"Number of features: {n_candidates}\n", "Seconds required: 0.000\n", "\n", "L-BFGS optimization\n",
        f"c1: {crf.c1 or 0.0:f}\n", f"c2: {1.0 if crf.c2 is None else crf.c2:f}\n", "\n",
    ]  # fmt: skip


def iteration_lines(i: int, record: IterationRecord, before: IterationRecord | None, n_sentences: int) -> list[str]:
    """A round of the solver as an iteration; the empty line that ends it is left out."""
    seconds = record.seconds - (0.0 if before is None else before.seconds)
    return [
        f"***** Iteration #{i} *****\n", f"Loss: {record.objective * n_sentences:f}\n",
        f"Active features: {record.n_active}\n", f"Seconds required for this iteration: {max(seconds, 0.0):.3f}\n",
    ]  # fmt: skip


def score_lines(
    y_true: Iterable[Sequence[Label]], y_pred: Iterable[Sequence[Label]], classes: Sequence[Label]
) -> tuple[str, ...]:
    """Counts and scores of held-out data, by label and together; labels that training did not see are of no line."""
    pairs = list(zip(y_true, y_pred, strict=True))
    tokens = [pair for true, found in pairs for pair in zip(true, found, strict=True)]
    match = Counter(true for true, found in tokens if true == found)
    model, ref = Counter(found for _, found in tokens), Counter(true for true, _ in tokens)
    lines, sums = [], [0.0, 0.0, 0.0]
    for label in classes:
        n = match[label], model[label], ref[label]
        shares = [n[0] / max(n[1], 1), n[0] / max(n[2], 1), 2 * n[0] / max(n[1] + n[2], 1)]
        sums = [total + share for total, share in zip(sums, shares, strict=True)]
        told = ", ".join(f"{share:.4f}" if n[2] else "******" for share in shares)  # as CRFsuite has it
        lines.append(f"    {label}: ({n[0]}, {n[1]}, {n[2]}) ({told})\n")
    means = ", ".join(f"{total / max(len(classes), 1):f}" for total in sums)
    right = sum(list(true) == list(found) for true, found in pairs)
    counts = (("Item", sum(match.values()), len(tokens)), ("Instance", right, len(pairs)))
    accuracies = [f"{name} accuracy: {a} / {b} ({a / max(b, 1):.4f})\n" for name, a, b in counts]
    return (*lines, f"Macro-average precision, recall, F1: ({means})\n", *accuracies)


def last_lines(crf: CRF) -> list[str]:
    """What is known after the training."""
    result = crf.result_
    return [
        f"L-BFGS terminated: {result.status.value}\n", f"Total seconds required for training: {result.seconds:.3f}\n",
        "\n", "Storing the model\n", f"Number of active features: {len(crf.model_.weights)}\n",
        "Seconds required: 0.000\n", "\n",
    ]  # fmt: skip
