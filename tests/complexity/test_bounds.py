"""Bounds: terms, constants, corrections, monotonicity, and errors; then the report of a fitted model."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vcrf import VCRF
from vcrf.complexity import (
    Bound,
    best_margin,
    concentration,
    heldout,
    khintchine_constant,
    linear_l1,
    linear_l2,
    linear_lp,
    margin_grid,
    multiclass_group,
    multiclass_l1,
    multiclass_l2,
    pairwise_network,
    risk_report,
    theorem1,
    theorem1_any_margin,
    theorem1_any_norm,
    theorem3,
    theorem3_any_norm,
    voting_term,
    weighted_l1,
)
from vcrf.complexity.bound import FIXED_FEATURES, FIXED_MARGIN
from vcrf.complexity.bounds import WEIGHTED_L1_CONSTANT
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError
from vcrf.families import BIAS, Family, Template, intern_sentences
from vcrf.losses import HammingLoss
from vcrf.model.file import load_model

SETTING = {"rho": 0.5, "loss_bound": 2.0, "n_examples": 100, "delta": 0.1}
DEVIATION = 3 * 2 * math.sqrt(math.log(20) / 200)


def test_theorem_1_has_its_terms() -> None:
    """Constants as corrected, and as printed."""
    found = theorem1(0.3, 0.05, **SETTING)
    assert (found.empirical, found.complexity, found.confidence) == pytest.approx((0.3, 4 / 0.5 * 0.05, DEVIATION))
    assert found.total == pytest.approx(0.3 + 0.4 + DEVIATION)
    assert not found.is_vacuous
    assert len(found.corrections) == 2
    printed = theorem1(0.3, 0.05, **SETTING, paper_constants=True)
    assert printed.complexity == pytest.approx(math.sqrt(2) * found.complexity)
    assert printed.confidence == pytest.approx(3 * 2 * math.sqrt(math.log(10) / 200))
    assert printed.corrections == ()
    expected = theorem1(0.3, 0.05, **SETTING, is_expected=True)
    assert expected.confidence == pytest.approx(2 * math.sqrt(math.log(10) / 200))
    assert theorem1(0.3, 0.05, **SETTING, margin="multiplicative").complexity == pytest.approx(2 * found.complexity)
    assert theorem1(1.5, 0.05, **SETTING).is_vacuous


def test_all_margins_at_once_cost_a_factor_and_a_logarithm() -> None:
    """At a grid point only delta changes; between two the complexity term grows by less than 2."""
    setting = {**SETTING, "loss_bound": 1.0}
    at_half = theorem1_any_margin(0.3, 0.05, **setting)
    assert at_half.complexity == pytest.approx(0.4)
    assert at_half.confidence == pytest.approx(3 * math.sqrt(math.log(2 / (0.1 / 6)) / 200))
    between = theorem1_any_margin(0.3, 0.05, **{**setting, "rho": 0.4})
    assert 4 / 0.4 * 0.05 < between.complexity <= 2 * 4 / 0.4 * 0.05
    printed = theorem1_any_margin(0.3, 0.05, **setting, paper_constants=True)
    extra = printed.confidence - theorem1(0.3, 0.05, **setting, paper_constants=True).confidence
    assert extra == pytest.approx(math.sqrt(math.log(2) / 100))
    with pytest.raises(InputError, match="max_rho"):
        theorem1_any_margin(0.3, 0.05, **{**setting, "rho": 1.5})


def test_any_norm_uses_the_smallest_ball_that_holds_it() -> None:
    """Norm / rho = 3 lies in the ball of radius 4; the deltas of all balls sum to delta."""
    found = theorem1_any_norm(0.3, 0.01, 1.5, **SETTING)
    assert found.complexity == pytest.approx(4 * 4 * 0.01)
    assert found.confidence == pytest.approx(6 * math.sqrt(math.log(2 / (0.1 * 2 / 3 / 12)) / 200))
    shares = [2 / 3 / ((abs(k) + 1) * (abs(k) + 2)) for k in range(-(10**5), 10**5)]
    assert 0.9999 < sum(shares) <= 1.0
    finer = theorem1_any_norm(0.3, 0.01, 1.5, **SETTING, ratio=1.1)
    assert 4 * 3 * 0.01 <= finer.complexity <= 1.1 * 4 * 3 * 0.01
    assert theorem1_any_norm(0.3, 0.01, 0.0, **SETTING).complexity == 0.0


def test_corollaries_put_in_theorem_2() -> None:
    """sqrt(2 s log 2N) as proved; with M in the multiplicative multi-class forms."""
    h1 = linear_l1(0.3, radius=2.0, r_inf=1.0, sparsity=50.0, n_features=1000, **SETTING)
    assert h1.complexity == pytest.approx(8 * 2 * math.sqrt(2 * 50 * math.log(2000)) / 100)
    printed = linear_l1(0.3, radius=2.0, r_inf=1.0, sparsity=50.0, n_features=1000, **SETTING, paper_constants=True)
    assert printed.complexity == pytest.approx(8 * math.sqrt(2) * 2 * math.sqrt(50 * math.log(2000)) / 100)
    h2 = linear_l2(0.3, radius=2.0, r_2=1.5, total_size=400.0, **SETTING)
    assert h2.complexity == pytest.approx(8 * 2 * 1.5 * 20 / 100)
    many = multiclass_l1(0.3, radius=1.0, r_inf=1.0, n_classes=4, n_features=10, **SETTING)
    assert many.complexity == pytest.approx(8 * math.sqrt(2 * 4 * math.log(20) / 100))
    assert multiclass_l2(0.3, radius=1.0, r_2=1.0, n_classes=4, **SETTING).complexity == pytest.approx(8 * 0.2)
    for rule in (
        lambda **k: multiclass_l1(0.3, radius=1.0, r_inf=1.0, n_classes=4, n_features=10, **SETTING, **k),
        lambda **k: multiclass_l2(0.3, radius=1.0, r_2=1.0, n_classes=4, **SETTING, **k),
        lambda **k: multiclass_group(0.3, radius=1.0, r_2=1.0, n_classes=4, **SETTING, **k),
    ):
        assert rule(margin="multiplicative").complexity == pytest.approx(2 * rule().complexity)
        wrong = rule(margin="multiplicative", paper_constants=True)
        assert wrong.complexity == pytest.approx(rule(paper_constants=True).complexity)


def test_norms_between_have_their_corollary() -> None:
    """At p = 2 that of H_2; in general `lp_bound` of a sample, from its sum of powers."""
    setting = {"radius": 2.0, **SETTING}
    assert linear_lp(0.3, p=2.0, power_sum=400.0, **setting).complexity == pytest.approx(
        linear_l2(0.3, r_2=1.0, total_size=400.0, **setting).complexity
    )
    between = linear_lp(0.3, p=1.5, power_sum=100.0, **setting).complexity  # q = 3
    assert between == pytest.approx(8 * 2.0 * khintchine_constant(3.0) * 100.0 ** (1 / 3) / 100)
    with pytest.raises(InputError, match="p > 1"):
        linear_lp(0.3, p=1.0, power_sum=1.0, **setting)


@pytest.mark.parametrize("n_factors", [1, 4])
def test_pairwise_networks_are_the_corollary_divided(n_factors: int) -> None:
    """The paper's display with its constants; ours is Theorem 1 with the dense H_2 bound of such graphs, over l."""
    m, k = 50, 3
    setting = {"radius": 2.0, "r_2": 1.5, "n_labels": k, "n_factors": n_factors, "rho": 0.7, "n_examples": m}
    printed = pairwise_network(0.2, **setting, delta=0.1, paper_constants=True)
    assert printed.complexity == pytest.approx(4 * 2.0 * 1.5 / 0.7 * math.sqrt(2 * k**2 / m))
    assert printed.confidence == pytest.approx(3 * math.sqrt(math.log(1 / 0.1) / (2 * m)))
    sizes = sum(n_factors for _ in range(m) for _ in range(n_factors) for _ in range(k * k))  # over i, f and y
    whole = theorem1(
        0.2 * n_factors, 2.0 * 1.5 * math.sqrt(sizes) / m, rho=0.7, loss_bound=n_factors, n_examples=m, delta=0.1
    )
    assert pairwise_network(0.2, **setting, delta=0.1).total == pytest.approx(whole.total / n_factors)


def test_group_norm_corollary_is_corrected() -> None:
    """1 + sqrt(2 log c); as printed 16 (log c)^(1/4) / rho, which is 0 for one class."""
    found = multiclass_group(0.3, radius=1.0, r_2=1.0, n_classes=10, **SETTING)
    assert found.complexity == pytest.approx(8 * (1 + math.sqrt(2 * math.log(10))) / 10)
    printed = multiclass_group(0.3, radius=1.0, r_2=1.0, n_classes=10, **SETTING, paper_constants=True)
    assert printed.complexity == pytest.approx(16 / 0.5 * math.log(10) ** 0.25 / 10)
    assert multiclass_group(0.3, radius=1.0, r_2=1.0, n_classes=1, **SETTING).complexity == pytest.approx(0.8)


def test_voting_term_has_the_values_of_the_notes() -> None:
    """l=20, 17 labels, p=5, m=1e4, rho=1: printed 0.863, sharpened 0.043; one family is Theorem 1."""
    setting = {"rho": 1.0, "loss_bound": 1.0, "n_examples": 10**4, "log_n_outputs": 20 * math.log(17)}
    assert voting_term(**setting, n_families=5, is_expected=True, paper_constants=True) == pytest.approx(
        0.863, abs=5e-4
    )
    assert voting_term(**setting, n_families=5, is_expected=True) == pytest.approx(0.0434, abs=5e-4)
    assert voting_term(**setting, n_families=5) > voting_term(**setting, n_families=5, is_expected=True)
    alone = theorem3(0.1, 0.01, **setting, n_families=1)
    plain = theorem1(0.1, 0.01, rho=1.0, loss_bound=1.0, n_examples=10**4)
    assert alone.total == plain.total
    assert "one family" in alone.corrections[-1]
    assert theorem3(0.1, 0.01, **setting, n_families=1, paper_constants=True).confidence < math.inf
    wide = [voting_term(**setting, n_families=5, score_range=r) for r in (2.0, 20.0, 200.0)]
    assert wide == sorted(wide)
    voted = theorem3_any_norm(
        0.1, [1.0, 3.0], [0.02, 0.01], rho=1.0, loss_bound=1.0, n_examples=10**4, log_n_outputs=1.0, max_count=1.0
    )
    assert voted.complexity == pytest.approx(4 * 0.05)
    assert FIXED_MARGIN not in voted.assumptions
    assert FIXED_FEATURES in voted.assumptions
    more = theorem3_any_norm(
        0.1, [1.0, 2.0], [0.02, 0.01], rho=1.0, loss_bound=1.0, n_examples=10**4, log_n_outputs=1.0, max_count=1.0
    )
    wider = theorem3_any_norm(
        0.1, [1.0, 3.0], [0.02, 0.01], rho=1.0, loss_bound=1.0, n_examples=10**4, log_n_outputs=1.0, max_count=9.0
    )
    assert wider.confidence > voted.confidence  # scores that differ by more need larger ensembles
    assert more.complexity == pytest.approx(4 * (0.04 + 0.01))  # what is missing to 4 lies in the simplest family


def test_weighted_l1_and_heldout() -> None:
    """1.51 times the penalty in a grid of radii; Hoeffding alone for a sample never seen."""
    assert pytest.approx(1.5089, abs=1e-4) == WEIGHTED_L1_CONSTANT
    found = weighted_l1(0.3, 0.25, **SETTING)
    assert found.complexity == pytest.approx(4 * WEIGHTED_L1_CONSTANT * 0.5)
    alone = heldout(0.3, loss_bound=2.0, n_examples=100, delta=0.1)
    assert (alone.complexity, alone.total) == pytest.approx((0.0, 0.3 + 2 * math.sqrt(math.log(10) / 200)))
    spread = concentration(radius=1.0, max_size=4.0, n_examples=100, delta=0.1)
    assert spread == pytest.approx(2 * 8 * math.sqrt(math.log(20) / 200))


def test_bounds_are_monotone() -> None:
    """More examples, a wider delta and a smaller class give a smaller bound."""

    def total(**changes: float) -> float:
        setting = {**SETTING, **changes}
        return linear_l1(
            0.3, radius=setting.pop("radius", 1.0), r_inf=1.0, sparsity=9.0, n_features=50, **setting
        ).total

    assert total(n_examples=200) < total() < total(delta=0.01)
    assert total(radius=0.5) < total() < total(rho=0.25)


def test_best_margin_is_the_smallest() -> None:
    """Over a grid that follows the norm."""
    rhos = margin_grid(10.0, 9)
    assert len(rhos) == 9
    assert rhos[0] == pytest.approx(1e-5)
    found = best_margin(lambda rho: Bound("x", (rho - rhos[4]) ** 2, 0.0, 0.0, rho, 1.0, 0.1), rhos)
    assert found.rho == rhos[4]
    with pytest.raises(InputError, match="at least one"):
        best_margin(lambda rho: Bound("x", rho, 0.0, 0.0, rho, 1.0, 0.1), [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rho": 0.0}, "`rho` must be a positive"),
        ({"rho": -1.0}, "`rho` must be a positive"),
        ({"rho": 1e-308}, "`rho` must be a margin between"),
        ({"rho": 1e300}, "`rho` must be a margin between"),
        ({"delta": 0.0}, "`delta` must be a probability"),
        ({"delta": 1.0}, "`delta` must be a probability"),
        ({"delta": float("nan")}, "`delta` must be a probability"),
        ({"loss_bound": math.inf}, "no bound"),
        ({"n_examples": 0}, "n_examples"),
        ({"margin": "middle"}, "'additive' or 'multiplicative'"),
    ],
)
def test_wrong_settings_are_named(changes: dict[str, object], message: str) -> None:
    """In every function that takes them."""
    setting = {**SETTING, **changes}
    with pytest.raises(InputError, match=message):
        theorem1(0.3, 0.05, **setting)
    with pytest.raises(InputError, match=message):
        theorem1_any_norm(0.3, 0.05, 1.0, **setting)
    with pytest.raises(InputError, match=message):
        weighted_l1(0.3, 0.05, **setting)
    with pytest.raises(InputError, match=message):
        linear_l1(0.3, radius=1.0, r_inf=1.0, sparsity=1.0, n_features=3, **setting)
    with pytest.raises(InputError, match=message):
        theorem3(0.3, 0.05, **setting, n_families=2, log_n_outputs=1.0)


def test_more_wrong_arguments() -> None:
    """Negative terms, no families, ranges that are none."""
    with pytest.raises(InputError, match="not be negative"):
        theorem1(-0.1, 0.05, **SETTING)
    with pytest.raises(InputError, match="n_families"):
        theorem3(0.3, 0.05, **SETTING, n_families=0, log_n_outputs=1.0)
    with pytest.raises(InputError, match="score_range"):
        theorem3(0.3, 0.05, **SETTING, n_families=2, log_n_outputs=1.0, score_range=0.0)
    with pytest.raises(InputError, match="ratio"):
        theorem1_any_norm(0.3, 0.05, 1.0, **SETTING, ratio=1.0)


# ------------------------------------------------------------------------------------ a fitted model

FAMILIES = [Family("word", (Template(((0, "word"),)),)), Family("bias", (BIAS,)), Family("pairs", (BIAS,), 2)]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory):
    """A model read from its file, and its training data."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=8, n_suffixes=1, mean_length=4.0).sample(80, seed=3)
    tagger = VCRF(recipe="paper", families=FAMILIES, base_strength=0.02).fit(corpus.tokens, corpus.labels)
    path = tmp_path_factory.mktemp("model") / "m.vcrf"
    tagger.save(path)
    return load_model(path), corpus, tagger


def _numbers(corpus, model):
    return np.array([model.labels.index(label) for labels in corpus.labels for label in labels], np.uint32)


def test_report_of_a_trained_model(fitted) -> None:
    """It knows its training data; shares sum to one; terms are those of the pure functions."""
    model, corpus, tagger = fitted
    report = risk_report(model, intern_sentences(corpus.tokens), _numbers(corpus, model), HammingLoss(), rho=2.0)
    assert report.is_training_data is True
    labelled = tagger.predict(corpus.tokens)
    assert report.frontier.risk == pytest.approx(
        np.mean([np.mean(np.array(a) != np.array(b)) for a, b in zip(labelled, corpus.labels, strict=True)])
    )
    for shares in ("share", "weighted_share"):
        assert sum(getattr(family, shares) for family in report.families) == pytest.approx(1.0)
    assert sum(family.l1_mass for family in report.families) == pytest.approx(np.abs(model.weights).sum())
    totals = [bound.total for bound in report.bounds]
    assert totals == sorted(totals)
    assert len(report.bounds) == 16
    assert all(bound.rho == 2.0 for bound in report.bounds)
    by_name = {(b.name, margin): b for b, margin in zip(report.bounds, report.margins, strict=True)}
    moment = by_name["theorem 1 for H_1, moment bound", "additive"]
    assert moment.empirical == pytest.approx(report.frontier.additive(2.0))
    assert moment.complexity < by_name["corollary for H_1", "additive"].complexity
    assert ("theorem 1 for H_p, p = 1.5", "additive") in by_name
    assert by_name["theorem 3, families voted", "additive"].empirical == pytest.approx(
        report.frontier.additive(2.0, 1.0)
    )
    # Weighted by features: the penalty from its definition.
    penalty = sum(_feature_terms(model, corpus))
    weighted = by_name["weighted L1 (direct)", "additive"].complexity / 4 / WEIGHTED_L1_CONSTANT
    assert penalty / 2.0 <= weighted * (1 + 1e-9) <= 1.1 * penalty / 2.0 * (1 + 1e-9)


def _feature_terms(model, corpus):
    """r_j |w_j| from the definition, feature by feature; the graph has l + (l - 1) factors."""
    words = {word for sentence in corpus.tokens for word in sentence}
    sizes = {"word": 3 * len(words), "bias": 3, "pairs": 9}
    for feature in model.features():
        variance = 0.0
        for tokens in corpus.tokens:
            for t, word in enumerate(tokens):
                fits = t >= len(feature.labels) - 1
                if fits and (feature.family != "word" or feature.attribute == f"word={word}"):
                    variance += 2 * len(tokens) - 1
        log_prior = math.log(2 * 3 * sizes[feature.family])
        yield abs(feature.weight) * math.sqrt(2 * variance * log_prior) / len(corpus)


def test_report_says_what_it_is_about(fitted) -> None:
    """Other data get a held-out row and a note; no strengths get a note; paper constants are flagged."""
    model, corpus, _ = fitted
    part = corpus[:40]
    other = risk_report(model, intern_sentences(part.tokens), _numbers(part, model), HammingLoss())
    assert other.is_training_data is False
    assert "held-out sample" in [bound.name for bound in other.bounds]
    assert "not the data" in other.notes[0]
    free = VCRF(recipe="paper", families=FAMILIES[:1], complexity_strength=0.0, base_strength=0.0, max_passes=5)
    with pytest.warns(UserWarning, match="max_passes"):
        free.fit(corpus.tokens, corpus.labels)
    report = risk_report(
        free.model_, intern_sentences(corpus.tokens), _numbers(corpus, model), HammingLoss(), paper_constants=True
    )
    assert "without a penalty" in report.notes[0]
    assert "as the paper prints" in report.notes[1]


def test_report_refuses_what_it_cannot_state(fitted) -> None:
    """Wrong margins and deltas, before any work; an empty sample."""
    model, corpus, _ = fitted
    text, y = intern_sentences(corpus.tokens), _numbers(corpus, model)
    with pytest.raises(InputError, match="`rho` must be"):
        risk_report(model, text, y, HammingLoss(), rho=0.0)
    with pytest.raises(InputError, match="`delta` must be"):
        risk_report(model, text, y, HammingLoss(), delta=2.0)
    with pytest.raises(InputError, match="no sentences"):
        risk_report(model, intern_sentences([]), y[:0], HammingLoss())
