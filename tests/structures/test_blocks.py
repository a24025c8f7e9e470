"""Sums over blocks are those of a chain of all sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from block_corpora import Cut, counted, cuts, family_lists
from vcrf.cluster import Here
from vcrf.families import default_families, intern_sentences
from vcrf.losses import HammingLoss
from vcrf.problem import build_problem
from vcrf.structures import blocks
from vcrf.structures.structure import Strengths
from vcrf.surrogates.blocks import BlocksChoice
from vcrf.surrogates.choice import choose

_LOSS = HammingLoss(normalised=False, cost=3.0)


def both(cut: Cut, families: Any, keep_share: float = 1.0) -> tuple[Any, Any, Any]:
    """The objective of one machine, that of blocks, and the problem of one machine."""
    problem = build_problem(intern_sentences(cut.sentences), cut.y, cut.n_labels, families)
    keep = np.diff(problem.columns.ptr) >= (1 if keep_share == 1.0 else 2)
    one = choose(problem, "crf", _LOSS).build(problem, keep, 1, "dense")
    read, found = counted(cut, families)
    choice = BlocksChoice(_LOSS, read.labels, Here(), read.data, found.attributes, found.answers)
    return one, choice.build(found.problem, keep), problem


def weights_for(problem: Any, keep: Any, seed: int) -> tuple[Any, Any]:
    """Some features and weights."""
    rng = np.random.default_rng(seed)
    stride = problem.space.stride
    every = np.concatenate(
        [c * stride + np.arange(stride) for c in np.flatnonzero(keep)] + [np.zeros(0, np.int64)]
    ).astype(np.int64)
    column, kind, _ = problem.split_features(every)
    has = np.array([problem.has_order(int(k))[c] for c, k in zip(column, kind, strict=True)], bool)
    every = every[has]
    features = np.sort(rng.choice(every, min(len(every), 30), replace=False))
    return features, rng.normal(size=len(features))


@given(cuts(), family_lists(), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.5]))
def test_values_gradients_scans_and_hessians_are_those_of_one_machine(cut: Cut, families, seed, share) -> None:
    """Whatever the blocks; with one block to the last bit."""
    one, many, problem = both(cut, families, share)
    features, w = weights_for(problem, one.keep, seed)
    limits = {k: np.where(problem.has_order(k), 0.02 * k, np.inf) for k in problem.kinds}
    plans = one.compile(features), many.compile(features)
    found = [objective.scan(plan, w, limits) for objective, plan in zip((one, many), plans, strict=True)]
    (a, seen), (b, met) = found
    close = (
        (lambda x, y: np.array_equal(x, y)) if len(cut.blocks) == 1 else (lambda x, y: np.allclose(x, y, 1e-9, 1e-12))
    )
    assert close(a.value, b.value)
    assert close(a.gradient, b.gradient)
    assert plans[0].order == plans[1].order
    assert plans[0].work == plans[1].work
    # What is at its limit may be on either side of it.
    for scan, other in ((seen, met), (met, seen)):
        at_limit = [
            np.isclose(abs(g), limits[int(k)][c], 1e-9)
            for c, k, g in zip(*problem.split_features(scan.features)[:2], scan.gradients, strict=True)
        ]
        assert np.all(np.isin(scan.features, other.features) | np.array(at_limit, bool))
    shared = np.isin(met.features, seen.features)
    assert close(seen.gradients[np.isin(seen.features, met.features)], met.gradients[shared])
    for variances in ((None, None), (seen.variances, met.variances)):
        assert close(one.curvature(a, variances[0]), many.curvature(b, variances[1]))
    chosen = np.arange(0, len(features), 2)
    assert close(one.hessian(plans[0], w, chosen), many.hessian(plans[1], w, chosen))
    some = problem.split_features(features)[:2]
    assert np.array_equal(one.work(*some), many.work(*some))


@given(cuts(), st.integers(0, 2**32 - 1))
def test_what_a_block_keeps_only_saves_time(cut: Cut, seed: int) -> None:
    """Blocks that come out of a pickle before each task find the same, to the last bit."""
    import pickle

    families = default_families()
    _, many, problem = both(cut, families)
    features, w = weights_for(problem, many.keep, seed)
    limits = {k: np.where(problem.has_order(k), 0.02, np.inf) for k in problem.kinds}
    plan = many.compile(features)
    point, scan = many.scan(plan, w, limits)
    curvature = many.curvature(point, scan.variances)
    many.structure.blocks = [pickle.loads(pickle.dumps(block)) for block in many.structure.blocks]
    assert np.array_equal(many.curvature(point, scan.variances), curvature)
    many.structure.blocks = [pickle.loads(pickle.dumps(block)) for block in many.structure.blocks]
    again = many.structure.scan(point.sums, point.gradient, many.structure.wanted(many.mass, limits))
    assert np.array_equal(again.features, scan.features)
    assert np.array_equal(again.gradients, scan.gradients)


@given(cuts(), st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_a_scan_that_may_stop_returns_the_worst(cut: Cut, seed: int, most: int) -> None:
    """Of too many, by how much they exceed their limits; nothing is left out that is worse than what is returned."""
    _, many, problem = both(cut, default_families())
    features, w = weights_for(problem, many.keep, seed)
    limits = {k: np.where(problem.has_order(k), 0.01 * k, np.inf) for k in problem.kinds}
    plan = many.compile(features)
    _, whole = many.scan(plan, w, limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_MOST_FOUND", most)
        _, some = many.scan(plan, w, limits, may_stop=True)
    assert whole.is_complete
    assert some.is_complete == (len(whole.features) <= most)
    assert len(some.features) >= min(most, len(whole.features))
    assert np.all(np.isin(some.features, whole.features))

    def excess(scan: Any) -> Any:
        column, kinds, _ = problem.split_features(scan.features)
        bounds = np.array([limits[int(k)][c] for c, k in zip(column, kinds, strict=True)])
        return np.abs(scan.gradients) - bounds

    left_out = excess(whole)[~np.isin(whole.features, some.features)]
    if len(left_out):
        assert left_out.max() <= excess(some).min()
        assert np.count_nonzero(excess(some) > 1.2 * excess(some).min()) <= most


def test_what_needs_all_sentences_in_one_place_is_refused(small_cut: Cut) -> None:
    """No values of sentences, no gradients of them, no ascent."""
    _, many, _ = both(small_cut, default_families())
    structure = many.structure
    potentials = structure.prepare(structure.compile(np.zeros(0, np.int64)), np.zeros(0), many.loss)
    sums = potentials.sums(many.loss, many.weights)
    for refused in (
        lambda: potentials.values(many.loss),
        sums.wrong_labels,
        lambda: structure.sentence_gradients(sums, np.zeros(0, np.int64)),
        lambda: structure.problem.example_of,
        lambda: structure.problem.n_parts(1),
        lambda: structure.problem.has_part(1),
    ):
        with pytest.raises(TypeError):
            refused()
    none = np.zeros(0, np.int64)
    assert structure.ascent(many.loss, many.weights, Strengths({}, {}, none, np.zeros(0), np.zeros(0))) is None
    assert many.structure.blocks
    many.close()
    assert not many.structure.blocks


@pytest.fixture
def small_cut() -> Cut:
    """Two blocks."""
    from block_corpora import block_of

    sentences, labels = [["a", "b"], ["b"]], [[0, 1], [1]]
    blocks = [block_of(sentences[:1], labels[:1]), block_of(sentences[1:], labels[1:])]
    return Cut(sentences, labels, 2, blocks)
