"""Bounds on the risk of a fitted model: what each says at its best margin, and which family spends the budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from vcrf.complexity.bound import ESTIMATED, FIXED_WEIGHTS, LONGEST, Bound, check_delta
from vcrf.complexity.bounds import best_margin, heldout, margin_grid, theorem1_any_norm, weighted_l1
from vcrf.complexity.closed import group_bound, l1_bound, l2_bound, lp_bound, moment_bound
from vcrf.complexity.counts import FamilyCounts
from vcrf.complexity.margins import check_rho, margin_frontier
from vcrf.complexity.norms import BETWEEN, WeightNorms, weight_norms
from vcrf.complexity.sampling import Estimate, rademacher
from vcrf.complexity.voted import theorem3_any_norm
from vcrf.errors import InputError
from vcrf.families.family import Family
from vcrf.families.text import Text
from vcrf.losses import Loss
from vcrf.model import Model
from vcrf.model.facts import data_checksum
from vcrf.problem import Candidates, build_problem
from vcrf.types import UInts32

# Radii of the grid over norms: the complexity term pays at most this factor for not knowing the norm in advance.
_RATIO = 1.1


class Margins(Protocol):
    """Margin losses of a model on a sample: of sentences a `MarginFrontier`, of graphs `GraphMargins`."""

    @property
    def risk(self) -> float: ...
    @property
    def loss_bound(self) -> float: ...
    def additive(self, rho: float, tau: float = 0.0) -> float: ...
    def multiplicative(self, rho: float, tau: float = 0.0) -> float: ...


@dataclass(frozen=True)
class FamilyShare:
    """What a family adds to the complexity terms.

    Attributes
    ----------
    name, tags
    l1_mass : ||w_k||_1
    complexity : Monte-Carlo estimate of the complexity of {||w_k||_1 <= 1}, in the graph of the whole model
    share : ||w_k||_1 * complexity, as a share of the sum over families
    weighted_share : sum of r_j |w_j| over its features, as a share of all
    """

    name: str
    tags: int
    l1_mass: float
    complexity: Estimate
    share: float
    weighted_share: float


@dataclass(frozen=True)
class RiskReport:
    """Bounds on the risk of a model.

    Attributes
    ----------
    bounds : each at the margin where it is smallest (or at the given one), the smallest first
    margins : "additive" or "multiplicative" for each of them
    at_margin_1 : the complexity term of each at rho = 1: for comparing models where the bounds themselves are vacuous
    families : shares, the largest first
    frontier : margin losses of the model on the sample
    is_training_data : whether the sample is the data the model was trained on; None if the model does not know
    notes : what to know before reading on
    curves : name and margin -> total at each of `rhos`
    """

    bounds: list[Bound]
    margins: list[str]
    at_margin_1: list[float]
    families: list[FamilyShare]
    frontier: Margins
    n_sentences: int
    n_tokens: int
    is_training_data: bool | None
    notes: list[str]
    rhos: list[float]
    curves: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    @property
    def best(self) -> Bound:
        """The smallest bound."""
        return self.bounds[0]


_Rule = Callable[[float], Bound]


def risk_report(
    model: Model,
    text: Text,
    y: UInts32,
    loss: Loss,
    *,
    delta: float = 0.05,
    rho: float | None = None,
    paper_constants: bool = False,
) -> RiskReport:
    """Bound the risk of a model from a sample.

    Parameters
    ----------
    model : a fitted model
    text, y : the sample and its labels (numbers); for a statement about a trained model its training data
    loss : task loss, bounded
    delta : each bound fails with at most this probability (each alone, not all together)
    rho : report at this margin instead of the best one
    paper_constants : constants as printed; some of them are wrong
    """
    check_delta(delta)
    if rho is not None:
        check_rho(rho)
    if not text.n_sentences:
        raise InputError("A bound needs a sample: the data have no sentences.")
    if model.known is not None:
        raise InputError("There are no bounds for models with `known_labels`: these forbid what the bounds sum over.")
    problem = build_problem(text, y, model.n_labels, model_families(model))
    frontier = margin_frontier(model.potentials(text), y, loss)
    return report_on(model, problem, frontier, delta, rho, paper_constants)


def report_on(
    model: Model,
    problem: Candidates,
    frontier: Margins,
    delta: float = 0.05,
    rho: float | None = None,
    paper_constants: bool = False,
) -> RiskReport:
    """Bound the risk of a model of any structure from a sample; see `risk_report`."""
    counts, m = FamilyCounts(problem, "joint"), len(problem.weights)
    norms = weight_norms(model, counts)
    families = _shares(model, counts, norms)
    rhos = margin_grid(norms.l1) if rho is None else [rho]
    rules = bound_rules(counts, norms, frontier, delta, paper_constants)
    found = [(best_margin(rule, rhos), margin, rule(1.0).complexity) for (_, margin), rule in rules.items()]
    is_training = _is_training_data(model, problem)
    if is_training is False:
        alone = heldout(frontier.risk, loss_bound=frontier.loss_bound, n_examples=m, delta=delta)
        found.append((alone, "none", 0.0))
    found.sort(key=lambda each: each[0].total)
    curves = {key: [rule(r).total for r in rhos] for key, rule in rules.items()}
    return RiskReport(
        [bound for bound, _, _ in found], [margin for _, margin, _ in found], [unit for _, _, unit in found],
        sorted(families, key=lambda family: -family.share), frontier, m, problem.n_instances, is_training,
        _notes(model, is_training, paper_constants), rhos, curves,
    )  # fmt: skip


def model_families(model: Model) -> list[Family]:
    """The families a model was trained with, from its facts."""
    if not model.families:
        raise InputError("The model has no families: expected one trained by vcrf. Train it again with `vcrf train`.")
    if model.components is not None:
        raise InputError(
            "The model has families on components of labels, and the bounds are about labels and tag patterns alone. "
            "Train without `components`."
        )
    return [
        Family(
            facts.name,
            tuple(source for s, source in enumerate(model.sources) if model.family_of[s, facts.tags] == f),
            facts.tags,
        )
        for f, facts in enumerate(model.families)
    ]


# ------------------------------------------------------------------------------------ bounds


def _shares(model: Model, counts: FamilyCounts, norms: WeightNorms) -> list[FamilyShare]:
    estimates = [rademacher(family) for family in counts]
    spent = norms.by_family * np.array([estimate.value for estimate in estimates])
    total, weighted = max(float(spent.sum()), 1e-300), max(float(norms.weighted.sum()), 1e-300)
    return [
        FamilyShare(
            facts.name, facts.tags, float(norms.by_family[f]), estimates[f], float(spent[f] / total),
            float(norms.weighted[f] / weighted),
        )
        for f, facts in enumerate(model.families)
    ]  # fmt: skip


def bound_rules(
    counts: FamilyCounts,
    norms: WeightNorms,
    frontier: Margins,
    delta: float,
    paper_constants: bool = False,
) -> dict[tuple[str, str], _Rule]:
    """Every bound as a function of rho, by its name and kind of margin.

    `counts` has the sample with the graphs of the whole model, `frontier` the margin losses on it.
    """
    union = counts.union()
    units = [moment_bound(family) for family in counts]
    # Name -> norm and complexity of the unit ball.
    balls = {
        "theorem 1 for H_1, moment bound": (norms.l1, moment_bound(union)),
        "theorem 1 for H_1, estimated complexity": (norms.l1, rademacher(union).value),
        "corollary for H_1": (norms.l1, l1_bound(union, paper_constants=paper_constants)),
        "corollary for H_2": (norms.l2, l2_bound(union, paper_constants=paper_constants)),
        f"theorem 1 for H_p, p = {BETWEEN:g}": (norms.between, lp_bound(union, BETWEEN)),
        "theorem 1 for H_{2,1}, groups by attribute": (norms.group, group_bound(union, "attribute")),
    }
    rules: dict[tuple[str, str], _Rule] = {}
    for margin in ("additive", "multiplicative"):
        loss_at = frontier.additive if margin == "additive" else frontier.multiplicative
        setting = {
            "loss_bound": frontier.loss_bound, "n_examples": union.n_examples, "delta": delta, "margin": margin,
            "ratio": _RATIO,
        }  # fmt: skip
        for name, (norm, unit) in balls.items():
            rules[name, margin] = _ball_rule(name, norm, unit, loss_at, {**setting, "paper_constants": paper_constants})
        rules["theorem 3, families voted", margin] = _voted_rule(
            counts.problem, norms, units, union.r_inf, loss_at, {**setting, "paper_constants": paper_constants}
        )
        rules["weighted L1 (direct)", margin] = _weighted_rule(float(norms.weighted.sum()), loss_at, setting)
    return rules


def _ball_rule(
    name: str, norm: float, unit: float, loss_at: Callable[..., float], setting: Mapping[str, object]
) -> _Rule:
    def rule(rho: float) -> Bound:
        found = replace(theorem1_any_norm(loss_at(rho), unit, norm, rho=rho, **setting), name=name)  # type: ignore[arg-type]
        if "estimated" in name:
            return replace(found, assumptions=(*found.assumptions, ESTIMATED), condition=ESTIMATED)
        return found

    return rule


def _weighted_rule(penalty: float, loss_at: Callable[..., float], setting: Mapping[str, object]) -> _Rule:
    return lambda rho: replace(
        weighted_l1(loss_at(rho), penalty, rho=rho, **setting), condition=FIXED_WEIGHTS  # type: ignore[arg-type]
    )  # fmt: skip


def _voted_rule(
    problem: Candidates,
    norms: WeightNorms,
    units: list[float],
    largest_value: float,
    loss_at: Callable[..., float],
    setting: Mapping[str, object],
) -> _Rule:
    log_c = problem.log_outputs
    longest = max(int(problem.n_parts(kind).max(initial=0)) for kind in problem.kinds)

    def rule(rho: float) -> Bound:
        found = theorem3_any_norm(
            loss_at(rho, 1.0), norms.by_family.tolist(), units, rho=rho, log_n_outputs=log_c,
            max_count=longest * largest_value, **setting,  # type: ignore[arg-type]
        )  # fmt: skip
        assumptions = (*found.assumptions, LONGEST)
        return replace(found, name="theorem 3, families voted", assumptions=assumptions, condition=LONGEST)

    return rule


# ------------------------------------------------------------------------------------ facts


def _is_training_data(model: Model, problem: Candidates) -> bool | None:
    if model.facts is None or not model.facts.data_checksum:
        return None
    return data_checksum(problem.text, problem.y, model.labels) == model.facts.data_checksum


def _notes(model: Model, is_training: bool | None, paper_constants: bool) -> list[str]:
    notes = []
    if is_training is False:
        notes.append(
            "These are not the data the model was trained on. The bounds hold for any sample; if no part of this one "
            "was used for training or tuning, the held-out row needs no complexity at all and is the one to read."
        )
    if is_training is None:
        notes.append("The model does not know what it was trained on: whether these are its training data is open.")
    if not any(family.l1 > 0.0 or family.l2 > 0.0 for family in model.families):
        notes.append(
            "The model was trained without a penalty (all strengths are 0): nothing kept its weights small, and the "
            "bounds use the norms that training happened to end with."
        )
    if paper_constants:
        notes.append(
            "Constants as the paper prints them; some of these statements are false (docs/bounds.md). Moment bound, "
            "estimate, weighted L1, H_p and H_{2,1} of attributes are not in the paper: their complexities are ours."
        )
    return notes
