"""The CRF surrogate: value, gradient, scan and Hessian against enumeration of every label sequence."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from enumeration import Enumeration, Feature, all_candidates, feature_of, number_of
from objectives import objective, scan_of, value_and_gradient
from small_problems import WORD, Case, active_sets, cases, pairs_kept
from vcrf.families import BIAS, Family, NamedFeature, intern_sentences, paper_families, read_attributes
from vcrf.problem import build_problem
from vcrf.structures import chain

few = settings(max_examples=30)


@contextmanager
def small_blocks(n_tokens):
    """Cut the work into blocks of few tokens, so that threads have something to share."""
    saved = chain._TOKENS_PER_BLOCK
    chain._TOKENS_PER_BLOCK = n_tokens
    try:
        yield
    finally:
        chain._TOKENS_PER_BLOCK = saved


def case_of(sentences, labels, n_labels, families, *, weights=None, costs=None):
    """Build a case from words."""
    text = intern_sentences(sentences)
    y = np.array([label for sentence in labels for label in sentence], np.uint32)
    problem = build_problem(text, y, n_labels, families, weights=weights)
    costs = np.zeros(len(sentences)) if costs is None else np.array(costs)
    return Case(text, y, n_labels, families, weights, costs, problem)


def check(case, features, w, surrogate=None, rtol=1e-10):
    """Compare value and gradient with enumeration; large scores lose digits when they are subtracted."""
    numbers = np.array([number_of(case.problem, f) for f in features], np.int64)
    expected = Enumeration(case.problem, features, case.costs)
    surrogate = surrogate or case.surrogate()
    value, gradient = value_and_gradient(surrogate, surrogate.compile(numbers), w)
    scale = 1.0 + np.abs(w).max(initial=0.0)
    np.testing.assert_allclose(value, expected.value(w), rtol=rtol, atol=1e-12 * scale)
    np.testing.assert_allclose(gradient, expected.gradient(w), rtol=rtol, atol=1e-12 * scale)


# ---- value and gradient ----


@settings(max_examples=120)
@given(st.data())
def test_value_and_gradient_equal_enumeration(data):
    """Log-sum-exp and expected minus true counts, any order, loss, weights, numbers and overlapping patterns."""
    case = data.draw(cases())
    features, _, w = data.draw(active_sets(case))
    check(case, features, w)


@settings(max_examples=60)
@given(st.data())
def test_value_and_gradient_with_large_weights(data):
    """Weights of 1e3 to 1e5 leave the range of scaled messages: the log domain takes over, exactly."""
    case = data.draw(cases())
    features, _, w = data.draw(active_sets(case, scales=(200.0, 1e3, 1e4, 1e5)))
    check(case, features, w, rtol=1e-9)


@few
@given(st.data())
def test_mixed_easy_and_hard_sentences(data):
    """One huge weight makes some sentences hard; the others keep the scaled messages, and both are summed."""
    case = data.draw(cases(max_sentences=5))
    features, _, w = data.draw(active_sets(case, scales=(0.5,)))
    if features:
        w[data.draw(st.integers(0, len(w) - 1))] = data.draw(st.sampled_from([-1e5, -900.0, 900.0, 1e4]))
    check(case, features, w, rtol=1e-9)


@few
@given(st.data())
def test_gradient_equals_finite_differences(data):
    """Central differences of the surrogate's own value."""
    case = data.draw(cases(max_length=4))
    features, numbers, w = data.draw(active_sets(case, scales=(0.3, 1.0), max_size=8))
    surrogate = case.surrogate()
    active = surrogate.compile(numbers)
    gradient = value_and_gradient(surrogate, active, w)[1]
    step = 1e-5
    for j in range(len(features)):
        shift = step * (np.arange(len(w)) == j)
        above, below = (value_and_gradient(surrogate, active, w + s)[0] for s in (shift, -shift))
        assert gradient[j] == pytest.approx((above - below) / (2 * step), abs=1e-8)


@few
@given(st.data())
def test_one_surrogate_serves_many_active_sets(data):
    """Nothing of an earlier pass (another order, hard sentences, a scan) is left in a later one."""
    case = data.draw(cases())
    surrogate = case.surrogate()
    limits = {k: np.full(len(case.problem.columns), 0.1) for k in range(1, case.problem.order + 1)}
    for _ in range(3):
        features, numbers, w = data.draw(active_sets(case, scales=(1.0, 1e4)))
        if data.draw(st.booleans()):
            scan_of(surrogate, surrogate.compile(numbers), w, limits)
        check(case, features, w, surrogate, rtol=1e-9)


@few
@given(cases())
def test_empty_active_set_counts_label_sequences(case):
    """Without weights the value is the sum over tokens of log(1 + (L - 1) e^cost)."""
    surrogate = case.surrogate()
    value, gradient = value_and_gradient(surrogate, surrogate.compile(np.zeros(0, np.int64)), np.zeros(0))
    lengths = np.diff(case.problem.sent_ptr)
    per_token = np.log(1.0 + (case.n_labels - 1) * np.exp(case.costs))
    assert value == pytest.approx(float(case.problem.weights @ (lengths * per_token)), abs=1e-12)
    assert len(gradient) == 0


@few
@given(st.data())
def test_all_candidates_active(data):
    """Every column with every pattern at once: each arc of a token is under many corrections."""
    case = data.draw(cases(max_labels=2, max_tags=3, max_length=4, max_sentences=3))
    features = all_candidates(case.problem)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    check(case, features, rng.normal(size=len(features)))


def test_overlapping_corrections_on_one_arc():
    """Patterns of length 2 and 3 of one word, of its suffix and of no word, on the same arc."""
    families = paper_families(1, 3, 1)
    case = case_of([["ba", "a", "ba", "a"], ["a"], []], [[0, 1, 1, 0], [1], []], 2, families, costs=[0.25, 1.0, 1.0])
    every = all_candidates(case.problem)
    # Codes that end in "1 1": the pair itself, and both triples on top of it.
    features = [f for f in every if f.k > 1 and f.code % 4 == 3] + [f for f in every if f.k == 3 and f.code % 4 != 3]
    features = sorted(features)
    check(case, features, np.linspace(-2.0, 2.0, len(features)))


@pytest.mark.parametrize("tags", [1, 2, 3, 4])
def test_corpus_of_empty_sentences(tags):
    """No token at all: value 0, nothing found by a scan."""
    case = case_of([[], []], [[], []], 3, paper_families(1, tags, 0))
    surrogate = case.surrogate()
    active = surrogate.compile(np.zeros(0, np.int64))
    assert value_and_gradient(surrogate, active, np.zeros(0))[0] == 0.0
    limits = {k: np.full(len(case.problem.columns), 0.0) for k in range(1, tags + 1)}
    value, scan = scan_of(surrogate, active, np.zeros(0), limits)
    assert value == 0.0
    assert len(scan.features) == 0


def test_tokens_without_any_attribute():
    """The last tokens have no attribute and no partition covers them: their labels are uniform."""
    text = read_attributes([[{"n": 2.0}, {}], [{}, {}]])
    y = np.array([0, 1, 1, 0], np.uint32)
    families = [Family("n", (NamedFeature("n"),))]
    case = Case(text, y, 2, families, None, np.zeros(2), build_problem(text, y, 2, families))
    check(case, [Feature(0, 1, 0), Feature(0, 1, 1)], np.array([0.5, -1.0]))


@pytest.mark.parametrize("n_labels", [17, 20, 33])
def test_more_labels_than_a_vector(n_labels):
    """Rows of more than 16 labels take another path of the matrix products (and 20 is no multiple of it)."""
    rng = np.random.default_rng(n_labels)
    labels = [rng.integers(0, n_labels, n).tolist() for n in (2, 3, 1)]
    words = [[str(rng.choice(["a", "b"])) for _ in row] for row in labels]
    families = [Family("word", (WORD,)), Family("pair", (BIAS,), 2), Family("word pair", (WORD,), 2)]
    case = case_of(words, labels, n_labels, families, costs=[0.5, 1 / 3, 1.0])
    every = all_candidates(case.problem)
    features = sorted({every[i] for i in rng.integers(0, len(every), 60)})
    check(case, features, rng.normal(size=len(features)))


@pytest.mark.parametrize("strength", [5.0, 20.0, 60.0, 250.0])
@pytest.mark.parametrize("tags", [2, 3])
def test_corrections_that_oppose_nodes(strength, tags):
    """Lexical patterns of weight -s against single labels of weight s: counts of plain patterns keep their digits."""
    families = [Family("word", (WORD,)), Family("plain", (BIAS,), tags), Family("lexical", (WORD,), tags)]
    case = case_of([["a", "b", "a", "b"], ["b", "a", "a"]], [[0, 1, 0, 1], [1, 0, 0]], 2, families)
    features = all_candidates(case.problem)
    bias = case.problem.bias_column
    w = np.array([0.0 if f.column == bias else strength * (1.0 if f.k == 1 else -1.0) * (f.code % 2) for f in features])
    check(case, features, w)


@contextmanager
def poisoned_memory():
    """Fill what np.empty returns with NaN: what is read before it is written shows."""
    empty = np.empty

    def poisoned(shape, dtype=float, **options):
        out = empty(shape, dtype, **options)
        if out.dtype.kind == "f":
            out.fill(np.nan)
        return out

    np.empty = poisoned
    try:
        yield
    finally:
        np.empty = empty


@few
@given(st.data())
def test_no_memory_is_read_before_it_is_written(data):
    """Messages of the first tokens fill a part of their rows only; the rest must not reach any sum."""
    case = data.draw(cases())
    features, numbers, w = data.draw(active_sets(case))
    limits = {k: np.where(case.problem.has_order(k), 0.01, np.inf) for k in range(1, case.problem.order + 1)}
    with pairs_kept(data.draw(st.booleans())):
        # Kernels are compiled with numpy as it is.
        check(case, features, w)
        check_scan(case, features, numbers, w, limits, case.surrogate())
        with poisoned_memory():
            check(case, features, w)
            check_scan(case, features, numbers, w, limits, case.surrogate())


# ---- metamorphic ----


@few
@given(st.data())
def test_longer_order_with_zero_weights_changes_nothing(data):
    """A weight of 0 on a longest pattern raises the order of the pass, not the value."""
    case = data.draw(cases(min_tags=2))
    features, _, w = data.draw(active_sets(case, max_order=case.problem.order - 1))
    longest = [f for f in all_candidates(case.problem) if f.k == case.problem.order][:1]
    surrogate = case.surrogate()
    numbers = [number_of(case.problem, f) for f in features]
    short, g_short = value_and_gradient(surrogate, surrogate.compile(np.array(numbers, np.int64)), w)
    both = sorted(zip([*features, *longest], [*w, *[0.0] * len(longest)], strict=True))
    numbers = np.array([number_of(case.problem, f) for f, _ in both], np.int64)
    long, g_long = value_and_gradient(surrogate, surrogate.compile(numbers), np.array([x for _, x in both]))
    assert long == pytest.approx(short, rel=1e-11, abs=1e-11)
    kept = [j for j, (f, _) in enumerate(both) if f in features]
    np.testing.assert_allclose(g_long[kept], g_short, atol=1e-11)


@few
@given(st.data())
def test_weights_of_sentences_scale_their_share(data):
    """The value is linear in the sentences' weights."""
    case = data.draw(cases())
    features, numbers, w = data.draw(active_sets(case))
    total, gradient = 0.0, np.zeros(len(features))
    for i, weight in enumerate(case.problem.weights):
        alone = replace(case, problem=replace(case.problem, weights=np.eye(len(case.problem.weights))[i] * weight))
        surrogate = alone.surrogate()
        value, g = value_and_gradient(surrogate, surrogate.compile(numbers), w)
        total, gradient = total + value, gradient + g
    surrogate = case.surrogate()
    value, g = value_and_gradient(surrogate, surrogate.compile(numbers), w)
    assert value == pytest.approx(total, rel=1e-11, abs=1e-11)
    np.testing.assert_allclose(g, gradient, atol=1e-11)


# ---- threads and blocks ----


@few
@given(st.data())
def test_threads_do_not_change_a_bit(data):
    """Value, gradient, scan and Hessian have the same bytes for 1, 2 and 3 threads, in several blocks."""
    case = data.draw(cases(max_sentences=6, max_length=4, max_tags=3))
    _, numbers, w = data.draw(active_sets(case, scales=(1.0, 1e3)))
    limits = {k: np.full(len(case.problem.columns), 0.05) for k in range(1, case.problem.order + 1)}
    found = []
    with small_blocks(data.draw(st.integers(1, 4))):
        for threads in (1, 2, 3):
            surrogate = case.surrogate(threads)
            active = surrogate.compile(numbers)
            value, gradient = value_and_gradient(surrogate, active, w)
            scanned, scan = scan_of(surrogate, active, w, limits)
            parts = [np.array([value, scanned]), gradient, scan.features, scan.gradients]
            if case.problem.order <= 2:
                parts.append(surrogate.hessian(active, w, np.arange(len(numbers))))
            found.append([part.tobytes() for part in parts])
            surrogate.close()
    assert found[0] == found[1] == found[2]


@few
@given(st.data())
def test_blocks_only_regroup_sums(data):
    """Many blocks and one block agree up to rounding: each block starts and ends inside its own sentences."""
    case = data.draw(cases(max_sentences=6))
    features, _, w = data.draw(active_sets(case, scales=(0.3, 3.0, 1e3)))
    with small_blocks(data.draw(st.integers(1, 4))):
        check(case, features, w, case.surrogate(), rtol=1e-9)


# ---- scan ----


def check_scan(case, features, numbers, w, limits, surrogate):
    """Compare a scan with the enumerated gradient of every candidate; ties with the limit may go either way."""
    candidates = all_candidates(case.problem)
    enumeration = Enumeration(case.problem, features, case.costs)
    gradients = enumeration.gradients(w, candidates)
    limit = np.array([limits[f.k][f.column] for f in candidates])
    value, scan = scan_of(surrogate, surrogate.compile(numbers), w, limits)
    scale = 1.0 + np.abs(w).max(initial=0.0)
    assert value == pytest.approx(enumeration.value(w), rel=1e-9, abs=1e-12 * scale)
    assert np.all(np.diff(scan.features) > 0)
    found = dict(zip((feature_of(case.problem, n) for n in scan.features), scan.gradients, strict=True))
    expected = dict(zip(candidates, gradients, strict=True))
    assert set(found) <= set(candidates)
    tolerance = 1e-11 * scale
    must = {f for f, g, c in zip(candidates, gradients, limit, strict=True) if abs(g) > c + tolerance}
    may = {f for f, g, c in zip(candidates, gradients, limit, strict=True) if abs(g) > c - tolerance}
    assert must <= set(found) <= may
    for f, g in found.items():
        assert g == pytest.approx(expected[f], rel=1e-9, abs=tolerance)


@settings(max_examples=100)
@given(st.data())
def test_scan_finds_exactly_the_candidates_above_their_limit(data):
    """All columns x all patterns by enumeration, with limits that differ by column and length (some infinite)."""
    restricted = st.sampled_from(["all", "observed", ("observed", "all"), ("all", "observed")])
    case = data.draw(cases(candidates=data.draw(restricted)))
    features, numbers, w = data.draw(active_sets(case))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    limits = {}
    for k in range(1, case.problem.order + 1):
        limit = rng.choice([0.0, 1e-3, 0.05, 0.2, np.inf], len(case.problem.columns))
        limits[k] = np.where(case.problem.has_order(k), limit, np.inf)
    with small_blocks(data.draw(st.sampled_from([2, 4096]))), pairs_kept(data.draw(st.booleans())):
        check_scan(case, features, numbers, w, limits, case.surrogate())


@few
@given(st.data())
def test_scan_of_hard_sentences(data):
    """Large weights: posteriors of the log domain reach the scan."""
    case = data.draw(cases())
    features, numbers, w = data.draw(active_sets(case, scales=(1e3, 1e5)))
    limits = {}
    for k in range(1, case.problem.order + 1):
        limits[k] = np.where(case.problem.has_order(k), 0.01, np.inf)
    with pairs_kept(data.draw(st.booleans())):
        check_scan(case, features, numbers, w, limits, case.surrogate())


@pytest.mark.parametrize("is_kept", [True, False])
def test_scan_finds_more_candidates_than_its_first_room(is_kept):
    """More than 1024 candidates above the limit: the block is scanned again with more room."""
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, 12, 30).tolist() for _ in range(3)]
    words = [[f"w{rng.integers(0, 10)}" for _ in row] for row in labels]
    case = case_of(words, labels, 12, [Family("word", (WORD,), 2)])
    surrogate = case.surrogate()
    limits = {1: np.full(len(case.problem.columns), np.inf), 2: np.full(len(case.problem.columns), 1e-9)}
    with pairs_kept(is_kept):
        _, scan = scan_of(surrogate, surrogate.compile(np.zeros(0, np.int64)), np.zeros(0), limits)
    # Without weights all pairs are equally likely.
    seen = {f"w{i}": np.zeros(144) for i in range(10)}
    for row, sentence in zip(labels, words, strict=True):
        for t in range(1, len(row)):
            seen[sentence[t]] += 1 / 144
            seen[sentence[t]][row[t - 1] * 12 + row[t]] -= 1
    expected = [g / 3 for counts in seen.values() for g in counts if abs(g / 3) > 1e-9]
    assert len(expected) > 1024
    np.testing.assert_allclose(np.sort(scan.gradients), np.sort(expected), atol=1e-12)


@pytest.mark.parametrize("is_kept", [True, False])
def test_scan_of_numbers_of_both_signs(is_kept):
    """Expected where the number is positive, seen where it is negative: the gradient is the sum of both."""
    text = read_attributes([[{"w": "u", "n": 1.0}] * 4, [{"w": "v", "n": -1.0}] * 4])
    families = [Family("w", (NamedFeature("w"),), 1), Family("n", (NamedFeature("n"),), 2)]
    y = np.array([0] * 4 + [1] * 4, np.uint32)
    problem = build_problem(text, y, 2, families)
    case = Case(text, y, 2, families, None, np.zeros(2), problem)
    counts = np.diff(problem.columns.ptr)
    features = [f for f in all_candidates(problem) if f.k == 1 and counts[f.column] == 4 and f.code == 1]
    w = np.array([9.0 if problem.columns.positions[problem.columns.ptr[f.column]] < 4 else -9.0 for f in features])
    numbers = np.array([number_of(problem, f) for f in features], np.int64)
    limits = {1: np.full(len(problem.columns), np.inf), 2: np.where(problem.has_order(2), 2.5, np.inf)}
    with pairs_kept(is_kept):
        check_scan(case, features, numbers, w, limits, case.surrogate())
        _, scan = scan_of(case.surrogate(), case.surrogate().compile(numbers), w, limits)
    assert max(np.abs(scan.gradients)) == pytest.approx(3.0, abs=1e-2)


@few
@given(st.data())
def test_gradient_of_a_scan(data):
    """The active features' gradient in a scan is that of any pass (the scan's order may be higher)."""
    case = data.draw(cases())
    features, numbers, w = data.draw(active_sets(case, max_order=data.draw(st.integers(1, 4))))
    surrogate = case.surrogate()
    active = surrogate.compile(numbers)
    limits = {k: np.where(case.problem.has_order(k), 0.01, np.inf) for k in range(1, case.problem.order + 1)}
    point, _ = surrogate.scan(active, w, limits)
    expected = Enumeration(case.problem, features, case.costs).gradient(w)
    np.testing.assert_allclose(point.gradient, expected, rtol=1e-10, atol=1e-10)


@few
@given(st.data())
def test_scan_leaves_out_dropped_columns(data):
    """Columns that `keep` excludes are never reported."""
    case = data.draw(cases())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    keep = rng.random(len(case.problem.columns)) < 0.5
    surrogate = objective("crf", case.problem, case.costs, keep=keep)
    limits = {k: np.where(case.problem.has_order(k), 1e-6, np.inf) for k in range(1, case.problem.order + 1)}
    _, scan = scan_of(surrogate, surrogate.compile(np.zeros(0, np.int64)), np.zeros(0), limits)
    found = {feature_of(case.problem, n) for n in scan.features}
    candidates = all_candidates(case.problem)
    gradients = Enumeration(case.problem, [], case.costs).gradients(np.zeros(0), candidates)
    expected = {f for f, g in zip(candidates, gradients, strict=True) if keep[f.column] and abs(g) > 1e-6}
    assert found == expected


# ---- curvatures ----


def check_curvatures_of_pairs(case, w):
    """Compare with weight * p (1 - p), summed over the tokens."""
    pairs = [f for f in all_candidates(case.problem) if f.k == 2 and f.column == case.problem.bias_column]
    surrogate = case.surrogate()
    active = surrogate.compile(np.array([number_of(case.problem, f) for f in pairs], np.int64))
    nothing = {k: np.full(len(case.problem.columns), np.inf) for k in (1, 2)}
    point, scan = surrogate.scan(active, w[: len(pairs)], nothing)
    truth = Enumeration(case.problem, pairs, case.costs)
    expected = np.zeros(len(pairs))
    for i, weight in enumerate(case.problem.weights):
        scores = truth.scores(i, w[: len(pairs)])
        marginals = oracles.pattern_marginals(scores, truth.lengths[i], case.n_labels, 2)
        expected += weight * (marginals * (1.0 - marginals)).sum(axis=0)[[f.code for f in pairs]]
    np.testing.assert_allclose(surrogate.curvature(point, scan.variances), expected, rtol=1e-9, atol=1e-12)


@given(cases(min_tags=2, max_tags=2, max_length=4), st.sampled_from([0.3, 30.0, 290.0]), st.integers(0, 2**32 - 1))
def test_curvatures_of_pairs_are_their_variances(case, scale, seed):
    """Also where some sentences are done in the log domain: they have no messages, and count with 0."""
    w = scale * np.random.default_rng(seed).uniform(-1.0, 1.0, 16)
    check_curvatures_of_pairs(case, w)


def test_curvatures_where_squares_of_messages_overflow():
    """Posteriors are products of messages and a table: each may be far from 1, and its square out of range."""
    text, y, families = intern_sentences([["a", "b", "a"]]), np.array([1, 0, 0], np.uint32), paper_families(0, 2, 0)
    case = Case(text, y, 2, families, None, np.array([123.5]), build_problem(text, y, 2, families))
    check_curvatures_of_pairs(case, np.array([72.0, -186.0, 206.0, -66.0]))


# ---- Hessian ----


def check_hessian(data, case, max_size, atol):
    """Compare the Hessian on a choice of the active features with the enumerated covariance of their counts."""
    features, numbers, w = data.draw(active_sets(case, scales=(0.1, 1.0, 4.0), max_size=max_size))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    chosen = np.flatnonzero(rng.random(len(features)) < data.draw(st.sampled_from([0.5, 1.0])))
    surrogate = case.surrogate(threads=data.draw(st.sampled_from([1, 2])))
    found = surrogate.hessian(surrogate.compile(numbers), w, chosen)
    surrogate.close()
    expected = Enumeration(case.problem, features, case.costs).hessian(w)[np.ix_(chosen, chosen)]
    np.testing.assert_allclose(found, expected, atol=atol)
    np.testing.assert_array_equal(found, found.T)


@settings(max_examples=100)
@given(st.data())
def test_hessian_is_the_covariance_of_counts(data):
    """Node features, plain pairs, corrections, numbers and weights; two tokens, where nothing is forgotten yet."""
    check_hessian(data, data.draw(cases(max_tags=2, max_length=2)), 24, 1e-10)


@settings(max_examples=60)
@given(st.data())
def test_hessian_of_longer_sentences(data):
    """Past features whose covariance has died out are dropped on purpose, hence the tolerance."""
    case = data.draw(cases(max_tags=2, max_length=5))
    check_hessian(data, case, 20, 5e-3 * max(1.0, float(case.problem.weights.sum())))


@few
@given(st.data())
def test_hessian_equals_differences_of_the_gradient(data):
    """Central differences of the surrogate's own gradient."""
    case = data.draw(cases(max_tags=2, max_length=4))
    features, numbers, w = data.draw(active_sets(case, scales=(0.3, 1.0), max_size=8))
    surrogate = case.surrogate()
    active = surrogate.compile(numbers)
    hessian = surrogate.hessian(active, w, np.arange(len(features)))
    step = 1e-5
    for j in range(len(features)):
        shift = step * (np.arange(len(w)) == j)
        above, below = (value_and_gradient(surrogate, active, w + s)[1] for s in (shift, -shift))
        np.testing.assert_allclose(hessian[:, j], (above - below) / (2 * step), atol=5e-3)


def test_hessian_with_sentences_of_weight_zero():
    """A sentence of weight 0 adds nothing."""
    families, weights = paper_families(1, 2, 0), np.array([1.0, 0.0])
    case = case_of([["a", "b"], ["b", "a", "a"]], [[0, 1], [1, 1, 0]], 2, families, weights=weights)
    features = all_candidates(case.problem)
    w = np.linspace(-1.0, 1.0, len(features))
    surrogate = case.surrogate()
    active = surrogate.compile(np.array([number_of(case.problem, f) for f in features], np.int64))
    found = surrogate.hessian(active, w, np.arange(len(features)))
    np.testing.assert_allclose(found, Enumeration(case.problem, features).hessian(w), atol=1e-3)


# ---- curvatures ----


def check_curvatures(case, features, numbers, w):
    """After a scan the curvatures are the diagonal of the enumerated Hessian."""
    surrogate = case.surrogate()
    active = surrogate.compile(numbers)
    point, scan = surrogate.scan(active, w, {k: np.zeros(len(case.problem.columns)) for k in case.problem.kinds})
    expected = np.diag(Enumeration(case.problem, features, case.costs).hessian(w))
    np.testing.assert_allclose(surrogate.curvature(point, scan.variances), expected, atol=1e-10)


@few
@given(st.data())
def test_curvatures_of_single_tokens(data):
    """Sentences of one token: nothing to be independent of, so the diagonal is exact; numbers are squared."""
    case = data.draw(cases(max_length=1, max_tags=2))
    check_curvatures(case, *data.draw(active_sets(case, scales=(0.3, 3.0))))


@few
@given(st.data())
def test_curvatures_of_label_pairs(data):
    """In two tokens a pair fires once at the most: exact for plain pairs alone and for lexical pairs alone."""
    case = data.draw(cases(max_length=2, min_tags=2, max_tags=2))
    features, numbers, w = data.draw(active_sets(case, scales=(0.3, 3.0)))
    is_plain = data.draw(st.booleans())
    bias = case.problem.bias_column
    kept = [i for i, f in enumerate(features) if f.k == 2 and (f.column == bias) == is_plain]
    check_curvatures(case, [features[i] for i in kept], numbers[kept], w[kept])


# ---- one label ----


@few
@given(st.data())
def test_one_label_is_certain(data):
    """With one label there is nothing to learn: value 0, gradient 0, Hessian 0, whatever the weights."""
    case = data.draw(cases(max_labels=1, max_tags=2))
    features, numbers, w = data.draw(active_sets(case, scales=(1.0, 1e4)))
    surrogate = case.surrogate()
    active = surrogate.compile(numbers)
    value, gradient = value_and_gradient(surrogate, active, w)
    assert abs(value) < 1e-9 * (1.0 + np.abs(w).max(initial=0.0))
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)
    np.testing.assert_allclose(surrogate.hessian(active, w, np.arange(len(features))), 0.0, atol=1e-9)
