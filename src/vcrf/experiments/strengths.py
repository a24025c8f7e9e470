"""Methods at equal strengths, nothing chosen: complexity strength s and no base strength against the L1-CRF at s."""

from __future__ import annotations

from vcrf.experiments.comparison import Summary, difference, spread
from vcrf.experiments.document import Section, Table
from vcrf.experiments.plan import Cell, Results

_HEADINGS = [
    "data", "method", "noise", "strength", "token", "L1-CRF token", "difference", "95 % interval", "p", "p, overlap",
    "runs better", "validation", "L1-CRF validation", "weights", "L1-CRF weights", "attributes", "L1-CRF attributes",
    "relative gap", "L1-CRF gap",
]  # fmt: skip


def by_strength(results: Results) -> Section:
    """A row for each strength that is on both axes of the grid. Only for grids of axes."""
    plan = results.plan
    if not plan.grid.is_axes:
        return Section("By strength")
    common = sorted(set(plan.grid.complexity_strengths) & set(plan.grid.base_strengths) - {0.0}, reverse=True)
    rows = [
        _row(results, cell, strength) for noise in plan.noises for cell in results.cells(noise) for strength in common
    ]
    text = (
        "Test error in per cent, mean over runs, at a complexity strength and base strength 0, and of the same "
        "method's L1-CRF at that base strength. `attributes` counts twins once, the gap is the largest over runs."
    )
    if plan.settings.is_by_mean:
        text += f" Complexity strengths are divided by the mean complexity of {plan.settings.mean}: equal means."
    return Section("By strength", [text, Table(_HEADINGS, rows, n_left=3)] if rows else [])


def _row(results: Results, cell: Cell, strength: float) -> list[str]:
    ours, theirs = _at(results, cell, strength, 0.0), _at(results, cell, 0.0, strength)
    found = difference(ours.token, theirs.token)
    p = ["" if value is None else f"{value:.2g}" for value in (found.p_value, found.p_overlap)]
    columns = zip(_facts(ours), _facts(theirs), strict=True)
    return [
        cell.dataset, cell.method, f"{cell.noise:g}", f"{strength:g}",
        *(f"{spread(side.token)[0]:.2f} ± {spread(side.token)[1]:.2f}" for side in (ours, theirs)),
        f"{found.mean:+.2f}", f"{found.low:+.2f} to {found.high:+.2f}", *p, str(found.n_better),
        *(text for pair in columns for text in pair),
    ]  # fmt: skip


def _at(results: Results, cell: Cell, complexity_strength: float, base_strength: float) -> Summary:
    wanted = complexity_strength, base_strength
    return Summary(
        [
            point
            for points in results.points[cell].values()
            for point in points
            if (point.complexity_strength, point.base_strength) == wanted
        ]
    )


def _facts(side: Summary) -> list[str]:
    """Validation error, weights, attributes, and the largest relative gap."""
    validation = [100.0 * point.validation_wrong / point.validation_tokens for point in side.chosen]
    gaps = [point.gap / point.objective if point.gap is not None else None for point in side.chosen]
    known = [gap for gap in gaps if gap is not None]
    worst = f"{max(known):.1e}" if len(known) == len(gaps) else "none"
    return [
        f"{spread(validation)[0]:.2f}", f"{side.mean('n_active'):,.0f}", f"{side.mean('n_columns_used'):,.0f}", worst
    ]  # fmt: skip
