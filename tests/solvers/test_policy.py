"""The Newton policy: pure decisions, on facts that runs have recorded and at every threshold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcrf import VCRF
from vcrf.data import SyntheticLanguage
from vcrf.solvers import newton_phase
from vcrf.solvers.policy import ASCENT, CUTS, NEWTON, Facts, NewtonPolicy, Phase, StepFacts, Verdict

CHEAP = NEWTON.for_cost(10.0)
FAR = Facts(
    n_free=900, distance=40.0, mean_violation=0.2, excess=40.0, on_face=False, is_l1=True, is_resting=False,
    has_hessian=True,
)  # fmt: skip
shares = st.floats(0.0, 200.0)
facts = st.builds(
    Facts, st.integers(0, 50_000), shares, shares, shares, st.booleans(), st.booleans(), st.booleans(), st.booleans()
)
steps = st.builds(
    StepFacts, st.floats(0.0, 1.0), st.booleans(), st.booleans(), st.floats(0.0, 2.0), st.floats(0.0, 2.0)
)


# Rounds of runs on treebanks: where they were, and what was done.
@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        ({}, Phase.QUASI_NEWTON),
        ({"distance": 0.49}, Phase.NEWTON),
        ({"distance": 0.49, "is_resting": True}, Phase.QUASI_NEWTON),
        ({"distance": 4.9, "mean_violation": 2e-3}, Phase.NEWTON),
        ({"distance": 4.9, "mean_violation": 4e-3}, Phase.QUASI_NEWTON),
        ({"distance": 1.9, "n_free": 9_000}, Phase.QUASI_NEWTON),
        ({"distance": 1.9, "n_free": 9_000, "on_face": True}, Phase.NEWTON),
        ({"distance": 1.9, "n_free": 3_000, "on_face": True}, Phase.QUASI_NEWTON),
    ],
)
def test_newton_steps_near_the_optimum(changes, phase):
    """Small violations, a small mean violation, or many weights on the face; never while resting."""
    assert NEWTON.decide(replace(FAR, **changes), can_model=True) is phase
    assert NEWTON.decide(replace(FAR, **changes), can_model=False) is Phase.QUASI_NEWTON


def test_a_cheap_hessian_is_taken_sooner():
    """On the automaton many weights have Newton steps from far away, and all of them at once."""
    far = replace(FAR, distance=90.0, n_free=9_000, on_face=True)
    assert NEWTON.decide(far, True) is Phase.QUASI_NEWTON
    assert CHEAP.decide(far, True) is Phase.NEWTON
    assert CHEAP.block_tol > 1.0


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True), ({"excess": 1.1}, False), ({"on_face": False}, False), ({"is_l1": False}, False),
        ({"has_hessian": False}, False),
    ],
)  # fmt: skip
def test_the_most_curved_weights_where_all_are_too_many(changes, expected):
    """On the face of an L1 problem, close to it, with a Hessian; and not where all weights can have one."""
    near = replace(FAR, excess=0.4, on_face=True, n_free=30_000)
    near = replace(near, **changes)
    assert NEWTON.is_worth_polishing(near, can_model=False) == expected
    assert not NEWTON.is_worth_polishing(near, can_model=True)


@pytest.mark.parametrize(
    ("step", "verdict"),
    [
        (StepFacts(1.0, True, False, 0.01, 0.01), Verdict.KEEP),
        (StepFacts(1.0, False, False, 0.5, 0.01), Verdict.RENEW),
        (StepFacts(0.1, True, False, 0.01, 0.01), Verdict.REST),
        (StepFacts(0.1, False, False, 0.01, 0.01), Verdict.RENEW),
        (StepFacts(1.0, True, True, 0.95, 0.5), Verdict.KEEP),
        (StepFacts(1.0, True, True, 0.95, 0.95), Verdict.REST),
        (StepFacts(1.0, False, True, 0.85, 0.95), Verdict.RENEW),
    ],
)
def test_what_becomes_of_a_model(step, verdict):
    """A short step, or one that leaves too much; large models are kept longer, and judged by all their violations."""
    assert NEWTON.judge(step) is verdict


@given(facts, st.booleans(), st.sampled_from([NEWTON, CHEAP]))
def test_closer_never_means_fewer_newton_steps(here, can_model, policy):
    """Halving the distance keeps Newton steps; resting, or no model, rules them out."""
    phase = policy.decide(here, can_model)
    closer = replace(here, distance=0.5 * here.distance, mean_violation=0.5 * here.mean_violation)
    if phase is Phase.NEWTON:
        assert policy.decide(closer, can_model) is Phase.NEWTON
    assert policy.decide(replace(here, is_resting=True), can_model) is Phase.QUASI_NEWTON
    assert policy.decide(here, False) is Phase.QUASI_NEWTON


@given(steps)
def test_a_better_step_is_never_judged_worse(step):
    """Full length and half of what was left."""
    order = [Verdict.KEEP, Verdict.RENEW, Verdict.REST]
    better = replace(step, length=1.0, gap=0.5 * step.gap, error=0.5 * step.error)
    assert order.index(NEWTON.judge(better)) <= order.index(NEWTON.judge(step))


@given(st.floats(0.0, 1.0), st.floats(0.0, 10.0))
def test_large_models_stop_sooner(tol_gap, certified):
    """And never before the gap is a share of what is allowed or known."""
    few, many = (NEWTON.enough(tol_gap, certified, is_large) for is_large in (False, True))
    assert few <= many <= max(0.8 * tol_gap, 0.1 * certified)


def test_a_run_follows_its_policy(monkeypatch):
    """Every decision of a run is that of the policy on recorded facts; without Newton steps it takes more passes."""
    seen = []

    class Recorded(NewtonPolicy):
        def decide(self, facts, can_model):
            seen.append((facts, can_model, super().decide(facts, can_model)))
            return seen[-1][-1]

    monkeypatch.setattr(newton_phase, "NEWTON", Recorded())
    corpus = SyntheticLanguage(n_labels=4, n_stems=60, seed=1).sample(40, seed=2)
    options = {"recipe": "paper", "norm": "l1", "base_strength": 0.5 / 40, "tol": 1e-6}
    tagger = VCRF(**options).fit(corpus.tokens, corpus.labels)
    assert [NEWTON.decide(here, can_model) for here, can_model, _ in seen] == [phase for _, _, phase in seen]
    assert {phase for _, _, phase in seen} == {Phase.NEWTON, Phase.QUASI_NEWTON}
    monkeypatch.setattr(
        newton_phase, "NEWTON", replace(NEWTON, near=0.0, near_most=0.0, near_many=0.0, block_below=0.0)
    )
    without = VCRF(**options).fit(corpus.tokens, corpus.labels)
    assert without.result_.n_passes > tagger.result_.n_passes


def test_the_proximal_term_of_cutting_planes():
    """It falls where the bound lags behind the weights and where a step kept its promise; else it stays."""
    lagging = {"gap": 1.0, "promised": 0.1, "lost": 0.4, "gained": 0.0, "is_sure": False}
    assert CUTS.next_rho(2.0, **lagging) == pytest.approx(1.8)
    assert CUTS.next_rho(2.0, **lagging | {"promised": 0.5, "gained": 0.2}) == pytest.approx(1.4)
    assert CUTS.next_rho(2.0, **lagging | {"promised": 0.5, "gained": 0.1}) == 2.0
    assert CUTS.next_rho(2.0, **lagging | {"promised": 0.5, "gained": 0.1, "is_sure": True}) == pytest.approx(1.4)
    assert CUTS.next_rho(2.0, **lagging | {"lost": 0.2}) == 2.0


def test_the_end_of_dual_ascent():
    """When visits find a hundredth of what they found first, or three rounds have brought next to nothing."""
    assert not ASCENT.is_over([1.0])
    assert ASCENT.is_over([1.0, 0.009])
    assert not ASCENT.is_over([1.0, 0.9, 0.85, 0.7])
    assert ASCENT.is_over([1.0, 0.9, 0.85, 0.81])
    assert ASCENT.is_over([1.0, float("nan")])
