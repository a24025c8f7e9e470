"""Points of the grid with chosen facts."""

from __future__ import annotations

from vcrf.experiments.tasks import PathPoint


def point(**changes: object) -> PathPoint:
    """A point with a number of its own in every field."""
    values: dict[str, object] = {name: i for i, name in enumerate(PathPoint._fields)}
    values |= {"complexity_strength": 0.1, "base_strength": 1e-5, "objective": 1 / 3, "gap": 1e-9, "seconds": 0.5}
    return PathPoint(**(values | {"status": "CONVERGED", "families": {"H(1,2,0)": 3}} | changes))  # type: ignore[arg-type]
