"""Estimators in the manner of scikit-learn: parameters in, sequences of labels out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from vcrf.errors import InputError, NotFittedError
from vcrf.families import (
    Family,
    NamedFeature,
    Template,
    Text,
    default_families,
    explicit_families,
    intern_sentences,
    paper_complexities,
    paper_families,
    read_attributes,
)
from vcrf.families.explicit import AttributeText
from vcrf.model import FamilyFacts, Label, Model, Potentials, build_model
from vcrf.penalties import FamilyPenalty
from vcrf.problem import Problem, build_problem
from vcrf.solvers.result import Callback, IterationRecord, SolverResult, Status
from vcrf.types import Floats, UInts32

T = TypeVar("T")

# Tagging works on blocks of this many tokens: scores stay in the cache, memory does not grow with the text.
_TOKENS_PER_BLOCK = 1 << 15


class SequenceEstimator(BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """What every estimator does with a fitted model: label, give probabilities, draw, score.

    A subclass sets `classes_` and `model_` in `fit`.
    """

    classes_: list[Label]
    model_: Model

    def predict(self, X: Iterable[Any]) -> list[list[Label]]:
        """Best labels of each sentence.

        Parameters
        ----------
        X : iterable of sentences, of the same kind as in `fit`

        Returns
        -------
        list of list of labels
            Of equal sequences the first in the order of `classes_`. An empty sentence gives an empty list.
        """
        names = np.array([*self._model().labels, None], dtype=object)[:-1]
        return [names[ids].tolist() for scores in self._potentials(X) for ids in scores.decode()]

    def predict_marginals(self, X: Iterable[Any]) -> list[list[dict[Label, float]]]:
        """Posterior of each label at each token: a list of dicts ``{label: probability}`` a sentence."""
        labels = self._model().labels
        return [
            [dict(zip(labels, row, strict=True)) for row in sentence.tolist()]
            for scores in self._potentials(X)
            for sentence in scores.label_marginals()
        ]

    def predict_kbest(self, X: Iterable[Any], k: int = 5) -> list[list[tuple[list[Label], float]]]:
        """Find the k best label sequences of each sentence with their probabilities, best first."""
        out = []
        for scores in self._potentials(X):
            for i in range(len(scores)):
                lattice = scores.lattice(i)
                sequences, values = lattice.kbest(k)
                probabilities = np.exp(values - lattice.log_partition()).tolist()
                out.append(list(zip(map(self._names, sequences.tolist()), probabilities, strict=True)))
        return out

    def sample(
        self, X: Iterable[Any], n: int = 1, random_state: np.random.Generator | int | None = None
    ) -> list[list[list[Label]]]:
        """Draw n label sequences a sentence from the posterior; `random_state` is a seed or a generator."""
        if random_state is None:
            random_state = getattr(self, "random_state", None)
        rng = np.random.default_rng(random_state)
        return [
            [self._names(draw) for draw in scores.lattice(i).sample(n, rng).tolist()]
            for scores in self._potentials(X)
            for i in range(len(scores))
        ]

    def score(self, X: Iterable[Any], y: Iterable[Any]) -> float:
        """Share of tokens with the right label; a label that training has not seen counts as wrong."""
        X, y = as_sentences(X), _listed_labels(y)
        check_lengths(X, y)
        pairs = zip(chain.from_iterable(y), chain.from_iterable(self.predict(X)), strict=True)
        hits = [bool(true == predicted) for true, predicted in pairs]
        if not hits:
            raise InputError("score needs at least one token, got none. Pass sentences that are not empty.")
        return sum(hits) / len(hits)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one file, which `vcrf.load` reads (see docs/model_file.md).

        The file holds the model, the facts of its training and the parameters; those that are objects of the
        user (a callback) are left out. It is written whole or not at all.

        Raises
        ------
        NotFittedError
            Before `fit`.
        InputError
            When the path cannot be a file, or the model reads attributes with a class that is not vcrf's own.
        OSError
            When writing fails; an old file is then as it was.
        """
        from vcrf.model_file import save

        save(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    def _model(self) -> Model:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit(X, y) first.")
        return self.model_

    def _potentials(self, X: Iterable[Any]) -> Iterator[Potentials]:
        """Scores of the sentences, block by block."""
        model = self._model()
        is_attributes = any(isinstance(source, NamedFeature) for source in model.sources)
        for block in _blocks(as_sentences(X)):
            text = read_text(block, is_attributes if is_attributes else None)
            check_readable(text, [Family("model", tuple(model.sources))])
            yield model.potentials(text)

    def _names(self, ids: list[int]) -> list[Label]:
        labels = self._model().labels
        return [labels[i] for i in ids]


class _TrainingData(NamedTuple):
    """What fitting needs of the data, whatever the strengths."""

    problem: Problem
    classes: list[Label]
    complexities: Floats


class VCRF(SequenceEstimator):
    """Voted Conditional Random Field.

    Minimises, over the weights w of all features (attribute x tag pattern),

        (1/m) sum_i log sum_y exp(loss(y, y_i) + w.(Psi(x_i, y) - Psi(x_i, y_i)))
            + sum_k (complexity_strength * r_k + base_strength) * ||w_k||_1

    where k runs over the families of features and r_k is the family's complexity, to a certified gap.

    Parameters
    ----------
    families : "default", "paper" or list of Family
        "default" is a set for tagging; "paper" is H(k1, k2, k3), k1 <= words, 1 <= k2 <= tags, k3 <= affix.
        For feature dicts, attribute lists or arrays "default" is one family a feature name and tag patterns.
    words, tags, affix : int, optional
        Limits of the preset: how far it reads, the longest tag pattern, the longest affix.
    complexity_strength : float, optional
        The paper's lambda. None means 0: every family is penalised alike.
    base_strength : float, optional
        The paper's beta. None means 0.5 / m with m sentences, which is c1 = 0.5 in CRFsuite's units.
    norm : "l1", "l2" or "elastic"
        With c_k the strength of a family: c_k |w|, c_k w^2 / 2, or
        c_k (l1_ratio |w| + (1 - l1_ratio) w^2 / 2).
    l1_ratio : float
    loss : None or "hamming"
        Task loss inside the surrogate; "hamming" is the share of wrong labels in the sentence.
    candidates : "all" or "observed"
        Which pairs of attribute and tag pattern may have a weight: all, or those seen in training.
    complexities : "paper" or mapping from family name to number
        The r_k; "paper" is sqrt(2 log|H_k| / m).
    tol : float
        Stop when the duality gap is at most tol times the objective.
    max_passes : int, optional
        Limit on passes over the data.
    n_jobs : int, optional
        Threads: None means all cores available, -1 too. The result does not depend on it.
    verbose : bool
        Write progress to stderr.
    callback : callable, optional
        Called with an `IterationRecord` after each round; returning True stops the training.
    random_state : int, optional
        Seed of `sample`. Training draws nothing.

    Attributes
    ----------
    classes_ : list
        The labels, sorted.
    objective_, gap_ : float
        Value of the problem above at the weights, and how far it can be above the optimum.
    kkt_violation_ : float
    n_candidates_, n_columns_, n_active_ : int
        Attributes x tag patterns before any reduction; distinct columns; (merged) features with a weight.
    families_ : list of FamilyFacts
    history_ : list of IterationRecord
    status_ : Status
    model_ : Model
    result_ : SolverResult

    Notes
    -----
    Empty sentences are allowed; training leaves them out and they are labelled by an empty list.

    Examples
    --------
    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "sleeps"]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> VCRF(base_strength=0.01).fit(X, y).predict([["the", "dog", "sleeps"]])
    [['DET', 'NOUN', 'VERB']]
    """

    def __init__(
        self,
        *,
        families: str | Sequence[Family] = "default",
        words: int | None = None,
        tags: int | None = None,
        affix: int | None = None,
        complexity_strength: float | None = None,
        base_strength: float | None = None,
        norm: str = "l1",
        l1_ratio: float = 0.5,
        loss: str | None = None,
        candidates: str = "all",
        complexities: str | Mapping[str, float] = "paper",
        tol: float = 1e-3,
        max_passes: int | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        callback: Callback | None = None,
        random_state: int | None = None,
    ) -> None:
        self.families = families
        self.words = words
        self.tags = tags
        self.affix = affix
        self.complexity_strength = complexity_strength
        self.base_strength = base_strength
        self.norm = norm
        self.l1_ratio = l1_ratio
        self.loss = loss
        self.candidates = candidates
        self.complexities = complexities
        self.tol = tol
        self.max_passes = max_passes
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state

    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Any],
        sample_weight: Sequence[float] | None = None,
    ) -> VCRF:
        """Train.

        Parameters
        ----------
        X : iterable of sentences
            A sentence is a sequence of tokens; a token is a str, a dict of features, a list of attribute
            strings or a row of numbers, the same kind everywhere.
        y : iterable of sequences of labels
            One label a token, str or int.
        sample_weight : sequence of float, optional
            One weight a sentence; the mean over sentences becomes a weighted mean. 0 leaves a sentence out.

        Returns
        -------
        VCRF
            Itself.
        """
        return self._solve(self._read(X, y, sample_weight), None)

    def path(
        self,
        X: Iterable[Any],
        y: Iterable[Any],
        grid: Iterable[tuple[float, float]],
        sample_weight: Sequence[float] | None = None,
    ) -> Iterator[VCRF]:
        """Train for many strengths: the data are read once and each point starts from the one before.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        grid : iterable of (complexity_strength, base_strength)
            Visited from strong to weak.

        Yields
        ------
        VCRF
            A fitted copy of this estimator for each point. An interrupted point (Ctrl-C, or the callback) is the
            last one.
        """
        data = self._read(X, y, sample_weight)
        typical = float(np.mean(data.complexities))
        start: SolverResult | None = None
        for complexity, base in sorted(grid, key=lambda point: (-(point[0] * typical + point[1]), -point[0])):
            tagger: VCRF = clone(self).set_params(complexity_strength=complexity, base_strength=base)
            start = tagger._solve(data, start).result_
            yield tagger
            if start.status is Status.INTERRUPTED:
                return

    def _read(self, X: Iterable[Any], y: Iterable[Any], sample_weight: Sequence[float] | None) -> _TrainingData:
        """Check the input and build the problem; nothing is kept on the estimator yet."""
        sentences, labels, weights = training_sentences(X, y, sample_weight)
        classes = sorted_classes(labels)
        text = read_text(sentences)
        families = self._families(text)
        check_readable(text, families)
        complexities = self._complexities(families, text, len(classes))
        problem = build_problem(
            text, label_numbers(labels, classes), len(classes), families, weights=weights, candidates=self.candidates
        )
        return _TrainingData(problem, classes, complexities)

    def _solve(self, data: _TrainingData, start: SolverResult | None) -> VCRF:
        from vcrf.solvers.working_set import solve

        problem = data.problem
        penalty = self._penalty(data.complexities, problem.text.n_sentences)
        result = solve(
            problem, penalty, costs=self._costs(problem.text), tol=check_tol(self.tol),
            max_passes=check_passes("max_passes", self.max_passes), threads=n_threads(self.n_jobs), start=start,
            callback=combined_callback(self.callback, self.verbose),
        )  # fmt: skip
        self.model_ = build_model(problem, penalty.bind(problem), result, data.classes, data.complexities)
        self.classes_, self.result_ = data.classes, result
        self.n_candidates_, self.n_columns_ = problem.n_candidates, len(problem.columns)
        warn_unless_converged(result, "max_passes")
        return self

    @property
    def objective_(self) -> float:
        """Value of the problem at the weights."""
        return self._result().objective

    @property
    def gap_(self) -> float:
        """Certified bound on the objective less the optimum."""
        return self._result().gap

    @property
    def kkt_violation_(self) -> float:
        """Largest violation of the optimality conditions, relative to the feature's strength."""
        return self._result().kkt_violation

    @property
    def n_active_(self) -> int:
        """Number of (merged) features with a weight."""
        return self._result().n_active

    @property
    def history_(self) -> list[IterationRecord]:
        """Records of the solver's rounds."""
        return self._result().history

    @property
    def status_(self) -> Status:
        """Why the solver stopped."""
        return self._result().status

    @property
    def families_(self) -> list[FamilyFacts]:
        """Complexity, strength, size and weight of each family."""
        return self._model().families

    def _result(self) -> SolverResult:
        self._model()
        return self.result_

    # ---- parameters ----

    def _families(self, text: Text) -> list[Family]:
        limits = {"words": self.words, "tags": self.tags, "affix": self.affix}
        given = {name: limit for name, limit in limits.items() if limit is not None}
        if not isinstance(self.families, str):
            _check_no_limits(given, "a list of families")
            if not _is_family_list(self.families):
                raise InputError(
                    f"families must be 'default', 'paper' or a list of Family objects, got {self.families!r}."
                )
            return list(self.families)
        if self.families not in ("default", "paper"):
            raise InputError(f"families must be 'default', 'paper' or a list of Family objects, got {self.families!r}.")
        for name, limit in given.items():
            least = 1 if name == "tags" else 0
            if not isinstance(limit, Integral) or isinstance(limit, bool) or limit < least:
                raise InputError(f"{name} must be an integer of at least {least}, got {limit!r}.")
        if isinstance(text, AttributeText):
            if self.families == "paper":
                raise InputError(
                    "families='paper' reads words and affixes off tokens: expected tokens as str, got given "
                    "attributes. Pass lists of str, or families='default'."
                )
            tags = given.pop("tags", 2)
            _check_no_limits(given, "given attributes")
            return explicit_families(text, tags)
        return default_families(**given) if self.families == "default" else paper_families(**given)

    def _complexities(self, families: list[Family], text: Text, n_labels: int) -> Floats:
        if isinstance(self.complexities, str):
            if self.complexities != "paper":
                raise InputError(
                    f"complexities must be 'paper' or a mapping from family name to number, got {self.complexities!r}."
                )
            return paper_complexities(families, text, n_labels)
        names = {family.name for family in families}
        missing, unknown = names - set(self.complexities), set(self.complexities) - names
        if missing or unknown:
            raise InputError(
                f"complexities needs one number for each of the {len(names)} families: "
                f"missing {_listing(missing)}; unknown {_listing(unknown)}."
            )
        return np.array([self.complexities[family.name] for family in families], np.float64)

    def _penalty(self, complexities: Floats, n_sentences: int) -> FamilyPenalty:
        base = 0.5 / n_sentences if self.base_strength is None else self.base_strength
        complexity = 0.0 if self.complexity_strength is None else self.complexity_strength
        for name, strength in (("base_strength", base), ("complexity_strength", complexity)):
            if not _is_strength(strength):
                raise InputError(f"{name} must be a finite number that is not negative, got {strength!r}.")
        return FamilyPenalty.from_strengths(complexity * complexities + base, self.norm, self.l1_ratio)

    def _costs(self, text: Text) -> Floats | None:
        if self.loss is None:
            return None
        if self.loss != "hamming":
            raise InputError(f"loss must be None or 'hamming', got {self.loss!r}.")
        return 1.0 / np.maximum(np.diff(text.sent_ptr), 1)


# ------------------------------------------------------------------------------------ data


def as_sentences(X: Iterable[Any]) -> list[Sequence[Any]]:
    """Check that X is a collection of sequences, and list it."""
    if isinstance(X, (str, bytes, Mapping)) or not isinstance(X, Iterable):
        raise InputError(f"X must be a list of sentences, got {type(X).__name__}. Pass [sentence] for one.")
    sentences = [x if hasattr(x, "__len__") else _listed(x, i) for i, x in enumerate(X)]
    for i, sentence in enumerate(sentences):
        if isinstance(sentence, (str, bytes, Mapping)):
            raise InputError(
                f"Sentence {i} of X is a {type(sentence).__name__}: expected a list of tokens. "
                "Split text into tokens first, for one sentence pass [sentence]."
            )
    return sentences


def _listed(sentence: Any, index: int) -> list[Any]:
    if not isinstance(sentence, Iterable):
        raise InputError(f"Sentence {index} of X is a {type(sentence).__name__}: expected a list of tokens.")
    return list(sentence)


def check_lengths(X: Sequence[Sequence[Any]], y: Sequence[Sequence[Any]]) -> None:
    """Raise InputError unless there is one list of labels a sentence and one label a token."""
    if len(X) != len(y):
        raise InputError(f"X and y differ in length: got {len(X)} sentences and {len(y)} lists of labels.")
    for i, (sentence, labels) in enumerate(zip(X, y, strict=True)):
        if len(sentence) != len(labels):
            raise InputError(
                f"Sentence {i}: expected one label a token, got {len(sentence)} tokens and "
                f"{len(labels)} labels. "
                "Correct this sentence or leave it out."
            )


def training_sentences(
    X: Iterable[Any], y: Iterable[Any], sample_weight: Sequence[float] | None = None
) -> tuple[list[Sequence[Any]], list[list[Label]], Floats | None]:
    """Sentences, labels and weights (of sum 1) to train on: neither empty nor of weight 0.

    Raises
    ------
    InputError
        When there is nothing to train on, the shapes differ, or a label is neither str nor int.
    """
    sentences, labels = as_sentences(X), _listed_labels(y)
    check_lengths(sentences, labels)
    _check_labels(labels)
    n = len(sentences)
    weights = np.ones(n) if sample_weight is None else _checked_weights(sample_weight, n)
    kept = [i for i, sentence in enumerate(sentences) if len(sentence) and weights[i] > 0.0]
    if not kept:
        raise InputError(
            f"Training needs at least one sentence with a token: got {len(sentences)} sentences, all of them "
            "empty or of weight 0. Check what was read into X."
        )
    normalised = None if sample_weight is None else weights[kept] / weights[kept].sum()
    return [sentences[i] for i in kept], [labels[i] for i in kept], normalised


def _listed_labels(y: Iterable[Any]) -> list[list[Label]]:
    if isinstance(y, (str, bytes)) or not isinstance(y, Iterable):
        raise InputError(f"y must be a list of lists of labels, got {type(y).__name__}.")
    listed = []
    for i, labels in enumerate(y):
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise InputError(f"y[{i}] must be a list of labels, one a token, got {labels!r}.")
        listed.append(labels.tolist() if isinstance(labels, np.ndarray) else list(labels))
    return listed


def _check_labels(y: list[list[Label]]) -> None:
    """Refuse labels that are neither str nor int, naming the first."""
    for i, labels in enumerate(y):
        for t, label in enumerate(labels):
            if not isinstance(label, (str, Integral)):
                raise InputError(
                    f"Sentence {i}, token {t}: a label must be a str or an int, got {type(label).__name__}: "
                    f"{label!r}. Give every token a label or leave the sentence out."
                )


def _checked_weights(sample_weight: Sequence[float], n_sentences: int) -> Floats:
    weights = np.asarray(sample_weight, np.float64)
    if weights.shape != (n_sentences,) or not np.all((weights >= 0.0) & (weights < np.inf)):
        raise InputError(
            f"sample_weight needs {n_sentences} finite numbers that are not negative, one a sentence: got "
            f"shape {weights.shape}, from {weights.min(initial=np.inf)} to {weights.max(initial=-np.inf)}."
        )
    return weights


def sorted_classes(y: list[list[Label]]) -> list[Label]:
    """Return the distinct labels, sorted."""
    classes = list(dict.fromkeys(chain.from_iterable(y)))
    if len({isinstance(label, str) for label in classes}) > 1:
        raise InputError("Labels must be all str or all int: got both. Convert them to str.")
    return sorted(classes)


def label_numbers(y: list[list[Label]], classes: list[Label]) -> UInts32:
    """Flat label numbers, (n_tokens,)."""
    number = {label: i for i, label in enumerate(classes)}
    return np.array([number[label] for label in chain.from_iterable(y)], np.uint32)


def read_text(sentences: Sequence[Sequence[Any]], is_attributes: bool | None = None) -> Text:
    """Intern tokens, or flatten given attributes; None looks at the first token."""
    if is_attributes is None:
        first = next((sentence[0] for sentence in sentences if len(sentence)), "")
        is_attributes = not isinstance(first, str)
    return read_attributes(sentences) if is_attributes else intern_sentences(sentences)


def check_readable(text: Text, families: Sequence[Family]) -> None:
    """Raise InputError when a family reads words, or given attributes, and the text has none."""
    sources = chain.from_iterable(family.sources for family in families)
    for source in sources:
        if isinstance(text, AttributeText) and isinstance(source, Template):
            if any(reading != "boundary" for _, reading in source.parts):
                raise InputError(
                    f"The feature {source.name!r} is read off tokens: expected tokens as str, got dicts of "
                    "features or attributes. Pass lists of str."
                )
        elif not isinstance(text, AttributeText) and isinstance(source, NamedFeature):
            raise InputError(
                f"The feature {source.name!r} is given by the user: expected tokens as dicts of features or "
                "lists of attributes, got str. Pass X of the kind that the families read."
            )


def _blocks(sentences: list[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    block: list[Sequence[Any]] = []
    n_tokens = 0
    for sentence in sentences:
        block.append(sentence)
        n_tokens += len(sentence)
        if n_tokens >= _TOKENS_PER_BLOCK:
            yield block
            block, n_tokens = [], 0
    if block:
        yield block


# ------------------------------------------------------------------------------------ running the solver


def n_threads(n_jobs: int | None) -> int:
    """Threads for scikit-learn's n_jobs, except that None means all cores available to the process."""
    if n_jobs == 0:
        raise InputError("n_jobs must be positive, or None or -1 for all cores: got 0.")
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    has_affinity = hasattr(os, "sched_getaffinity")
    n_cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return max(1, n_cores + 1 + (n_jobs or -1))


def check_tol(tol: float) -> float:
    """Return a tolerance that can be reached."""
    if not 0.0 < tol < np.inf:
        raise InputError(f"tol must be a positive number, got {tol!r}. 1e-3 is a relative gap of 0.1 %.")
    return tol


def check_passes(name: str, limit: int | None) -> int | None:
    """Return a limit on passes: None or at least 1."""
    if limit is not None and (not isinstance(limit, Integral) or limit < 1):
        raise InputError(f"{name} must be a positive integer, or None for no limit, got {limit!r}.")
    return limit


def combined_callback(callback: Callback | None, verbose: bool) -> Callback | None:
    """Return one callback that reports on the terminal, if verbose, and calls the user's."""
    if not verbose:
        return callback
    report = _terminal_report()

    def both(record: IterationRecord) -> bool | None:
        report(record)
        return callback(record) if callback is not None else None

    return both


def _terminal_report() -> Callable[[IterationRecord], None]:
    from rich.console import Console

    console = Console(stderr=True, highlight=False)

    def report(record: IterationRecord) -> None:
        is_certified = record.objective > 0.0 and record.gap < np.inf
        gap = f"{record.gap / record.objective:.1e}" if is_certified else "?"
        console.print(
            f"{record.seconds:8.2f} s  {record.n_passes:5d} passes  objective {record.objective:.6f}  "
            f"relative gap {gap}  {record.n_active} active",
            markup=False,
        )

    return report


def warn_unless_converged(result: SolverResult, limit_name: str) -> None:
    """Warn about weights that are not certified to the tolerance."""
    if result.status is not Status.CONVERGED:
        warnings.warn(
            f"{result.status.value} Relative gap {result.relative_gap:.2g} after {result.n_passes} passes. "
            f"The model is kept. To come closer raise {limit_name} or the strengths; if it will do, tol.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _is_family_list(value: object) -> bool:
    return isinstance(value, Iterable) and all(isinstance(family, Family) for family in value)


def _is_strength(value: object) -> bool:
    return isinstance(value, Real) and bool(0.0 <= float(value) < np.inf)


def _check_no_limits(given: dict[str, int], what: str) -> None:
    if given:
        raise InputError(
            f"{_listing(given)} limit a preset that reads tokens and mean nothing for {what}. Leave them out."
        )


def _listing(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
