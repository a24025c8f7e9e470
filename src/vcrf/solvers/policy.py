"""When Newton steps are worth their Hessian: every threshold in one place, every decision a function of facts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Phase(Enum):
    """What a round of minimising on the working set does."""

    NEWTON = "Newton steps on all weights that may move"
    QUASI_NEWTON = "quasi-Newton steps, and perhaps Newton steps on the most curved weights"


class Verdict(Enum):
    """What becomes of a quadratic model after a step with it."""

    KEEP = "it serves the next step too"
    RENEW = "the next step has a new one"
    REST = "too far away, or too coarse: quasi-Newton steps first, and a finer one afterwards"


@dataclass(frozen=True)
class Facts:
    """Where a run is.

    Attributes
    ----------
    n_free : weights that may move
    distance : largest violation of the optimality conditions, relative to the threshold
    mean_violation : sum of |w| times violations, as a share of the objective
    excess : largest share by which a gradient exceeds its threshold
    on_face : whether quasi-Newton steps have nearly found which weights are zero
    is_l1 : whether the penalty has no l2 part
    is_resting : whether Newton steps have just failed
    has_hessian : whether there is one
    """

    n_free: int
    distance: float
    mean_violation: float
    excess: float
    on_face: bool
    is_l1: bool
    is_resting: bool
    has_hessian: bool


@dataclass(frozen=True)
class StepFacts:
    """A step with a quadratic model: its length, whether the model was new and of many weights, and what was left.

    `gap` and `error` are the gap on the working set and the sum of violations after it, in shares of those before.
    """

    length: float
    is_new: bool
    is_large: bool
    gap: float
    error: float


@dataclass(frozen=True)
class NewtonPolicy:
    """Thresholds of the decisions.

    Attributes
    ----------
    many : above so many weights a model is large: 4 bytes a number, rough solutions, few new ones. The model takes 8
        n^2 bytes, and its factor as much and n^3 / 3 multiplications: a second at this size
    most : of a large model, 2.3 GB at this size, and as much again for a factor
    few : up to so many weights a Hessian is cheap enough to be taken even for a moderate gap
    near, near_most, near_mean : Newton steps are tried when the distance is below the first, or below the second with
        a mean violation below the third: a few frequent features are the last to come right
    near_many : with many weights; their most curved ones stay violated, however many quasi-Newton steps are taken
    block, block_instances : of the largest problems the most curved weights are done, from a sample
    block_below : excess below which these begin
    block_tol : relative gap down to which they are tried first
    wider, choice : share of the threshold from which on the gradient of a zero weight brings it into a model
    scan_below : with a large model a scan comes when the gap on the working set is this share of the certified one
    rough : its solutions may leave violations of this share of those before
    flat : damping of steps with few weights, in violations
    short : a step below this length says that the model does not fit
    left, left_large, vain : shares of the gap that a step may leave; the last of a new large model
    rest : rounds without Newton steps after they have failed
    finer : factor of the fineness of the next Hessian
    steps, block_steps : in one round
    most_vain : rounds with a large model that may leave the gap as it is
    """

    many: int = 4_000
    most: int = 24_000
    few: int = 2_500
    near: float = 0.5
    near_most: float = 5.0
    near_mean: float = 3e-3
    near_many: float = 2.0
    block: int = 600
    block_instances: int = 8_000
    block_below: float = 1.0
    block_tol: float = 1e-4
    wider: float = 0.9
    choice: float = 0.95
    scan_below: float = 0.1
    rough: float = 0.03
    flat: float = 1.0
    short: float = 0.2
    left: float = 0.3
    left_large: float = 0.8
    vain: float = 0.9
    rest: int = 2
    finer: float = 0.1
    steps: int = 12
    block_steps: int = 4
    most_vain: int = 8

    def decide(self, facts: Facts, can_model: bool) -> Phase:
        """The phase of a round; `can_model` says whether Newton steps on all weights are wanted and to be had."""
        is_near = (
            facts.distance < self.near
            or (facts.distance < self.near_most and facts.mean_violation < self.near_mean)
            or (facts.distance < self.near_many and facts.on_face and facts.n_free > self.many)
        )
        return Phase.NEWTON if is_near and can_model and not facts.is_resting else Phase.QUASI_NEWTON

    def is_worth_polishing(self, facts: Facts, can_model: bool) -> bool:
        """Whether Newton steps on the most curved weights follow quasi-Newton steps, where all are too many."""
        is_near = facts.on_face and facts.is_l1 and facts.excess < self.block_below
        return is_near and facts.has_hessian and not can_model

    def scan_share(self, n_weights: int, on_l1_face: bool, can_model: bool) -> float:
        """Share of its threshold that a gradient has to exceed for the working set.

        What is close to its threshold moves with the next steps, and had better be in a large model.
        """
        return self.wider if n_weights > self.many and on_l1_face and can_model else 1.0

    def enough(self, tol_gap: float, certified: float, is_large: bool) -> float:
        """Gap on the working set to step down to; `tol_gap` and `certified` are the gaps allowed and known.

        With many weights no step for a gap that is small enough as it is, nor for one far below that of other weights,
        which a scan finds.
        """
        least = max(0.5 * tol_gap, 0.02 * certified)
        return max(least, 0.8 * tol_gap, self.scan_below * certified) if is_large else least

    def judge(self, step: StepFacts) -> Verdict:
        """What becomes of the model after a step.

        The gap is that of the worst weight: with many it may rest while thousands come right. A Hessian of many weights
        takes as long as ten steps.
        """
        left = min(step.gap, step.error) if step.is_large else step.gap
        is_short = step.length < self.short
        if step.is_new and (is_short or (step.is_large and left > self.vain)):
            return Verdict.REST
        return Verdict.RENEW if is_short or left > (self.left_large if step.is_large else self.left) else Verdict.KEEP


POLICY = NewtonPolicy()
# Where a Hessian costs few passes, as on a pattern automaton.
CHEAP_POLICY = NewtonPolicy(near_many=100.0, block_tol=float("inf"))
CHEAP_HESSIAN = 100.0
