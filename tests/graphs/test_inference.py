"""Sums, maxima, draws and bounds of graphs against enumeration, golden values and laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from graphs.drawn import draw_skeletons, enumerated, enumerated_marginals, inference_of
from vcrf.errors import BudgetError
from vcrf.graphs.blocks import grid_columns, make_blocks
from vcrf.graphs.inference import is_tight
from vcrf.graphs.kinds import PartKind, PartKinds
from vcrf.graphs.layout import Skeleton
from vcrf.kernels import graph_pass

SEEDS = st.integers(0, 10**6)


@settings(max_examples=40)
@given(SEEDS)
def test_exact_sums_marginals_and_best_are_those_of_enumeration(seed):
    """Log-partition, marginals of every part, entropy, a best assignment and its score."""
    rng = np.random.default_rng(seed)
    infer = inference_of(*draw_skeletons(rng))
    layout = infer.layout
    scores = rng.choice([0.3, 2.0, 20.0]) * rng.normal(size=infer.n_scores)
    logs, marginals, entropies = enumerated_marginals(layout, scores)
    values, parts, _ = infer.marginals(scores, infer.no_messages(), 0)
    np.testing.assert_allclose(values, logs, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(parts, marginals, atol=1e-9)
    _, _, _, agreed, found = infer.repaired(scores, infer.no_messages(), 0)
    np.testing.assert_allclose(agreed, parts, atol=1e-12)
    np.testing.assert_allclose(found, entropies, atol=1e-7)
    best = infer.best(scores)
    for i in range(layout.n_examples):
        assert best.scores[i] == pytest.approx(enumerated(layout, scores, i)[1].max(), abs=1e-9)
    np.testing.assert_allclose(best.bounds, best.scores)


@settings(max_examples=25)
@given(SEEDS, st.integers(1, 12))
def test_k_best_are_those_of_enumeration(seed, k):
    """Scores in order, and all different."""
    rng = np.random.default_rng(seed)
    infer = inference_of(*draw_skeletons(rng, n_graphs=1, most=4))
    scores = rng.normal(size=infer.n_scores)
    _, totals = enumerated(infer.layout, scores, 0)
    found = infer.kbest(scores, 0, k)
    expected = np.sort(totals)[::-1][:k]
    np.testing.assert_allclose([score for _, score in found], expected, atol=1e-9)
    (second,) = infer.second_best(scores, infer.best(scores).y, [0])
    assert second == pytest.approx(np.sort(totals)[-2] if len(totals) > 1 else -np.inf, abs=1e-9)
    assert len({tuple(y.tolist()) for y, _ in found}) == len(found)


def test_draws_have_the_posterior():
    """Counts of 20,000 draws against probabilities, within five standard deviations."""
    rng = np.random.default_rng(3)
    infer = inference_of(*draw_skeletons(rng, n_graphs=1, most=4, cards=[2, 3], density=1.0))
    scores = rng.normal(size=infer.n_scores)
    assignments, totals = enumerated(infer.layout, scores, 0)
    p = np.exp(totals - totals.max())
    p /= p.sum()
    number = {tuple(y.tolist()): i for i, y in enumerate(assignments)}
    draws = infer.sample(scores, 0, 20_000, np.random.default_rng(0))
    counts = np.bincount([number[tuple(y.tolist())] for y in draws], minlength=len(p))
    assert np.all(np.abs(counts - 20_000 * p) <= 5 * np.sqrt(20_000 * p * (1 - p)) + 1)


@settings(max_examples=30)
@given(SEEDS)
def test_blocks_bound_the_sum_and_the_maximum(seed):
    """U >= log Z at any messages, and falls with sweeps; repaired marginals never exceed U; U_0 >= max; U_T between."""
    rng = np.random.default_rng(seed)
    kinds, skeletons = draw_skeletons(rng, n_graphs=1, cards=[2, 3], density=0.8)
    exact, infer = inference_of(kinds, skeletons), inference_of(kinds, skeletons, max_table=27)
    scores = rng.choice([0.3, 2.0]) * rng.normal(size=infer.n_scores)
    log_z, top = exact.values(scores, exact.no_messages(), 0)[0][0], enumerated(exact.layout, scores, 0)[1].max()
    messages, before = infer.no_messages(), np.inf
    for _ in range(6):
        (value,), _, _, agreed, (entropy,) = infer.repaired(scores, messages, 0)
        assert log_z - 1e-9 <= value <= before + 1e-9
        assert agreed @ scores + entropy <= value + 1e-9
        for temperature in (1.0, 0.2):
            (cold,), (warm,) = (infer.values(scores, messages, 0, t)[0] for t in (0.0, temperature))
            spread = np.log(infer.layout.cards).sum()
            assert top - 1e-9 <= cold <= warm + 1e-9 <= cold + temperature * spread + 2e-9
        _, messages = infer.values(scores, messages, 1)
        before = value
    # A long run's bound from below never exceeds what it reaches.
    (value,), _, messages, agreed, (entropy,) = infer.repaired(scores, messages, 200)
    assert agreed @ scores + entropy <= value + 1e-9
    assert value - (agreed @ scores + entropy) <= 1e-2 * max(1.0, abs(value))
    best = infer.best(scores)
    assert best.scores[0] <= top + 1e-9 <= best.bounds[0] + 2e-9
    if is_tight(best.scores[0], best.bounds[0]):
        assert best.scores[0] == pytest.approx(top, abs=1e-8)


@settings(max_examples=15)
@given(SEEDS)
def test_marginals_that_are_repaired_agree(seed):
    """Every part has the marginals of its nodes, in whatever block it is."""
    rng = np.random.default_rng(seed)
    infer = inference_of(*draw_skeletons(rng, n_graphs=1, cards=[2, 3], density=0.8), max_table=27)
    layout = infer.layout
    _, _, _, agreed, _ = infer.repaired(rng.normal(size=infer.n_scores), infer.no_messages(), int(rng.integers(0, 3)))
    (skeleton,) = layout.skeletons
    for p, scope in enumerate(skeleton.scopes):
        if layout.kinds.symmetric[skeleton.kinds[p] - 1]:
            continue
        table = agreed[layout.score_ptr[p] : layout.score_ptr[p + 1]].reshape([int(layout.cards[v]) for v in scope])
        for axis, v in enumerate(scope):
            node = agreed[layout.score_ptr[v] : layout.score_ptr[v + 1]]
            np.testing.assert_allclose(
                table.sum(axis=tuple(a for a in range(len(scope)) if a != axis)), node, atol=1e-12
            )


def test_results_do_not_depend_on_threads():
    """Bit for bit."""
    rng = np.random.default_rng(0)
    drawn = draw_skeletons(rng, n_graphs=40, cards=[2, 3], density=0.8)
    one, three = inference_of(*drawn, max_table=27), inference_of(*drawn, max_table=27, threads=3)
    scores = rng.normal(size=one.n_scores)
    for a, b in zip(
        one.repaired(scores, one.no_messages(), 2), three.repaired(scores, three.no_messages(), 2), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.best(scores).y, three.best(scores).y)
    three.close()


def test_values_that_are_forbidden_have_no_probability():
    """-inf at some values of nodes, in exact and in relaxed graphs."""
    rng = np.random.default_rng(5)
    drawn = draw_skeletons(rng, n_graphs=3, cards=[3, 4], density=0.8)
    for max_table in (10**6, 64):
        infer = inference_of(*drawn, max_table=max_table)
        scores = rng.normal(size=infer.n_scores)
        first = infer.layout.score_ptr[infer.layout.node_parts]
        scores[first] = -np.inf
        values, parts, messages = infer.marginals(scores, infer.no_messages(), 2)
        assert np.all(np.isfinite(values))
        assert np.all(np.isfinite(messages))
        assert np.all(parts[first] < 1e-300)
        assert np.all(infer.best(scores).y > 0)


def test_what_needs_exact_sums_is_refused_by_name():
    """Sampling and the k best of a relaxed graph."""
    rng = np.random.default_rng(0)
    infer = inference_of(*draw_skeletons(rng, n_graphs=1, most=6, cards=[4, 4], density=1.0), max_table=64)
    for call in (
        lambda: infer.sample(np.zeros(infer.n_scores), 0, 1, rng),
        lambda: infer.kbest(np.zeros(infer.n_scores), 0, 2),
    ):
        with pytest.raises(BudgetError, match="max_table"):
            call()


# ---- grids


def grid_skeleton(rows, columns):
    """Variables row by row, all of one type."""
    cells = np.arange(rows * columns).reshape(rows, columns)
    pairs = [
        *zip(cells[:, :-1].ravel(), cells[:, 1:].ravel(), strict=True),
        *zip(cells[:-1].ravel(), cells[1:].ravel(), strict=True),
    ]
    scopes = [(v,) for v in range(cells.size)] + [(int(a), int(b)) for a, b in pairs]
    return Skeleton(np.zeros(cells.size, np.int64), np.array([1] * cells.size + [2] * len(pairs)), tuple(scopes))


def test_wider_strips_are_tighter_and_the_whole_is_exact():
    """U of widths 1, 2, 3 falls to log Z."""
    rng = np.random.default_rng(1)
    kinds = PartKinds(("node",), ((0, 1, 2),), (PartKind("node", (0,)), PartKind("edge", (0, 0))))
    skeleton = grid_skeleton(4, 5)
    scores = 1.5 * rng.normal(size=inference_of(kinds, [skeleton]).n_scores)
    found = []
    for max_table, width in ((27, 1), (3**3, 2), (3**4, 3), (10**6, 1)):
        infer = inference_of(kinds, [skeleton], max_table, width)
        found.append(infer.values(scores, infer.no_messages(), 60)[0][0])
        assert bool(infer.layout.is_exact[0]) == (max_table == 10**6)
    assert found == sorted(found, reverse=True)
    assert found[0] - found[-1] > 1e-3


def test_grids_are_recognised_by_their_edges():
    """Whatever the order of an edge; a missing one does no harm, a diagonal does."""
    scopes = [scope for scope in grid_skeleton(3, 4).scopes if len(scope) == 2]
    assert grid_columns(scopes, range(12)) == 4
    assert grid_columns([(b, a) for a, b in scopes[1:]], range(12)) == 4
    assert grid_columns([*scopes, (0, 5)], range(12)) == 0
    assert grid_columns([*scopes, (3, 4)], range(12)) == 0


@settings(max_examples=30)
@given(SEEDS)
def test_weights_of_blocks_and_shares_of_factors_sum_to_one(seed):
    """At every variable and factor."""
    rng = np.random.default_rng(seed)
    kinds, (skeleton,) = draw_skeletons(rng, n_graphs=1, most=8, cards=[2, 2], density=rng.random())
    cards = [len(kinds.labels[t]) for t in skeleton.types]
    blocks = make_blocks(cards, skeleton.scopes, 8, 1)
    weights, shares = np.zeros(len(cards)), np.zeros(len(skeleton.scopes))
    for block in blocks:
        for v in {v for clique in block.tree.cliques for v in clique}:
            weights[v] += block.weight
        for f, share in block.shares.items():
            shares[f] += share
            assert any(set(skeleton.scopes[f]) <= set(clique) for clique in block.tree.cliques)
    np.testing.assert_allclose(weights, 1.0)
    np.testing.assert_allclose(shares, 1.0)


# ---- golden values: a 2 x 3 grid with 2 3 2 / 3 2 2 values, rows and columns of weight 1/2


CARDS = [2, 3, 2, 3, 2, 2]
FACTORS = [(v,) for v in range(6)] + [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
GOLD = np.array([0, 1, 1, 2, 0, 1])


def golden_inference(max_table):
    """The graph: a kind for each pair of types."""
    types = np.array([card - 2 for card in CARDS])
    kinds = [PartKind("node2", (0,)), PartKind("node3", (1,))]
    numbers = []
    for scope in FACTORS:
        ends = tuple(int(types[v]) for v in scope)
        kind = PartKind("edge", ends) if len(scope) == 2 else kinds[ends[0]]
        if kind not in kinds:
            kinds.append(kind)
        numbers.append(kinds.index(kind) + 1)
    named = PartKinds(("node2", "node3"), ((0, 1), (0, 1, 2)), tuple(kinds))
    return inference_of(named, [Skeleton(types, np.array(numbers), tuple(FACTORS))], max_table)


def golden_features():
    """Two features: unary sin, pairwise cos; (n_scores, 2)."""
    rows = []
    for scope in FACTORS:
        index = np.indices([CARDS[v] for v in scope])
        if len(scope) == 1:
            values = np.sin(1 + 2 * scope[0] + 3 * index[0])
            rows.append(np.stack([values, 0 * values], -1).reshape(-1, 2))
        else:
            values = np.cos(scope[0] + 2 * scope[1] + index[0] - 2 * index[1])
            rows.append(np.stack([0 * values, values], -1).reshape(-1, 2))
    return np.concatenate(rows)


def golden_loss():
    """Hamming: 1 for every wrong value."""
    return np.concatenate(
        [np.arange(card) != GOLD[v] for v, card in enumerate(CARDS)]
        + [np.zeros(CARDS[a] * CARDS[b]) for a, b in FACTORS[6:]]
    )


def forward_sweep(infer, scores, messages):
    """One sweep over the variables in order."""
    layout = infer.layout
    room = graph_pass.scratch_for(layout.shapes, layout.examples, 0, 1)
    logs = graph_pass.logs_for(layout.shapes, layout.examples, 0, 1)
    graph_pass.begin(layout.shapes, layout.examples, 0, scores, messages, 1.0, 0, room, logs)
    return graph_pass.run_program(layout.shapes, layout.examples, 0, 1, messages, 1.0, room, logs)


def dual(infer, scores, messages, features, loss, truth, lam):
    """Max over theta in [0, 1] of theta a - |theta g|^2 / (2 lam), and the entropy."""
    _, _, _, agreed, (entropy,) = infer.repaired(scores, messages, 0)
    a, g = agreed @ loss + entropy, agreed @ features - truth
    theta = min(1.0, a * lam / (g @ g))
    return theta * a - theta**2 * (g @ g) / (2 * lam), entropy


def test_golden_values_of_the_exact_sum():
    """Psi(y), log Z without and with the loss."""
    infer, features, w = golden_inference(10**6), golden_features(), np.array([1.0, 1.5])
    truth = features[infer.layout.entries(GOLD)].sum(axis=0)
    np.testing.assert_allclose(truth, [3.37430661, 0.84686445], atol=1e-8)
    for loss, log_z in ((0.0, 8.37670606), (1.0, 11.14701553)):
        scores = features @ w + loss * golden_loss()
        assert infer.values(scores, infer.no_messages(), 0)[0][0] == pytest.approx(log_z, abs=1e-8)


def test_golden_values_of_the_bound():
    """U, U_0, H_c and the dual after 0 .. 5 sweeps in order; the change of U is what the sweep says."""
    infer, features, w, lam = golden_inference(10), golden_features(), np.array([1.0, 1.5]), 0.1
    assert not infer.is_exact
    loss, truth = golden_loss(), features[infer.layout.entries(GOLD)].sum(axis=0)
    scores, messages, before = features @ w + loss, infer.no_messages(), None
    for row in (
        (14.41492496, 13.25868393, 4.69965653, 0.45343286), (11.53837987, 9.75581938, 3.68397603, 0.44294911),
        (11.45831645, 9.56917872, 3.50087821, 0.37569391), (11.44587978, 9.43723517, 3.48911886, 0.36061963),
        (11.44501705, 9.40357251, 3.48489444, 0.35706423), (11.44494775, 9.39444103, 3.48347328, 0.35611812),
    ):  # fmt: skip
        (u,), (u0,) = (infer.values(scores, messages, 0, t)[0] for t in (1.0, 0.0))
        bound, entropy = dual(infer, scores, messages, features, loss, truth, lam)
        np.testing.assert_allclose([u, u0, entropy, bound], row, atol=1e-8)
        assert before is None or u == pytest.approx(before, abs=1e-9)
        before = u + forward_sweep(infer, scores, messages)


@pytest.mark.parametrize(("max_table", "optimum"), [(10, 5.33180163), (10**6, 5.31791329)])
def test_golden_optima(max_table, optimum):
    """P* of the relaxed and of the exact problem with L2 of strength 0.1; the dual meets it."""
    infer, features, lam, loss = golden_inference(max_table), golden_features(), 0.1, golden_loss()
    truth = features[infer.layout.entries(GOLD)].sum(axis=0)

    def value(w):
        (u,), marginals, _ = infer.marginals(features @ w + loss, infer.no_messages(), 150)
        return u - w @ truth + 0.5 * lam * w @ w, marginals @ features - truth + lam * w

    found = minimize(value, np.zeros(2), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10})
    assert found.fun == pytest.approx(optimum, abs=1e-6)
    _, _, messages = infer.marginals(features @ found.x + loss, infer.no_messages(), 150)
    bound, _ = dual(infer, features @ found.x + loss, messages, features, loss, truth, lam)
    assert bound == pytest.approx(optimum, abs=1e-5)
