"""`CRF` with the interface of sklearn_crfsuite.CRF: change one import."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from vcrf.arguments.inputs import check_characters, check_together, checked_sentence, label_numbers, training_sentences
from vcrf.arguments.parameters import COUNT, PARAMETERS, check_kind
from vcrf.arguments.running import combined_callback, n_threads, warn_unless_converged
from vcrf.compat.crfsuite_files import check_labels_are_text, with_text_labels, write_crfsuite
from vcrf.compat.sequences import Sequences
from vcrf.errors import InputError
from vcrf.estimators import SequenceEstimator
from vcrf.families import BIAS, Family, NamedFeature, read_attributes
from vcrf.families.explicit import AttributeText
from vcrf.files import check_target
from vcrf.model.build import build_model
from vcrf.model.crfsuite import encode_crfsuite, read_crfsuite
from vcrf.penalties import FamilyPenalty
from vcrf.problem import Problem, build_problem
from vcrf.solvers.result import Callback, SolverResult, Status
from vcrf.types import Label

# CRFsuite's own defaults where a parameter is None.
_DEFAULT_C1, _DEFAULT_C2, _DEFAULT_DELTA, _DEFAULT_PERIOD = 0.0, 1.0, 1e-5, 10
# Ours: the relative gap to stop at, and the one that is small enough where CRFsuite's rule ends the steps. Newton steps
# from there move the objective by less than that rule does, and take longer than all others.
_DEFAULT_TOL, _SETTLED_GAP = 1e-4, 1e-3


class CRF(SequenceEstimator):
    """Linear-chain CRF trained as sklearn_crfsuite.CRF(algorithm="lbfgs").

    Minimises CRFsuite's objective, a sum over sentences without a factor 1/2,

        sum_i -log p(y_i | x_i; w)  +  c1 * ||w||_1  +  c2 * ||w||_2^2

    over weights of (attribute, label) and (label, next label); there are no start or end weights.

    Parameters
    ----------
    algorithm : "lbfgs", "l2sgd" or None
        "l2sgd" minimises the same objective with c1 = 0, and is solved exactly too. The others of CRFsuite ("ap", "pa",
        "arow") do not minimise it and are refused.
    c1, c2 : float, optional
        None means 0 and 1. One of them must be positive.
    all_possible_states, all_possible_transitions : bool, optional
        Weights for all pairs, not only for those seen in training.
    max_iterations : int, optional
        Limit on passes over the data. Reaching a limit that was asked for gives no warning: see `status_`.
    verbose : bool
        Write progress to stderr.
    tol : float, optional
        Stop when the duality gap is at most tol times the objective. None means 1e-4, or up to 1e-3 where CRFsuite's
        own rule (`period`, `delta`) ends first.
    n_jobs : int, optional
        Threads; None means all cores available.
    callback : callable, optional
        Receives an `IterationRecord` after each round; returning True stops with the best weights so far.
    period, delta : optional
        As in CRFsuite: stop when `period` passes decrease the objective by less than delta (10 and 1e-5). With a `tol`
        that is given this ends only what cannot be certified in reasonable time (see docs/solver.md); 0 ends nothing.
    min_freq : float, optional
        A pair of an attribute and a label, or of two labels, is left out if its values in training sum up to less.
    model_filename : str, optional
        `fit` writes the model there too, as a CRFsuite file. Without `fit` the model is read from there.
    trainer_cls
        Not supported; values other than the default are refused.
    num_memories, epsilon, linesearch, max_linesearch, keep_tempfiles, and those of the other
        algorithms (calibration_*, pa_type, c, error_sensitive, averaging, variance, gamma)
        Accepted and without effect: they steer CRFsuite's search, not its optimum.

    Attributes
    ----------
    classes_ : list
        The labels in the order of first sight.
    state_features_ : dict from (attribute, label) to weight
        Attributes that occur at the same tokens have one common weight, which is shared out among them.
    transition_features_ : dict from (label, next label) to weight
    attributes_, num_attributes_ : list of str, int
        The attributes that have a weight.
    tagger_ : vcrf.compat.pycrfsuite.Tagger
    training_log_ : vcrf.compat.pycrfsuite.TrainLogParser
        Its `iterations` are the solver's rounds.
    size_ : int
        Bytes of the model as a CRFsuite file.
        All these are None before `fit`, as in sklearn_crfsuite.
    objective_, gap_ : float
        In CRFsuite's units: a sum over sentences.

    Notes
    -----
    Differences from sklearn_crfsuite 0.5, all deliberate: training stops at a certified gap (by `delta` and `period`
    only where that is small already, or out of reach); `predict` always returns a list of lists (which numpy takes for
    an array of objects); using it before `fit` raises NotFittedError; features with negative values keep their weights;
    there are no temporary files.

    Examples
    --------
    >>> X = [[{"w": "the"}, {"w": "cat"}], [{"w": "a"}, {"w": "cat"}]]
    >>> crf = CRF(c1=0.01, c2=0.01).fit(X, [["DET", "NOUN"], ["DET", "NOUN"]])
    >>> crf.predict([[{"w": "a"}, {"w": "cat"}]])
    [['DET', 'NOUN']]
    """

    _fitted_counts = ("n_sentences_",)
    classes_: Any = None  # before `fit`

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: float | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | None = None,
        keep_tempfiles: bool = False,
        trainer_cls: Any = None,
        *,
        tol: float | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.averaging = averaging
        self.variance = variance
        self.gamma = gamma
        self.verbose = verbose
        self.model_filename = model_filename
        self.keep_tempfiles = keep_tempfiles
        self.trainer_cls = trainer_cls
        self.tol = tol
        self.n_jobs = n_jobs
        self.callback = callback

    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Any],
        X_dev: Iterable[Any] | None = None,
        y_dev: Iterable[Any] | None = None,
    ) -> CRF:
        """Train; X and y may be generators.

        Parameters
        ----------
        X : iterable of sentences
            A sentence is a list of feature dicts or of lists of attribute strings.
        y : iterable of lists of labels
        X_dev, y_dev : optional
            Held-out data: `dev_score_` is then the token accuracy there. Training does not look at it.
        """
        from vcrf.solvers.working_set import solve

        _check_supported(self)
        if self.model_filename is not None:
            check_target(Path(self.model_filename))  # before the training
        if self.tol is not None:
            check_kind("tol", PARAMETERS["tol"].kind, self.tol)
        if self.max_iterations is not None:
            check_kind("max_iterations", COUNT, self.max_iterations)
        check_together(X_dev, y_dev)
        sentences, labels, _ = training_sentences(X, y)
        classes = list(dict.fromkeys(chain.from_iterable(labels)))
        if self.model_filename is not None:
            check_labels_are_text(classes)
        text = read_attributes(sentences).pooled()
        check_characters(text, classes)
        problem = self._problem(text, labels, classes)
        penalty = self._penalty(problem)
        result = solve(
            problem, penalty, tol=_DEFAULT_TOL if self.tol is None else self.tol, max_passes=self.max_iterations,
            threads=n_threads(self.n_jobs), callback=combined_callback(self.callback, self.verbose),
            settle=100.0 * (_DEFAULT_DELTA if self.delta is None else self.delta) / (self.period or _DEFAULT_PERIOD),
            settled_gap=_SETTLED_GAP if self.tol is None else None,
        )  # fmt: skip
        self._forget()
        self.result_, self.n_sentences_ = result, len(sentences)
        self.model_ = build_model(problem, penalty.bind(problem), result, classes)
        self.classes_ = classes
        if self.model_filename is not None:
            write_crfsuite(self.model_, self.model_filename)
        # SETTLED is where CRFsuite stops too, by the same delta and period.
        if self.max_iterations is None and result.status is not Status.SETTLED:
            warn_unless_converged(result, "max_iterations")
        if X_dev is not None and y_dev is not None:
            from vcrf.compat.pycrfsuite.logs import score_lines

            X_dev, y_dev = list(X_dev), [list(labels) for labels in y_dev]
            self.dev_score_ = self.score(X_dev, y_dev)
            self._dev_lines = score_lines(y_dev, self.predict(X_dev), classes)
        return self

    def predict(self, X: Iterable[Any], constraints: Any = None, allowed: Iterable[Any] | None = None) -> Sequences:
        """Best labels of each sentence: a list of lists, see `Tagger.predict`."""
        return Sequences(super().predict(X, constraints, allowed))

    def predict_single(self, xseq: Sequence[Any]) -> list[Label]:
        """Best labels of one sentence."""
        model = self._model()
        if model.attributes is None:
            return self.predict([xseq])[0]
        labels = model.labels
        return [labels[i] for i in model.attributes.decode(checked_sentence(xseq))]

    def predict_marginals_single(self, xseq: Sequence[Any]) -> list[dict[Label, float]]:
        """Posterior of each label at each token of one sentence."""
        return self.predict_marginals([xseq])[0]

    @property
    def objective_(self) -> float:
        """CRFsuite's objective at the weights: a sum over sentences."""
        return self._result().objective * self.n_sentences_

    @property
    def gap_(self) -> float:
        """Certified bound on the objective less the optimum, in the same units."""
        return self._result().gap * self.n_sentences_

    @property
    def status_(self) -> Any:
        """Why the solver stopped."""
        return self._result().status

    @property
    def state_features_(self) -> dict[tuple[str, Label], float] | None:
        """Weights of (attribute, label)."""
        return self._weights[0] if self.__sklearn_is_fitted__() else None

    @property
    def transition_features_(self) -> dict[tuple[Label, Label], float] | None:
        """Weights of (label, next label)."""
        return self._weights[1] if self.__sklearn_is_fitted__() else None

    @property
    def attributes_(self) -> list[str] | None:
        """The attributes that have a weight."""
        state = self.state_features_
        return None if state is None else list(dict.fromkeys(attribute for attribute, _ in state))

    @property
    def num_attributes_(self) -> int | None:
        """Number of attributes that have a weight."""
        attributes = self.attributes_
        return None if attributes is None else len(attributes)

    @property
    def tagger_(self) -> Any:
        """The model as python-crfsuite's tagger, one until the next `fit`; its labels are str."""
        return self._crfsuite_tagger if self.__sklearn_is_fitted__() else None

    @property
    def training_log_(self) -> Any:
        """What CRFsuite's log would tell of the training."""
        from vcrf.compat.pycrfsuite import training_log

        return training_log(self) if hasattr(self, "result_") else None

    @property
    def size_(self) -> int | None:
        """Bytes of the model as a CRFsuite file."""
        return len(encode_crfsuite(with_text_labels(self._model()))) if self.__sklearn_is_fitted__() else None

    def __sklearn_is_fitted__(self) -> bool:
        if not hasattr(self, "model_") and self.model_filename is not None and Path(self.model_filename).is_file():
            self.model_ = read_crfsuite(Path(self.model_filename))
            self.classes_ = list(self.model_.labels)
        return hasattr(self, "model_")

    def __getstate__(self) -> Any:
        state: dict[str, Any] = super().__getstate__()
        return {key: value for key, value in state.items() if key != "_crfsuite_tagger"}

    # ---- internal ----

    _dev_lines: tuple[str, ...] = ()  # of the log: scores on the held-out data

    def _forget(self) -> None:
        """Before another model: what was made of the last one."""
        for name in ("_weights", "_crfsuite_tagger", "_dev_lines"):
            self.__dict__.pop(name, None)

    @cached_property
    def _crfsuite_tagger(self) -> Any:
        from vcrf.compat.pycrfsuite import Tagger

        return Tagger.of_model(self._model())

    def _problem(self, text: AttributeText, labels: list[list[Label]], classes: list[Label]) -> Problem:
        families = [Family(name, (NamedFeature(name),)) for name in text.source_names]
        families.append(Family("transitions", (BIAS,), tags=2))
        candidates = (_candidates(self.all_possible_states), _candidates(self.all_possible_transitions))
        min_count = self.min_freq or 0.0
        if min_count > 0.0:  # what did not occur is too rare
            candidates = ("observed", "observed")
        numbers = label_numbers(labels, classes)
        return build_problem(text, numbers, len(classes), families, candidates=candidates, min_count=min_count)

    def _penalty(self, problem: Problem) -> FamilyPenalty:
        """CRFsuite's strengths of a sum, for our mean: l1 |w| + l2 w^2 / 2 with l1 = c1/m and l2 = 2 c2/m."""
        m = problem.text.n_sentences
        c1 = _DEFAULT_C1 if self.c1 is None else self.c1
        c2 = _DEFAULT_C2 if self.c2 is None else self.c2
        for name, strength in (("c1", c1), ("c2", c2)):
            if not _is_strength(strength):
                raise InputError(f"{name} must be a finite number that is not negative, got {strength!r}.")
        if c1 == c2 == 0.0:
            raise InputError(
                "Without a penalty the objective may have no minimum, and there is no certificate: "
                "got c1 = c2 = 0. Set c1 or c2 above 0."
            )
        n = len(problem.families)
        return FamilyPenalty(np.full(n, c1 / m), np.full(n, 2.0 * c2 / m))

    def _result(self) -> SolverResult:
        self._model()
        return self.result_

    @cached_property
    def _weights(self) -> tuple[dict[tuple[str, Label], float], dict[tuple[Label, Label], float]]:
        state: dict[tuple[str, Label], float] = {}
        transition: dict[tuple[Label, Label], float] = {}
        for feature in self.model_.features():
            if len(feature.labels) == 1:
                state[feature.attribute, feature.labels[0]] = feature.weight
            else:
                transition[feature.labels[0], feature.labels[1]] = feature.weight
        return state, transition


def _is_strength(value: Any) -> bool:
    return isinstance(value, Real) and 0.0 <= float(value) < np.inf


def _candidates(all_possible: bool | None) -> str:
    return "all" if all_possible else "observed"


def _check_supported(crf: CRF) -> None:
    """Refuse what would silently train another model, or leave out a file the user waits for."""
    if crf.algorithm not in (None, "lbfgs", "l2sgd", "ap", "pa", "arow"):
        raise InputError(f"There is no algorithm {crf.algorithm!r}: use algorithm='lbfgs' or 'l2sgd'.")
    if crf.algorithm in ("ap", "pa", "arow"):
        raise InputError(
            f"algorithm={crf.algorithm!r} is not offered: it does not minimise the regularised likelihood. "
            "Use algorithm='lbfgs'; c1 > 0 gives sparse weights."
        )
    if crf.algorithm == "l2sgd" and crf.c1:
        raise InputError(f"c1={crf.c1!r} is no parameter of 'l2sgd', which has c2 alone. Use algorithm='lbfgs'.")
    if crf.min_freq is not None and not _is_strength(crf.min_freq):
        raise InputError(f"min_freq must be a finite number that is not negative, got {crf.min_freq!r}.")
    if crf.trainer_cls is not None:
        raise InputError("trainer_cls is not offered: there is no python-crfsuite trainer to replace.")
