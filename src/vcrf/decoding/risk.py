"""Minimum Bayes risk: the labels whose expected loss under the posterior is least."""

from __future__ import annotations

import numpy as np

from vcrf import kernels
from vcrf.decoding.potentials import Potentials
from vcrf.errors import BudgetError
from vcrf.lattice import Lattice
from vcrf.losses import Loss
from vcrf.types import Floats, Ints


def least_risk(scores: Potentials, loss: Loss, k: int, n_samples: int, rng: np.random.Generator) -> list[list[int]]:
    """Label numbers of each sentence with the least expected loss.

    A loss that is a sum over tokens is minimised exactly over all sequences that the constraints allow. For others
    the candidates are the k best sequences, and their posterior, made to sum to 1, gives the expectation; with
    n_samples both are so many draws, and the best sequence is a candidate too.
    """
    costs = loss.token_costs(scores.n_labels)
    if costs is not None:
        return [labels.tolist() for labels in _token_risks(scores, costs).decode()]
    return [_best_candidate(scores.lattice(i), loss, k, n_samples, rng) for i in range(len(scores))]


def _token_risks(scores: Potentials, costs: Floats) -> Potentials:
    """Potentials whose best sequence has the least sum of expected costs; what was forbidden still is."""
    marginals = np.concatenate([np.empty((0, scores.n_labels)), *scores.label_marginals()])
    node = np.where(scores.node > -np.inf, -marginals @ costs.T, -np.inf)
    pairs = scores.tables.get(2)
    is_bound = pairs is not None and np.isneginf(pairs).any()
    tables = {2: np.where(np.isneginf(pairs), -np.inf, 0.0)} if pairs is not None and is_bound else {}
    none = np.empty(0, np.uint32)
    local = kernels.scores.LocalScores(np.zeros(len(node) + 1, np.int64), none, none, np.empty(0))
    return Potentials(scores.sent_ptr, node, tables, local, order=2 if is_bound else 1)


def _best_candidate(lattice: Lattice, loss: Loss, k: int, n_samples: int, rng: np.random.Generator) -> list[int]:
    if lattice.n_positions == 0:
        return []
    if n_samples:
        references, counts = np.unique(lattice.sample(n_samples, rng), axis=0, return_counts=True)
        weights = counts / n_samples
        # The best sequence first, so that it wins ties.
        candidates = np.concatenate([lattice.viterbi()[0][None], references])
    else:
        references, values = lattice.kbest(k)
        weights = np.exp(values - values[0])
        weights /= weights.sum()
        candidates = references
    risks = _losses(loss, candidates, references, lattice.n_labels) @ weights
    # Risks that differ by rounding are equal: then the more probable one, which comes first.
    best = int(np.flatnonzero(risks <= risks.min() + 1e-12)[0])
    labels: list[int] = candidates[best].tolist()
    return labels


def _losses(loss: Loss, candidates: Ints, references: Ints, n_labels: int) -> Floats:
    """Loss of each candidate for each reference, (n_candidates, n_references)."""
    columns = []
    for reference in references:
        try:
            columns.append(loss.automaton(reference, n_labels).path_costs(candidates))
        except BudgetError:  # too many states: the loss itself is slower, and the same
            columns.append(np.array([loss(candidate, reference) for candidate in candidates]))
    return np.stack(columns, axis=1)
