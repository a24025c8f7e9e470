"""Objectives of small problems on a lattice of choice, no column screened; value and gradient as a pair."""

from __future__ import annotations

import numpy as np

from vcrf.structures.chain import Chain
from vcrf.structures.compiled_loss import CompiledLoss, compile_loss
from vcrf.structures.training_loss import TrainingLoss
from vcrf.surrogates.choice import OUTER
from vcrf.surrogates.maximum import choose_max
from vcrf.surrogates.smooth import SmoothObjective


def objective(kind, problem, loss, lattice="dense", threads=1, keep=None):
    """The smooth surrogate `kind` of a training loss; of a task loss, compiled or not, with its automata."""
    if isinstance(loss, np.ndarray):
        loss = TrainingLoss(loss)
    elif not isinstance(loss, TrainingLoss):
        compiled = loss if isinstance(loss, CompiledLoss) else compile_loss(problem, loss)
        loss = TrainingLoss(np.zeros(problem.text.n_sentences), compiled, picks=kind == "structboost")
    keep = np.ones(len(problem.columns), bool) if keep is None else keep
    chain = Chain(problem, keep, threads, lattice, keeps_arcs=loss.automata is not None)
    return SmoothObjective(chain, OUTER[kind], loss, problem.weights, OUTER[kind].mass(problem))


def maximum(kind, problem, loss, lattice="dense"):
    """The maximum surrogate `kind` of a task loss."""
    return choose_max(problem, kind, loss).build(problem, np.ones(len(problem.columns), bool), 1, lattice)


def value_and_gradient(objective, plan, w):
    """F and its gradient on the plan's features."""
    point = objective.at(plan, w)
    return point.value, point.gradient


def scan_of(objective, plan, w, limits, **options):
    """F and the scan."""
    point, scan = objective.scan(plan, w, limits, **options)
    return point.value, scan
