"""The best sequence where sums are rounded and labels are many: the same as by a recursion that leaves no label out."""

from __future__ import annotations

import numpy as np
import pytest

from vcrf.decoding.potentials import Potentials
from vcrf.kernels import decode
from vcrf.kernels.scores import LocalScores


def random_scores(seed: int, n_labels: int, order: int, spread: float, most_local: int = 5) -> Potentials:
    """Scores that are no round numbers; single labels weigh `spread` times as much as patterns."""
    rng = np.random.default_rng(seed)
    lengths = [0, 1, 2, 30, 3, 12]
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n_tokens = int(ptr[-1])
    counts = rng.integers(0, most_local + 1, n_tokens)
    size = rng.integers(2, order + 1, counts.sum())
    local = LocalScores(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        size.astype(np.uint32),
        rng.integers(n_labels**size).astype(np.uint32),
        rng.normal(scale=2.0, size=len(size)),
    )
    tables = {k: rng.normal(size=n_labels**k) for k in range(2, order + 1)}
    return Potentials(ptr, spread * rng.normal(size=(n_tokens, n_labels)), tables, local, order)


def plain_viterbi(scores: Potentials, i: int) -> list[int]:
    """Best labels of sentence i by the recursion over all labels, with the kernel's sums: equal ones stay equal."""
    n_labels, order = scores.n_labels, scores.order
    n_states = n_labels ** (order - 1)
    start, stop = int(scores.sent_ptr[i]), int(scores.sent_ptr[i + 1])
    best, values = np.zeros(n_states), []
    for t in range(stop - 1, start - 1, -1):
        depth = min(t - start + 1, order)
        first, last = scores._arc_tables.offsets[depth : depth + 2]
        arcs = scores._arc_tables.natural[first:last].copy()
        for j in range(scores.local.ptr[t], scores.local.ptr[t + 1]):
            if scores.local.size[j] <= depth:
                arcs[scores.local.code[j] :: n_labels ** int(scores.local.size[j])] += scores.local.score[j]
        after = scores.node[t] + best[np.arange(len(arcs)) % n_states].reshape(-1, n_labels)
        values.append(arcs.reshape(-1, n_labels) + after)
        best = np.zeros(n_states)
        best[: len(values[-1])] = values[-1].max(axis=1)
    labels, history = [], 0
    for value in reversed(values):
        labels.append(int(value[history].argmax()))
        history = (history * n_labels + labels[-1]) % n_states
    return labels


@pytest.mark.parametrize(("n_labels", "order"), [(1, 2), (5, 2), (17, 2), (3, 3), (6, 3), (3, 4)])
@pytest.mark.parametrize("spread", [0.0, 0.5, 5.0, 50.0])
def test_labels_that_are_left_out_are_not_the_best(n_labels: int, order: int, spread: float) -> None:
    """With flat scores no label can be left out, with steep ones nearly all are."""
    for seed in range(5):
        scores = random_scores(seed, n_labels, order, spread)
        for i, labels in enumerate(scores.decode()):
            assert labels.tolist() == plain_viterbi(scores, i)
            lattice = scores.lattice(i)
            assert lattice.score(labels.tolist()) == pytest.approx(lattice.viterbi()[1], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("n_labels", [1, 2, 5, 17, 40])
@pytest.mark.parametrize("spread", [0.0, 0.5, 5.0, 50.0])
def test_plain_pairs(n_labels: int, spread: float) -> None:
    """Pairs of labels without words have a loop of their own, with the same labels as the general one."""
    for seed in range(8):
        scores = random_scores(seed, n_labels, 2, spread, most_local=0)
        if seed % 2:  # many ties
            scores.node[:] = scores.node.round()
            scores.tables[2][:] = scores.tables[2].round()
        if seed % 4 == 3:  # forbidden labels and pairs
            scores.node[::3, 0] = scores.tables[2][1::5] = -np.inf
        general = np.empty(len(scores.node), np.uint32)
        decode.viterbi(scores.sent_ptr, 2, scores.node, scores._arc_tables, scores.local, general)
        assert scores.decode_tokens().tolist() == general.tolist()
        for i, labels in enumerate(scores.decode()):
            assert labels.tolist() == plain_viterbi(scores, i)
