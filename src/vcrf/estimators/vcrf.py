"""Estimators in the manner of scikit-learn: parameters in, sequences of labels out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from vcrf import scratch
from vcrf.arguments.docstrings import documented
from vcrf.arguments.inputs import (
    as_sentences,
    check_characters,
    check_lengths,
    check_readable,
    check_together,
    generator_of,
    label_numbers,
    listed_labels,
    read_text,
    sentences_and_labels,
    sorted_classes,
    training_sentences,
)
from vcrf.arguments.open_labels import allowed_labels
from vcrf.arguments.recipes import aimed_at
from vcrf.arguments.running import (
    combined_callback,
    n_threads,
    warn_unless_converged,
)
from vcrf.classes import as_classes
from vcrf.cluster import as_runner
from vcrf.complexity.choices import check_complexities, family_complexities
from vcrf.complexity.features import feature_complexities
from vcrf.decoding.constraints import as_constraints, check_constraints
from vcrf.errors import InputError
from vcrf.estimators.cluster import fit_on_cluster
from vcrf.estimators.heldout import DevelopmentSet, DevelopmentWatch, hold_out
from vcrf.estimators.parameters import Parameters, TrainingData
from vcrf.estimators.trained import Trained
from vcrf.estimators.warm import warm_start
from vcrf.families import class_families, component_families, component_pair_families
from vcrf.families.explicit import AttributeText
from vcrf.model.fingerprints import joined
from vcrf.problem import build_problem
from vcrf.solvers.result import SolverResult, Status, Watch
from vcrf.solvers.run import RunOptions
from vcrf.tuning import TuneResult
from vcrf.tuning.search import strength_order, tune
from vcrf.types import Floats, Ints

# What training writes to files for each token, about, where there is a budget for memory: less than it will be.
_BYTES_A_TOKEN = 2000


@documented
class VCRF(Trained, Parameters):
    """Voted Conditional Random Field.

    Minimises, over the weights w of all features (attribute x tag pattern),

        (1/m) sum_i log sum_y exp(loss(y, y_i) + w.(Psi(x_i, y) - Psi(x_i, y_i)))
            + sum_k (complexity_strength * r_k + base_strength) * ||w_k||_1

    where k runs over the families of features and r_k is the family's complexity, to a certified gap.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : list
        The labels, sorted.
    complexity_strength_, base_strength_, norm_, l1_ratio_, count_power_, factors_, loss_, temperature_, tol_
        The parameters in force: given, or the recipe's.
    aim_ : float
        The relative gap that training aimed at: `tol_`, or a third of it.
    objective_, gap_ : float
        Value of the problem above at the weights, and how far it can be above the optimum.
    kkt_violation_ : float
    n_candidates_, n_columns_, n_active_ : int
        Attributes x tag patterns before any reduction; distinct columns; (merged) features with a weight.
    families_ : list of FamilyFacts
    history_ : list of IterationRecord
        One a round of the solver, with the development set's token error if there is one.
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
    >>> VCRF().fit(X, y).predict([["the", "dog", "sleeps"]])
    [['DET', 'NOUN', 'VERB']]
    """

    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Any] | None = None,
        sample_weight: Sequence[float] | None = None,
        X_dev: Iterable[Any] | None = None,
        y_dev: Iterable[Any] | None = None,
        start: Any = None,
        client: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> VCRF:
        """Train.

        Parameters
        ----------
        X : iterable of sentences
            A sentence is a sequence of tokens; a token is a str, a dict of features, a list of attribute
            strings or a row of numbers, the same kind everywhere. A `Corpus` has its labels with it.
        y : iterable of sequences of labels
            One label a token, str or int. None leaves the label of a token open, a set says that it is one of
            these; training then sums over what is possible. That is no convex problem: it ends at a stationary
            point, and no gap is claimed (`gap_` is infinite).
        sample_weight : sequence of float, optional
            One weight a sentence; the mean over sentences becomes a weighted mean. 0 leaves a sentence out.
        X_dev, y_dev : optional
            Development set, never trained on: its token error is in `history_` after each round, and with
            `patience` it decides which weights are kept. Tokens whose label is None are not counted. With `patience`
            and no development set, a tenth of the sentences takes its place.
        start : fitted tagger, optional
            Begin with its weights: fewer passes where the sentences are much the same, and the same certified
            optimum. Labels, sentences and parameters may be others.
        client : distributed.Client, optional
            Train on the workers of a Dask scheduler (the extra `cluster`; what is not there on a cluster is refused).
        checkpoint : path, optional
            With `client`: the weights of each round are kept there; a training that finds them goes on from there.

        Returns
        -------
        VCRF
            Itself.
        """
        self._check_parameters()
        X, y = sentences_and_labels(X, y)
        if client is not None:
            given = {"sample_weight": sample_weight, "X_dev": X_dev, "y_dev": y_dev, "start": start}
            return fit_on_cluster(self, X, y, as_runner(client), checkpoint, given)
        if checkpoint is not None:
            raise InputError("`checkpoint` is for training on a cluster: pass `client` too, or leave it out.")
        with scratch.within(self.memory):
            return self._fit(X, y, sample_weight, X_dev, y_dev, start)

    def _fit(self, X: Any, y: Any, sample_weight: Any, X_dev: Any, y_dev: Any, start: Any) -> VCRF:
        check_together(X_dev, y_dev)
        patience = self.patience
        if self.radius is not None and (X_dev is not None or patience is not None):
            raise InputError("`radius` is not there with a development set or `patience`: leave these out.")
        if patience is not None and X_dev is None:
            X, y, sample_weight, X_dev, y_dev = hold_out(X, y, sample_weight, self.random_state or 0)
        data = self._read(X, y, sample_weight)
        self._warn_of_idle_complexities()
        development = None if X_dev is None else self._development(data, X_dev, y_dev)
        if start is None:
            return self._solve(data, None, development, patience)
        begin, seen = warm_start(data, start), start.model_.sentences
        self._solve(data, begin, development, patience)
        # Weights may keep something of the sentences they began with: training that stops early surely does.
        self.model_ = replace(self.model_, sentences=joined([self.model_.sentences, seen]))
        return self

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
        points = list(grid)
        data = self._read(X, y, sample_weight)
        typical = float(np.mean(data.complexities))
        start: SolverResult | None = None
        for complexity, base in sorted(points, key=lambda point: strength_order(point, typical)):
            tagger: VCRF = clone(self).set_params(complexity_strength=complexity, base_strength=base)
            tagger._check_parameters()
            start = tagger._solve(data, start).result_
            yield tagger
            if start.status is Status.INTERRUPTED:
                return

    def tune(
        self,
        X: Iterable[Any],
        y: Iterable[Any],
        X_dev: Iterable[Any] | None = None,
        y_dev: Iterable[Any] | None = None,
        *,
        folds: int = 5,
        complexity_strengths: Sequence[float] | None = None,
        base_strengths: Sequence[float] | None = None,
        settle: float | None = 1e-3,
        sample_weight: Sequence[float] | None = None,
        random_state: int = 0,
        on_stage: Callable[[str], None] | None = None,
    ) -> TuneResult:
        """Choose the strengths by the token error on a development set, or by cross-validation.

        The data of a fold are read once and each point of the grid starts from the one before. Ctrl-C keeps what is
        done: the best of it is trained and returned.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        X_dev, y_dev : optional
            Development set; then there are no folds.
        folds : int
            Number of parts of X, drawn by `random_state`; each is held out once.
        complexity_strengths, base_strengths : sequence of float, optional
            The grid is all their pairs but (0, 0). By default base strengths of 2, 1, 0.5, 0.25 and 0.1
            occurrences for norms "l1", "group" and "family", and of 0.9, 0.3, 0.09, 0.03 for the others (divided by m
            sentences), and complexity strengths that add 0, 0.1, 0.3 and 1 to them (divided by m and the families' mean
            complexity).
        settle : float, optional
            A point ends when 20 passes decrease its objective by less than this share; the rows of the table have
            the certified gaps. None solves every point to `tol`.
        random_state : int
            Seed of the folds.
        on_stage : callable, optional
            Told what begins: "tuning" when the data have been read, "tuning 7/16" at each point of the grid in each
            fold, "training" at last.

        Returns
        -------
        TuneResult
            The table, its best row (of equal errors the sparsest), and an estimator trained on X there, to `tol`.
        """
        self._check_parameters()
        if self.radius is not None and settle is not None:
            raise InputError(
                "`tune` ends points early, which is not there with `radius`: pass `settle=None`, or leave `radius` out."
            )
        with scratch.within(self.memory):
            return tune(
                self, X, y, sample_weight, X_dev, y_dev, folds, complexity_strengths, base_strengths, settle,
                random_state, on_stage,
            )  # fmt: skip

    def _read(self, X: Iterable[Any], y: Iterable[Any], sample_weight: Sequence[float] | None) -> TrainingData:
        """Check the input and build the problem; nothing is kept on the estimator yet."""
        self._check_parameters()
        sentences, labels, weights = training_sentences(X, y, sample_weight, may_be_open=True)
        classes = sorted_classes(labels)
        if self.constraints is not None:
            check_constraints(self.constraints, classes)  # before the training
        generator_of(self.random_state)  # so is a wrong seed
        text = read_text(sentences)
        if isinstance(text, AttributeText) and isinstance(self.families, str):
            text = text.pooled()
        check_characters(text, classes)
        families = self._families(text)
        scratch.check_room(_BYTES_A_TOKEN * text.n_tokens)
        table = as_classes(self.word_classes)
        if table is not None:
            families += class_families(table)
        components = self._components(classes)
        if components is not None:
            families = families + (component_families(families) if self.components is not None else [])
            families += component_pair_families(components.pairs)
        check_readable(text, families)
        check_complexities(self.complexities, families)
        y, allowed = label_numbers(labels, classes), allowed_labels(labels, classes)
        problem = build_problem(
            text,
            y,
            len(classes),
            families,
            weights=weights,
            candidates=self.candidates,
            # Steps move each attribute by itself, and those of equal strength alike; a family's norm asks for its own.
            merge_twins="families" if self.solver != "certified" or self._form()["norm"] == "family" else True,
            allowed=allowed,
            components=components,
            known=self._known_labels(text, y, len(classes), allowed),
        )
        features = feature_complexities(problem) if self.complexities == "feature" else None
        norm = self._form()["norm"] if self.norms is None else self._norms(families)
        complexities = (
            family_complexities(self.complexities, problem, norm, self._power) if features is None else features.means
        )
        return TrainingData(problem, classes, complexities, features, self._surrogate(problem, classes))

    def _development(self, data: TrainingData, X: Iterable[Any], y: Any) -> DevelopmentSet:
        """Check and read a development set."""
        sentences, labels = as_sentences(X), listed_labels(y)
        check_lengths(sentences, labels)
        text = read_text(sentences, isinstance(data.problem.text, AttributeText) or None)
        check_readable(text, data.problem.families)
        moves = None if self.constraints is None else as_constraints(self.constraints).compile(data.classes)
        return DevelopmentSet(data.problem, text, labels, data.classes, moves)

    def _solve(
        self,
        data: TrainingData,
        start: SolverResult | None,
        development: DevelopmentSet | None = None,
        patience: int | None = None,
        watch: Watch | None = None,
    ) -> VCRF:
        problem = data.problem
        penalty = self._penalty(data).bind(problem)
        if development is not None:
            watch = DevelopmentWatch(development, penalty, patience)
        result = self._judged(self._run(data, start, watch))
        self.model_ = data.build(
            problem, penalty, result, data.classes, data.complexities, float(self._value("temperature"))
        )
        self.classes_, self.result_ = data.classes, result
        self.n_candidates_, self.n_columns_ = problem.n_candidates, int(problem.columns.class_counts.sum())
        for name, value in self._in_force(problem.text.n_sentences).items():
            setattr(self, f"{name}_", value)
        self.aim_ = self._aim()
        warn_unless_converged(result, "max_passes")
        return self

    def _run(self, data: TrainingData, start: SolverResult | None, watch: Watch | None) -> SolverResult:
        from vcrf.solvers.family_norms import solve_family_norms
        from vcrf.solvers.group import solve_group
        from vcrf.solvers.sgd import Steps, solve_by_steps
        from vcrf.solvers.working_set import solve

        problem = data.problem
        if self.solver != "certified":
            seed = int(generator_of(self.random_state or 0).integers(2**31))
            steps = Steps(self.rule, self.eta, self.eta_decay, self.kappa, seed, self.solver == "gd")
            return solve_by_steps(problem, self._penalty(data), data.surrogate.loss, steps, self._running(watch), start)
        if self._form()["norm"] == "group":
            return solve_group(problem, self._penalty(data), data.surrogate, self._running(watch), start)
        if self._form()["norm"] == "family":
            return solve_family_norms(
                problem, self._penalty(data), data.surrogate, self._running(watch), start, dual_start=self.dual_start
            )
        if self.radius is not None:
            return self._constrained(data, start)
        return solve(
            problem, self._penalty(data), surrogate=data.surrogate, start=start, dual_start=self.dual_start,
            **vars(self._running(watch)),
        )  # fmt: skip

    def _constrained(self, data: TrainingData, start: SolverResult | None) -> SolverResult:
        """The constrained form, by way of the penalised one."""
        from vcrf.solvers.constrained import solve_constrained
        from vcrf.solvers.working_set import solve

        problem, penalty = data.problem, self._penalty(data)
        how, every = self._running(), np.ones(len(data.problem.columns), bool)
        objective = data.surrogate.build(problem, every, how.threads, how.lattice)

        def penalised(factor: float, before: SolverResult | None, tol: float, left: int | None) -> SolverResult:
            return solve(
                problem, penalty.times(factor), surrogate=data.surrogate, start=before, dual_start=self.dual_start,
                **vars(replace(how, tol=tol, max_passes=left)),
            )  # fmt: skip

        def value(features: Ints, w: Floats) -> float:
            return float(objective.at(objective.compile(features), w).value)

        try:
            if not objective.is_convex:
                raise InputError("`radius` needs the label of every token, some are left open: leave it out.")
            return solve_constrained(
                penalised, value, penalty.bind(problem), float(self.radius or 0.0), tol=how.tol,
                max_passes=how.max_passes, start=start,
            )  # fmt: skip
        finally:
            objective.close()

    def _judged(self, result: SolverResult) -> SolverResult:
        """A run that stopped before the gap it aimed at has converged if the gap is small enough for `tol`."""
        is_stopped = result.status in (Status.MAX_PASSES, Status.SETTLED, Status.STALLED)
        if is_stopped and result.gap <= self._value("tol") * result.objective:
            return replace(result, status=Status.CONVERGED)
        return result

    @property
    def _needs_penalty(self) -> bool:
        """Whether a strength of 0 is refused."""
        return bool(self._form()["norm"] in ("group", "family"))

    def _aim(self) -> float:
        """The relative gap that training aims at."""
        return aimed_at(self._recipe, self._value("tol"))

    def _running(self, watch: Watch | None = None) -> RunOptions:
        """How any solver is to run."""
        callback = combined_callback(self.callback, self.verbose)
        return RunOptions(self._aim(), self.max_passes, n_threads(self.n_jobs), callback, watch, self.inference)
