"""The scan of all candidates at a mixture of label sequences: g = sum share * (Psi(sequence) - Psi(truth))."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.problem import Problem
from vcrf.structures.dense import check_arcs
from vcrf.structures.level_scan import MixtureScan
from vcrf.structures.outputs import Mixture
from vcrf.structures.scan import Posteriors, scan_dense
from vcrf.structures.structure import Scan, Wanted
from vcrf.structures.tables import build_tables, slot_corrections
from vcrf.types import Floats

if TYPE_CHECKING:
    from vcrf.structures.chain import Chain


def check_memory(chain: Chain, wanted: Wanted) -> None:
    """Refuse, before any work, a problem whose scans would not fit; on the automaton nothing grows with the order."""
    if chain.is_dense and wanted.order > 1:
        check_arcs(chain.problem, chain.problem.n_labels**wanted.order)


def scan_mixture(chain: Chain, mixture: Mixture, wanted: Wanted) -> Scan:
    """All candidates whose |g| exceeds their limit."""
    if not chain.is_dense:
        return MixtureScan(chain, mixture, _residuals(chain.problem, mixture, np.zeros((0, 0)), 1), wanted).run()
    problem, n_labels, order = chain.problem, chain.problem.n_labels, max(2, wanted.order)
    arcs = np.zeros((problem.n_tokens if wanted.order > 1 else 0, n_labels**order))
    residuals = _residuals(problem, mixture, arcs, order)
    token_weights = mixture.weights(len(problem.weights))[problem.example_of]
    if len(arcs):
        arcs /= np.where(token_weights > 0.0, token_weights, 1.0)[:, None]
    empty, none = chain.compile_dense(np.zeros(0, np.int64)), np.zeros((0, n_labels ** (order - 1)))
    messages = none, none, np.arange(problem.n_tokens), arcs
    found = Posteriors(
        residuals, token_weights, build_tables(empty, np.zeros(0), n_labels, order),
        slot_corrections(empty, np.zeros(0), chain.workers), messages, messages, np.zeros(0, bool),
    )  # fmt: skip
    return scan_dense(chain, found, wanted)


def _residuals(problem: Problem, mixture: Mixture, arcs: Floats, order: int) -> Floats:
    """Shares of labels at each token less the truth, (n_tokens, n_labels); and those of arcs, where there is room."""
    marginals, outputs = np.zeros((problem.n_tokens, problem.n_labels)), mixture.outputs
    kernels.cuts.mixture(
        problem.sent_ptr, outputs.example, outputs.ptr, outputs.labels, mixture.share, problem.n_labels, order,
        marginals, arcs,
    )  # fmt: skip
    token_weights = mixture.weights(len(problem.weights))[problem.example_of]
    marginals[np.arange(problem.n_tokens), problem.y] -= token_weights
    return marginals
