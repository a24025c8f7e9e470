"""What solvers try, when, and for how long: every threshold in one place, every decision a function of facts."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    near_many, near_many_cheap : with many weights; their most curved ones stay violated, however many quasi-Newton
        steps are taken. The second where a Hessian is cheap
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
    cheap : a Hessian that takes fewer passes than this is taken sooner
    """

    many: int = 4_000
    most: int = 24_000
    few: int = 2_500
    near: float = 0.5
    near_most: float = 5.0
    near_mean: float = 3e-3
    near_many: float = 2.0
    near_many_cheap: float = 100.0
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
    cheap: float = 100.0

    def for_cost(self, hessian_in_passes: float) -> NewtonPolicy:
        """The thresholds where a Hessian takes so many passes: few, as on a pattern automaton, are soon worth it."""
        is_cheap = hessian_in_passes < self.cheap
        return replace(self, near_many=self.near_many_cheap, block_tol=float("inf")) if is_cheap else self

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


@dataclass(frozen=True)
class StepPolicy:
    """Rounds of quasi-Newton steps on a working set.

    Attributes
    ----------
    first_steps, later_steps, most_steps : of a round; of the first where there is an l2 part
    first_features : that the first scan may add, per instance, where there is an l2 part. At zero weights nearly all
        candidates are violated, and a few steps on the most violated ones show which of the others still are
    entries : that features which cost work may have, of one scan, per instance
    near : relative gap of a warm start from which on dual ascent is no shorter way
    gap_moves : while a look at the gap, a hundred passes or more after the one before, finds it smaller than this share
        of that, go on
    memory : secant pairs
    longest : step, times the largest weight
    most_flat : steps in a row that neither objective nor gradient feels, before a round ends
    blunt : objectives do not judge steps that lower them by less than so many times their rounding
    idle : steps in a row that nothing but gradients judges and that do not bring the gap down, before a round ends
    """

    first_steps: int = 10
    later_steps: int = 30
    most_steps: int = 150
    first_features: int = 1
    entries: int = 4
    near: float = 0.5
    gap_moves: float = 0.7
    memory: int = 50
    longest: float = 100.0
    most_flat: int = 5
    blunt: float = 10.0
    idle: int = 20


@dataclass(frozen=True)
class AscentPolicy:
    """Dual ascent, where a run begins.

    Attributes
    ----------
    even_rounds : in which every example is visited once; afterwards those that are far off come more often
    enough : it is over when what visits find is this share of what the first round found. More rounds cost as much as
        the steps that they save, up to a tenth of it and down to a thousandth
    no_less : and when three rounds have left more than this share: visits disturb each other in frequent features
    most_rounds
    largest_weight : weights beyond it are those of a problem with next to no penalty: steps from zero come sooner to
        its end
    """

    even_rounds: int = 2
    enough: float = 0.01
    no_less: float = 0.8
    most_rounds: int = 40
    largest_weight: float = 1e3

    def is_over(self, found: list[float]) -> bool:
        """Whether to stop, from the mean that the visits of each round found."""
        has_stopped = len(found) > 3 and found[-1] > self.no_less * found[-4]
        return has_stopped or not found[-1] > self.enough * found[0]


@dataclass(frozen=True)
class CutPolicy:
    """Cutting planes, and the temperatures that come before.

    Attributes
    ----------
    first, factor, last_m3n, last_structsvm : temperatures, in shares of the largest loss: the first, the factor between
        two, and the last, where cuts take over
    most_hard : share of examples that may leave the range of scaled messages: they are slow
    smooth_passes : at each temperature, where it is but a start
    max_age, max_idle : rounds after which a cut without a multiplier is dropped, and a feature without weight
    rounds, few_rounds, sweeps : of the master, the first with an l2 part or near the end: else new cuts are cheaper
        than an exact master
    most_effort : where a round has found nothing new only the master can be wrong: the next one makes twice as many
        sweeps, up to so many times
    good_step : a step may be longer next time if it gained this share of what the master promised; m3n with an l2 part:
        if it gained
    little, lost : shares of the gap: a master that promises less, with a bound that loses more, leaves it to the
        multipliers
    most_vain : rounds that find nothing, before the run ends
    most_simplices : examples up to which block ascent keeps the outputs with their inner products, a megabyte each
    """

    first: float = 0.1
    factor: float = 0.3
    last_m3n: float = 1.5e-4
    last_structsvm: float = 8e-3
    most_hard: float = 0.02
    smooth_passes: int = 100
    max_age: int = 60
    max_idle: int = 5
    rounds: int = 20
    few_rounds: int = 4
    sweeps: int = 11
    most_effort: int = 1024
    good_step: float = 0.3
    little: float = 0.15
    lost: float = 0.3
    most_vain: int = 30
    most_simplices: int = 3_000

    def next_rho(self, rho: float, gap: float, promised: float, lost: float, gained: float, is_sure: bool) -> float:
        """Proximal term of the next round; the same where nothing speaks for a change.

        Where the master has little to promise beside the gap, and the bound is far below its value, the weights
        are good and the multipliers are not: with L1 they miss |g| <= c by rho |w - centre|. Then rho has to fall.
        Else a step that kept its promise may be longer next time.
        """
        if promised < self.little * gap and lost > self.lost * gap:
            return 0.9 * rho
        return 0.7 * rho if gained > (0.0 if is_sure else self.good_step * promised) else rho


@dataclass(frozen=True)
class SimplexPolicy:
    """Block ascent on the simplices of the examples.

    Attributes
    ----------
    passes : between two scans of all candidates; each decodes at the weights and at their average
    sweeps, steps, enough : over the examples after each pass; in an example, and the share of its gap that is small
        enough
    newest : what the newest weights count for in the moving average
    max_age, many_old : an output that has had no multiplier for so many passes is old; an example drops them where they
        are so many
    """

    passes: int = 5
    sweeps: int = 3
    steps: int = 30
    enough: float = 0.1
    newest: float = 0.15
    max_age: int = 20
    many_old: float = 0.3


# What every run does unless its parameters say otherwise; and passes after which it ends.
NEWTON, STEPS, GROUP_STEPS = NewtonPolicy(), StepPolicy(), StepPolicy(memory=8, longest=10.0)
ASCENT, CUTS, SIMPLEX = AscentPolicy(), CutPolicy(), SimplexPolicy()
MAX_PASSES = 20_000
