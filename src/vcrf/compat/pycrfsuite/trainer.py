"""`Trainer`: collects sentences, trains `CRF` and writes a CRFsuite file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from vcrf.arguments.inputs import checked_sentence
from vcrf.compat.crf import CRF
from vcrf.compat.crfsuite_files import check_labels_are_text, write_crfsuite
from vcrf.compat.pycrfsuite.logs import TrainLogParser, feature_lines, first_lines, iteration_lines, last_lines
from vcrf.errors import InputError, VcrfError
from vcrf.files import check_target
from vcrf.model.crfsuite import model_of_weights
from vcrf.problem import Problem
from vcrf.solvers.result import IterationRecord


class CRFSuiteError(VcrfError):
    """Kept for `except` clauses; what goes wrong here is an InputError."""


class _Parameter(NamedTuple):
    default: Any
    help: str
    argument: str  # of CRF


_FEATURE: dict[str, _Parameter] = {
    "feature.minfreq": _Parameter(0.0, "Least sum of the values of a feature that is kept.", "min_freq"),
    "feature.possible_states": _Parameter(False, "All pairs of an attribute and a label.", "all_possible_states"),
    "feature.possible_transitions": _Parameter(False, "All pairs of labels.", "all_possible_transitions"),
}
_STOP: dict[str, _Parameter] = {
    "max_iterations": _Parameter(2147483647, "Most passes over the data.", "max_iterations"),
    "period": _Parameter(10, "Iterations over which `delta` is looked at.", "period"),
    "delta": _Parameter(1e-5, "Least improvement over `period` iterations.", "delta"),
}
_C2 = _Parameter(1.0, "Coefficient of L2 regularisation.", "c2")
_ONLINE = {
    "max_iterations": _Parameter(100, "Most passes over the data.", ""),
    "epsilon": _Parameter(0.0, "Stop at this share of wrong labels.", ""),
}
# The parameters of each algorithm. Those without an argument steer CRFsuite's search, not its optimum.
_PARAMETERS: dict[str, dict[str, _Parameter]] = {
    "lbfgs": {
        **_FEATURE,
        "c1": _Parameter(0.0, "Coefficient of L1 regularisation.", "c1"),
        "c2": _C2,
        **_STOP,
        "num_memories": _Parameter(6, "Without effect here.", "num_memories"),
        "epsilon": _Parameter(1e-5, "Without effect here.", "epsilon"),
        "linesearch": _Parameter("MoreThuente", "Without effect here.", "linesearch"),
        "max_linesearch": _Parameter(20, "Without effect here.", "max_linesearch"),
    },
    "l2sgd": {
        **_FEATURE,
        "c2": _C2,
        **_STOP,
        "calibration.eta": _Parameter(0.1, "Without effect here.", "calibration_eta"),
        "calibration.rate": _Parameter(2.0, "Without effect here.", "calibration_rate"),
        "calibration.samples": _Parameter(1000.0, "Without effect here.", "calibration_samples"),
        "calibration.candidates": _Parameter(10, "Without effect here.", "calibration_candidates"),
        "calibration.max_trials": _Parameter(20, "Without effect here.", "calibration_max_trials"),
    },
    "averaged-perceptron": {**_FEATURE, **_ONLINE},
    "passive-aggressive": {
        **_FEATURE,
        "type": _Parameter(1, "The strategy of updates.", ""),
        "c": _Parameter(1.0, "The aggressiveness.", ""),
        "error_sensitive": _Parameter(True, "Whether updates grow with the number of wrong labels.", ""),
        "averaging": _Parameter(True, "Whether weights are averaged.", ""),
        **_ONLINE,
    },
    "arow": {
        **_FEATURE,
        "variance": _Parameter(1.0, "The first variance of a weight.", ""),
        "gamma": _Parameter(1.0, "The trade-off between loss and change.", ""),
        **_ONLINE,
    },
}
_ALIASES = {"ap": "averaged-perceptron", "pa": "passive-aggressive"}
_SHORT = {long: short for short, long in _ALIASES.items()}


class _Told(CRF):
    """A CRF that tells its log while it trains.

    `is_patient` leaves an iteration open until the next one, or `end_iteration`: the last one has the accuracy on the
    group that was held out, which is known after the training.
    """

    tell: Callable[[str], None]
    is_patient = False
    _before: IterationRecord | None = None
    _n = 0
    _is_open = False

    def end_iteration(self) -> None:
        """Write the empty line after an iteration, if it was not written yet."""
        if self._is_open:
            self.tell("\n")
        self._is_open = False

    def _problem(self, *args: Any) -> Problem:
        problem = super()._problem(*args)
        for piece in feature_lines(self, int(problem.n_candidates)):
            self.tell(piece)
        n_sentences = problem.text.n_sentences
        self.callback = lambda record: self._tell_of(record, n_sentences)
        return problem

    def _tell_of(self, record: IterationRecord, n_sentences: int) -> None:
        self.end_iteration()
        self._n += 1
        for piece in iteration_lines(self._n, record, self._before, n_sentences):
            self.tell(piece)
        self._before, self._is_open = record, True
        if not self.is_patient:
            self.end_iteration()


def _accuracy_line(crf: CRF, X: list[Sequence[Any]], y: list[list[str]]) -> str:
    """Right tokens and all of the group that was held out."""
    pairs = zip(crf.predict(X), y, strict=True)
    hits = [a == b for predicted, true in pairs for a, b in zip(predicted, true, strict=True)]
    return f"Item accuracy: {sum(hits)} / {len(hits)} ({sum(hits) / max(len(hits), 1):.4f})\n"


class BaseTrainer:
    """Sentences, parameters and training; `message` receives the log.

    State is made in `__new__`: a subclass may forget to call `__init__`, as with python-crfsuite.
    """

    verbose = True
    _sentences: list[tuple[Sequence[Any], list[str], int]]
    _algorithm: str
    _given: dict[str, Any]

    def __new__(cls, *_: Any, **__: Any) -> BaseTrainer:
        """Make the state."""
        self = super().__new__(cls)
        self._sentences, self._algorithm, self._given = [], "lbfgs", {}
        return self

    def __init__(
        self, algorithm: str | None = None, params: Mapping[str, Any] | None = None, verbose: bool = True
    ) -> None:
        if algorithm is not None:
            self.select(algorithm)
        if params is not None:
            self.set_params(params)
        self.verbose = verbose

    def message(self, message: str) -> None:
        """Receive a piece of the log; prints it if verbose."""
        if self.verbose:
            sys.stdout.write(message)

    def append(self, xseq: Any, yseq: Sequence[str], group: int = 0) -> None:
        """Add a sentence with its labels to a group."""
        sentence, labels = checked_sentence(xseq), list(yseq)
        if len(sentence) != len(labels):
            raise InputError(
                f"Expected one label a token, got {len(sentence)} tokens and {len(labels)} labels. Correct this "
                "sentence or leave it out."
            )
        check_labels_are_text(labels)
        self._sentences.append((sentence, labels, group))

    def clear(self) -> None:
        """Forget all sentences."""
        self._sentences = []

    def select(self, algorithm: str, type: str = "crf1d") -> None:  # noqa: A002 - the name it has in python-crfsuite
        """Choose an algorithm; its parameters have their defaults again."""
        name = _ALIASES.get(algorithm.lower(), algorithm.lower())
        if name not in _PARAMETERS or type != "crf1d":
            raise InputError(f"There is no algorithm {algorithm!r} of type {type!r}: expected 'lbfgs' or 'l2sgd'.")
        self._algorithm, self._given = name, {}

    def params(self) -> list[str]:
        """Names of the parameters."""
        return list(_PARAMETERS[self._algorithm])

    def get(self, name: str) -> Any:
        """The value of a parameter."""
        return self._given.get(name, self._parameter(name).default)

    def get_params(self) -> dict[str, Any]:
        """All parameters with their values."""
        return {name: self.get(name) for name in self.params()}

    def set(self, name: str, value: Any) -> None:
        """Set a parameter; text is read as what its default is."""
        kind = type(self._parameter(name).default)
        try:
            self._given[name] = bool(int(value)) if kind is bool else kind(value)
        except (TypeError, ValueError):
            raise InputError(f"The parameter {name!r} is a {kind.__name__}, got {value!r}.") from None

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Set several parameters."""
        for name, value in params.items():
            self.set(name, value)

    def help(self, name: str) -> str:
        """What a parameter is."""
        return self._parameter(name).help

    def train(self, model: str, holdout: int = -1) -> None:
        """Train on all sentences but those of the group `holdout`, and write a CRFsuite file unless `model` is ""."""
        if model:
            check_target(Path(model))
        crf = _Told(algorithm=_SHORT.get(self._algorithm, self._algorithm), **self._arguments())
        train = [sentence for sentence in self._sentences if sentence[2] != holdout]
        kept = [sentence for sentence in self._sentences if sentence[2] == holdout]
        self._before_train()
        for piece in first_lines(crf):
            self.message(piece)
        if not any(labels for _, labels, _ in train):
            self._write_nothing(model)
            return
        crf.tell, crf.is_patient = self.message, bool(kept)
        crf.fit([x for x, _, _ in train], [y for _, y, _ in train])
        if kept:
            self.message(_accuracy_line(crf, [x for x, _, _ in kept], [y for _, y, _ in kept]))
        crf.end_iteration()
        for piece in last_lines(crf):
            self.message(piece)
        if model:
            write_crfsuite(crf.model_, model)

    # ---- internal ----

    def _before_train(self) -> None:
        """Prepare for messages."""

    def _parameter(self, name: str) -> _Parameter:
        found = _PARAMETERS[self._algorithm].get(name)
        if found is None:
            raise InputError(
                f"Parameter not found: {name!r}. Those of {self._algorithm} are {', '.join(self.params())}."
            )
        return found

    def _arguments(self) -> dict[str, Any]:
        """The parameters that were given, as arguments of CRF."""
        given = {self._parameter(name).argument: value for name, value in self._given.items()}
        return {name: value for name, value in given.items() if name}

    def _write_nothing(self, model: str) -> None:
        """The model of no sentences, as CRFsuite writes it."""
        self.message("Number of features: 0\n")
        if model:
            none = np.zeros(0, [("src", "<u4"), ("dst", "<u4"), ("weight", "<f8")])
            write_crfsuite(model_of_weights([], [], none, none), model)


class Trainer(BaseTrainer):
    """A trainer that reads its own log: `logparser`, and methods `on_...` that are called with parts of it."""

    logparser: TrainLogParser | None = None
    _events: ClassVar[tuple[str, ...]] = (
        "start", "featgen_progress", "featgen_end", "prepared", "prepare_error", "iteration", "optimization_end", "end",
    )  # fmt: skip

    def _before_train(self) -> None:
        self.logparser = TrainLogParser()

    def message(self, message: str) -> None:
        """Read a piece of the log, and call the method of the event that it completes."""
        if self.logparser is None:
            self.logparser = TrainLogParser()
        event = self.logparser.feed(message)
        if not self.verbose or event is None:
            return
        log = self.logparser.last_log
        if event == "iteration":
            self.on_iteration(log, self.logparser.last_iteration)
        elif event == "featgen_progress":
            self.on_featgen_progress(log, self.logparser.featgen_percent)
        else:
            getattr(self, f"on_{event}")(log)

    def on_start(self, log: str) -> None:
        """The training begins."""
        sys.stdout.write(log)

    def on_featgen_progress(self, log: str, percent: int) -> None:  # noqa: ARG002
        """Features are being read."""
        sys.stdout.write(log)

    def on_featgen_end(self, log: str) -> None:
        """All features are known."""
        sys.stdout.write(log)

    def on_prepared(self, log: str) -> None:
        """The solver begins."""
        sys.stdout.write(log)

    def on_prepare_error(self, log: str) -> None:
        """The solver could not begin."""
        sys.stdout.write(log)

    def on_iteration(self, log: str, info: dict[str, Any] | None) -> None:  # noqa: ARG002
        """A round of the solver has ended."""
        sys.stdout.write(log)

    def on_optimization_end(self, log: str) -> None:
        """The solver has ended."""
        sys.stdout.write(log)

    def on_end(self, log: str) -> None:
        """The model is written."""
        sys.stdout.write(log)
