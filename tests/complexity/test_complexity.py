"""Estimates, bounds, dense reference and enumeration of the factor graph complexity agree."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from small_counts import dense_family, enumerate_norms, problem_of, toy
from vcrf import VCRF
from vcrf.complexity import (
    Block,
    FamilyCounts,
    FeatureCounts,
    Incidence,
    dense_complexity,
    family_complexities,
    feature_complexities,
    gaussian_integral,
    group_bound,
    group_rademacher,
    khintchine_constant,
    l1_bound,
    l1_formula,
    l2_bound,
    lp_bound,
    moment_bound,
    rademacher,
)
from vcrf.complexity.norms import weight_norms
from vcrf.errors import BudgetError, InputError
from vcrf.families import BIAS, Family, Template, default_families, intern_sentences
from vcrf.problem import build_problem

WORD = Template(((0, "word"),))
NEXT = Template(((1, "word"),), pad=True)
SENTENCES = ["a b", "b", "a a"]
FAMILIES = [Family("words", (WORD, NEXT)), Family("word", (Template(((0, "lower"),)),), 1), Family("pairs", (BIAS,), 2)]


def covers(found: float, low: float, high: float, slack: float = 1.0) -> bool:
    """Whether a value is in an interval that is widened about its middle."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    return abs(found - middle) <= slack * half + 1e-12


@pytest.mark.parametrize("f", range(3))
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_estimate_reference_and_enumeration_agree(f: int, p: float) -> None:
    """Over all signs: overlapping templates, twins, and tag pairs that do not fit into a sentence of one token."""
    problem = problem_of(SENTENCES, FAMILIES, 2)
    counts, examples = FamilyCounts(problem).family(f), dense_family(problem, f)
    q = math.inf if p == 1.0 else p / (p - 1.0)
    exact = enumerate_norms(examples, q)
    assert dense_complexity(examples, p) == pytest.approx(exact, rel=1e-12)
    found = rademacher(counts, p, draws=4000)
    assert covers(exact, found.low, found.high, 2.0)
    assert exact <= lp_bound(counts, p)
    if p == 1.0:
        assert exact <= moment_bound(counts) <= l1_bound(counts) * (1 + 1e-9)
    if p == 2.0:
        assert exact <= l2_bound(counts) <= l2_bound(counts, paper_constants=True) + 1e-12


@pytest.mark.parametrize("groups", ["attribute", "pattern"])
def test_group_norms_agree_with_the_reference(groups: str) -> None:
    """H_{2,1} by attribute and by pattern, over all signs; merged attributes count in a pattern's norm."""
    problem = problem_of(SENTENCES, FAMILIES, 2)
    examples = dense_family(problem, 0)
    n = examples[0][0].shape[1]
    numbers = np.arange(n).reshape(-1, 2)
    exact = dense_complexity(examples, groups=(numbers if groups == "attribute" else numbers.T).tolist())
    counts = FamilyCounts(problem).family(0)
    assert counts.n_features == n
    found = group_rademacher(counts, groups, draws=4000)
    assert covers(exact, found.low, found.high, 2.0)
    assert exact <= group_bound(counts, groups)


def test_values_of_the_toy() -> None:
    """The numbers that were found independently: dense 1.852, moment 2.269, Massart 2.842, H_2 4.444, H_1.5 2.949."""
    counts = toy()
    assert covers(1.852, *_interval(counts), 2.0)
    assert gaussian_integral(counts) == pytest.approx(1.93, abs=0.01)
    assert moment_bound(counts) == pytest.approx(2.2685, abs=2e-4)
    assert l1_bound(counts) == pytest.approx(2.8422, abs=1e-4)
    assert l1_bound(counts, paper_constants=True) == pytest.approx(2.0097, abs=1e-4)
    assert l2_bound(counts) == pytest.approx(4.4441, abs=1e-4)
    assert lp_bound(counts, 1.5) == pytest.approx(2.9486, abs=1e-4)
    assert group_bound(counts, "pattern") == pytest.approx(4.5867, abs=1e-4)


def _interval(counts: FeatureCounts) -> tuple[float, float]:
    found = rademacher(counts, draws=20000)
    return found.low, found.high


def test_the_interval_covers_at_its_rate() -> None:
    """Over 500 seeds, intervals of 40 draws hold the exact value about 95 times of 100."""
    problem = problem_of(SENTENCES, FAMILIES, 2)
    exact = dense_complexity(dense_family(problem, 0))
    counts = FamilyCounts(problem).family(0)
    found = [rademacher(counts, draws=40, random_state=seed) for seed in range(500)]
    rate = np.mean([covers(exact, each.low, each.high) for each in found])
    assert 0.91 <= rate <= 0.98
    narrow = [rademacher(counts, draws=40, level=0.5, random_state=seed) for seed in range(500)]
    assert 0.42 <= np.mean([covers(exact, each.low, each.high) for each in narrow]) <= 0.58


def test_values_that_are_not_one() -> None:
    """Given features with values: V_j sums values; s counts, r_inf is the largest."""
    incidence = Incidence(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([2.0, -0.5, 3.0]), np.array([1.0, 1.0]))
    counts = FeatureCounts((Block(incidence, 2, np.arange(2), np.ones(2, np.int64)),), 2)
    one = np.array([[2.0, 0.0], [0.0, 0.0]])
    two = np.array([[-0.5, 3.0], [0.0, 0.0]])
    examples = [[np.concatenate([a, a[::-1]], axis=1)] for a in (one, two)]
    exact = dense_complexity(examples)
    found = rademacher(counts, draws=4000)
    assert covers(exact, found.low, found.high, 2.0)
    assert (counts.r_inf, counts.sparsity, counts.max_variance) == (3.0, 2.0, 9.0)
    assert counts.r_2 == pytest.approx(math.sqrt(9.25))
    assert exact <= moment_bound(counts) <= lp_bound(counts, 1.0) + 1e-9 <= l1_bound(counts) + 2e-9


@pytest.mark.parametrize("q", [math.inf, 2.0])
def test_binary_classification_is_classical(q: float) -> None:
    """With h(x, 1) = w.x and h(x, 0) = 0 it is the Rademacher complexity; with h(x, y) = y w.x it is not."""
    X = np.random.default_rng(1).normal(size=(6, 3))
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=6)))
    classical = float(np.linalg.norm(signs @ X, ord=q, axis=1).mean()) / 6
    p = 1.0 if math.isinf(q) else 2.0
    assert dense_complexity([[np.stack([x, 0 * x])] for x in X], p) == pytest.approx(classical, rel=1e-12)
    symmetric = dense_complexity([[np.stack([x, -x])] for x in X], p)
    assert 1.2 < symmetric / classical < 1.6


def test_multiclass_is_a_graph_of_one_factor() -> None:
    """Sentences of one token: |F_i| = 1, s is the largest count, and the corollary's c is not needed."""
    problem = problem_of(["a", "a", "b", "a"], [Family("word", (WORD,))], 3)
    counts = FamilyCounts(problem).family(0)
    assert counts.sparsity == 3.0
    assert counts.n_features == 6
    assert l1_bound(counts) == pytest.approx(math.sqrt(2 * 3 * math.log(12)) / 4)
    assert l1_formula(1.0, 3.0, 6, 4, radius=2.0) == pytest.approx(2 * l1_bound(counts))
    psi = [np.kron(np.eye(3), np.eye(2)[[a]]) for a in (0, 0, 1, 0)]
    exact = dense_complexity([[each] for each in psi])
    found = rademacher(counts, draws=4000)
    assert covers(exact, found.low, found.high, 2.0)


def test_the_statement_of_theorem_2_is_false() -> None:
    """N independent features, each seen s times: sqrt(s log 2N) lies below the complexity, sqrt(2 s log 2N) above."""
    n, s = 1000, 400
    incidence = Incidence(np.arange(n + 1) * s, np.arange(n * s), np.zeros(0), np.ones(n * s))
    counts = FeatureCounts((Block(incidence, 1, np.arange(n), np.ones(n, np.int64)),), 1)
    found = rademacher(counts, draws=40)
    assert l1_bound(counts, paper_constants=True) < found.low < found.high < l1_bound(counts)


def test_only_columns_that_matter_are_drawn() -> None:
    """A thousand rare columns change nothing and are left out."""
    incidence = Incidence(np.concatenate([[0], 2000 + np.arange(1001)]), np.arange(3000), np.zeros(0), np.ones(3000))
    everything = FeatureCounts((Block(incidence, 5, np.arange(1001), np.ones(1001, np.int64)),), 10)
    alone = FeatureCounts((Block(incidence, 5, np.arange(1), np.ones(1, np.int64)),), 10)
    found = rademacher(everything, draws=500)
    assert found.n_columns == 1
    assert found == rademacher(alone, draws=500)


def test_columns_that_occur_together_hide_no_others() -> None:
    """3,000 equal columns of variance 100 have one V; twenty columns of variance 20 hold the maximum as often."""
    ptr = np.concatenate([100 * np.arange(3001), 300_000 + 20 * np.arange(1, 21)])
    factors = np.concatenate([np.tile(np.arange(100), 3000), np.arange(100, 500)])
    incidence = Incidence(ptr, factors, np.zeros(0), np.ones(500))
    together = FeatureCounts((Block(incidence, 1, np.arange(3020), np.ones(3020, np.int64)),), 500)
    once = FeatureCounts((Block(incidence, 1, np.arange(2999, 3020), np.ones(21, np.int64)),), 500)
    found, expected = rademacher(together, draws=2000), rademacher(once, draws=2000)
    assert found.n_columns == 3020
    assert found.value == pytest.approx(expected.value, abs=found.half_width + expected.half_width)


def test_whole_model_uses_the_joint_graph() -> None:
    """A chain with factors of one and of two labels has 2 l - 1 of them; blocks are drawn apart."""
    problem = problem_of(["a b", "b"], [Family("word", (WORD,)), Family("pairs", (BIAS,), 2)], 2)
    counts = FamilyCounts(problem, "joint")
    assert counts.graph_sizes(1).tolist() == counts.graph_sizes(2).tolist() == [3.0, 1.0]
    single, pairs = dense_family(problem, 0, [3, 1]), dense_family(problem, 1, [3, 1])
    rows = [np.sqrt(len(fs)) * np.pad(f, ((0, 0), (0, 4))) for fs in single for f in fs]
    rows += [np.sqrt(len(fs)) * np.pad(f, ((0, 0), (4, 0))) for fs in pairs for f in fs]
    exact = dense_complexity([[row] for row in rows]) * len(rows) / 2
    found = rademacher(counts.union(), draws=4000)
    assert covers(exact, found.low, found.high, 2.0)
    assert exact <= moment_bound(counts.union()) <= l1_bound(counts.union())


def test_weighted_balls() -> None:
    """Dividing V_j by r_j is the class sum_j r_j |w_j| <= 1."""
    counts = toy()
    r = np.array([1.0, 2.0, 0.5, 4.0])
    incidence = counts.blocks[0].incidence
    values = 1.0 / np.repeat(r, np.diff(incidence.ptr))
    scaled = Incidence(incidence.ptr, incidence.factors, values, incidence.sizes)
    other = FeatureCounts((Block(scaled, 9, np.arange(4), np.ones(4, np.int64)),), 6)
    a, b = rademacher(counts, draws=4000, divisors=[r]), rademacher(other, draws=4000, random_state=1)
    assert abs(a.value - b.value) < 2 * (a.half_width + b.half_width)


def test_estimates_are_repeatable_and_scale() -> None:
    """The seed decides; the radius multiplies."""
    counts = toy()
    assert rademacher(counts, draws=50) == rademacher(counts, draws=50)
    assert rademacher(counts, draws=50) != rademacher(counts, draws=50, random_state=1)
    assert rademacher(counts, radius=3.0, draws=50).value == pytest.approx(3 * rademacher(counts, draws=50).value)
    assert khintchine_constant(2.0) == khintchine_constant(1.5) == 1.0
    assert khintchine_constant(4.0) == pytest.approx(3**0.25)  # E g^4 = 3


@pytest.mark.parametrize("choice", ["paper", "general", "massart", "rademacher", "estimate", "feature"])
def test_every_choice_of_complexities_trains(choice: str) -> None:
    """The facts of the families have the numbers of `family_complexities`, and strengths follow them."""
    X, y = [["a", "b"], ["b", "c", "a"]], [["P", "Q"], ["Q", "Q", "P"]]
    tagger = VCRF(
        recipe="paper", complexities=choice, complexity_strength=0.1, base_strength=0.01, tags=2, affix=2
    ).fit(X, y)
    found = np.array([family.complexity for family in tagger.families_])
    assert np.all(found >= 0.0)
    assert found.max() > 0.0
    assert [family.l1 for family in tagger.families_] == pytest.approx((0.1 * found + 0.01).tolist())


def test_choices_are_what_they_say() -> None:
    """Massart above the estimate, the general formula above Massart for indicators; a family without features is 0."""
    families = [*FAMILIES, Family("nothing", (Template(((0, "suffix:9"),)),))]
    problem = problem_of(["a b c", "b", "a a"], families, 3)
    estimate, massart, general = (family_complexities(c, problem) for c in ("estimate", "massart", "general"))
    assert np.all(estimate <= massart)
    assert np.all(massart <= general * (1 + 1e-12))
    assert estimate[3] == massart[3] == general[3] == 0.0
    given = {family.name: float(i) for i, family in enumerate(families)}
    assert family_complexities(given, problem).tolist() == [0.0, 1.0, 2.0, 3.0]


def test_complexities_follow_the_norm() -> None:
    """Those of H_2 and H_{2,1} against enumerated signs; elastic has those of H_1."""
    problem = problem_of(["a b c", "b", "a a"], FAMILIES, 3)
    counts = list(FamilyCounts(problem))
    for norm, bound, estimate in (
        ("l1", l1_bound, lambda c: rademacher(c)),
        ("elastic", l1_bound, lambda c: rademacher(c)),
        ("l2", l2_bound, lambda c: rademacher(c, 2.0)),
        ("group", group_bound, group_rademacher),
    ):
        assert family_complexities("massart", problem, norm) == pytest.approx([bound(c) for c in counts])
        assert family_complexities("rademacher", problem, norm) == pytest.approx([estimate(c).value for c in counts])
    for norm in ("lp", "family"):
        found = family_complexities("massart", problem, norm, 1.5)
        assert found == pytest.approx([lp_bound(c, 1.5) if c.n_features else 0.0 for c in counts])
        drawn = family_complexities("rademacher", problem, norm, 1.5)
        assert drawn == pytest.approx([rademacher(c, 1.5).value for c in counts])
    l2 = family_complexities("massart", problem, "l2")
    assert family_complexities("massart", problem, "family", 2.0) == pytest.approx(l2)
    norms = ["l2", *["l1"] * (len(problem.families) - 1)]
    mixed, l1 = family_complexities("massart", problem, norms), family_complexities("massart", problem)
    assert (mixed[0], mixed[1:].tolist()) == (l2[0], l1[1:].tolist())
    massart, estimate = (family_complexities(choice, problem, "l2") for choice in ("massart", "estimate"))
    assert np.all(estimate <= massart * 1.1)  # Jensen, and the noise of the draws
    X, y = [["a", "b"], ["b", "c", "a"]], [["P", "Q"], ["Q", "Q", "P"]]
    options = {
        "recipe": "paper",
        "complexities": "massart",
        "complexity_strength": 0.1,
        "base_strength": 0.1,
        "affix": 1,
    }
    by_norm = [[f.complexity for f in VCRF(**options, norm=n).fit(X, y).families_] for n in ("l1", "l2", "group")]
    assert by_norm[0] != by_norm[1] != by_norm[2]


def test_feature_complexities_follow_their_formula() -> None:
    """sqrt(2 v log(2 p N)) / m, by hand; v in the graph of all lengths, means over attributes, 1 where none occurs."""
    families = [*FAMILIES, Family("nothing", (Template(((0, "suffix:9"),)),))]
    problem = problem_of(["a b c", "b"], families, 3)
    found = feature_complexities(problem)
    n = {"words": 3 * (3 + 3), "word": 3 * 3, "pairs": 9, "nothing": 1}
    factors = [math.sqrt(2 * math.log(2 * 4 * n[family.name])) for family in families]
    assert found.factors == pytest.approx(factors)
    # |F| = 3 + 2 factors in the first sentence, 1 + 0 in the second.
    variances = {"a": 5.0, "b": 5.0 + 1.0, "c": 5.0}
    own = [math.sqrt(v) / 2 for v in variances.values()]
    following = [math.sqrt(5.0) / 2, math.sqrt(5.0) / 2, math.sqrt(5.0 + 1.0) / 2]  # b, c, and the end (twice)
    assert found.mean_sizes[1] == pytest.approx(np.mean(own))
    assert found.mean_sizes[0] == pytest.approx(np.mean(own + following))
    assert found.mean_sizes[2] == pytest.approx(math.sqrt(2 * 5.0) / 2)  # two positions end a pair
    assert found.mean_sizes[3] == 0.0
    assert family_complexities("feature", problem) == pytest.approx(found.factors * found.mean_sizes)
    # "a" begins its only sentence: with pairs of labels it occurs nowhere.
    (first,) = np.flatnonzero((problem.columns.first_positions == 0) & (np.diff(problem.columns.ptr) == 1))
    assert found.sizes[:, first] == pytest.approx([0.5, math.sqrt(5.0) / 2, 0.5])


def test_training_penalises_what_the_direct_bound_has() -> None:
    """With complexities alone and L1 the objective less the surrogate is complexity_strength * sum_j r_j |w_j|."""
    X, y = [["a", "b"], ["b", "c", "a"], ["c"]], [["P", "Q"], ["Q", "Q", "P"], ["P"]]
    tagger = VCRF(
        recipe="paper",
        complexities="feature",
        complexity_strength=0.05,
        norm="l1",
        base_strength=0.0,
        affix=2,
        tol=1e-6,
    )
    tagger.fit(X, y)
    numbers = np.array([tagger.classes_.index(label) for labels in y for label in labels], np.uint32)
    problem = build_problem(intern_sentences(X), numbers, 2, default_families(affix=2))
    norms = weight_norms(tagger.model_, FamilyCounts(problem, "joint"))
    weighted = norms.weighted.sum()
    assert norms.between == pytest.approx(np.linalg.norm(tagger.model_.weights, 1.5))
    assert norms.l2 < norms.between < norms.l1
    surrogate = -np.mean(tagger.sequence_probability(X, y, log=True))
    assert weighted > 0.0
    assert tagger.objective_ - surrogate == pytest.approx(0.05 * weighted, rel=1e-9)


def test_wrong_calls_say_what_is_wrong() -> None:
    """Errors name the argument and the choices."""
    counts = toy()
    problem = problem_of(SENTENCES, FAMILIES, 2)
    with pytest.raises(InputError, match="'massart', 'rademacher'"):
        family_complexities("vc", problem)
    with pytest.raises(InputError, match="missing pairs"):
        family_complexities({"words": 1.0, "word": 1.0}, problem)
    with pytest.raises(InputError, match="a mapping"):
        family_complexities(None, problem)  # type: ignore[arg-type]
    for value in (-1.0, math.inf, math.nan, "x", None):
        with pytest.raises(InputError, match="not negative"):
            family_complexities({family.name: value for family in FAMILIES}, problem)  # type: ignore[misc]
    with pytest.raises(InputError, match="at least 2"):
        rademacher(counts, draws=1)
    with pytest.raises(InputError, match="level"):
        rademacher(counts, draws=9, level=1.0)
    with pytest.raises(InputError, match="p must be at least 1"):
        lp_bound(counts, 0.5)
    with pytest.raises(InputError, match="radius"):
        moment_bound(counts, radius=-1.0)
    with pytest.raises(InputError, match="attribute"):
        group_bound(counts, "word")
    with pytest.raises(InputError, match="'family' or 'joint'"):
        FamilyCounts(problem, "all")
    with pytest.raises(BudgetError, match="draws="):
        dense_complexity([[np.ones((23, 1))]])
    with pytest.raises(BudgetError, match="lp_bound"):
        rademacher(counts, 2.0, draws=10**11)
