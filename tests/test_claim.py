"""The tables of docs/claim.md and docs/reproduce.md: every row follows from the files of results/."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vcrf import VCRF
from vcrf.data import SyntheticLanguage
from vcrf.experiments.tasks import PathPoint

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import claim_tables  # noqa: E402
import figure_blocks  # noqa: E402

FIGURES = figure_blocks.read()


@pytest.mark.parametrize("name", claim_tables.BLOCKS)
def test_tables_are_those_of_results(name: str) -> None:
    """`python benchmarks/claim_tables.py --write` makes them again."""
    assert FIGURES[name]["table"] == claim_tables.table(name)
    assert {key: FIGURES[name][key] for key in ("command", "version", "commit", "machine")} == claim_tables.facts(name)


def test_tables_are_of_one_version() -> None:
    """Every folder says its command and its version, and stands in the list."""
    folders = sorted(path.parent for path in (ROOT / "results").glob("*/points.csv"))
    described = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    runs = [json.loads((folder / "run.json").read_text(encoding="utf-8")) for folder in folders]
    assert len({run["version"] for run in runs}) == 1
    assert all(f"`{folder.name}`" in described for folder in folders)
    assert all(run["command"].endswith(f"results/{folder.name}") for run, folder in zip(runs, folders, strict=True))


def test_settings_of_methods_are_those_of_the_command() -> None:
    """What `paper` has, but for what a method names."""
    found = claim_tables.settings("claim-tamil-kappa")
    assert len(found) == 11
    assert found["paper"] == {"rule": "fobos", "kappa": "m", "eta": "0.01"}
    assert found["1-0.1"] == {"rule": "fobos", "kappa": "1", "eta": "0.1"}
    assert found["cumulative"] == {"rule": "cumulative", "kappa": "m", "eta": "0.01"}


def test_one_run_of_several_is_the_same_run() -> None:
    """The row of kappa = m and eta = 0.01 is run 0 of the five on the same data."""
    five = claim_tables.runs_of(claim_tables.points("claim-tamil-steps"), "tamil", "paper")
    one = claim_tables.runs_of(claim_tables.points("claim-tamil-kappa"), "tamil", "paper")
    assert one[0] == five[0]


def point(complexity: float, base: float, n_active: int, wrong: int) -> PathPoint:
    """A model with so many weights and wrong labels of 1,000."""
    absent: dict[str, Any] = dict.fromkeys(PathPoint._fields, 0) | {"status": "CONVERGED", "families": {}}
    return PathPoint(**absent)._replace(
        complexity_strength=complexity, base_strength=base, n_active=n_active, test_wrong=wrong, test_tokens=1_000
    )


def test_axes_have_one_strength() -> None:
    """0.0001 on the axis of complexities is that of no base strength."""
    assert claim_tables.on_axis(point(1e-4, 0.0, 1, 1), 0, 10 * 1e-5)
    assert not claim_tables.on_axis(point(1e-4, 0.0, 1, 1), 1, 1e-4)
    assert not claim_tables.on_axis(point(1e-4, 1e-4, 1, 1), 0, 1e-4)
    assert not claim_tables.on_axis(point(0.0, 0.0, 1, 1), 0, 1e-4)


def test_kappa_is_a_factor_of_the_strengths() -> None:
    """What lets the table of kappas read kappa = 10 and 100 off kappa = 1 at other strengths."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=10).sample(20, seed=1)
    paper = {"recipe": "paper", "families": "paper", "words": 1, "affix": 1, "solver": "sgd", "eta": 0.05}
    strengths = {"complexity_strength": 1e-3, "base_strength": 2e-3}
    as_m = VCRF(**paper, **strengths, kappa="m", max_passes=5, tol=1e9)
    as_one = VCRF(**paper, **{key: 20 * s for key, s in strengths.items()}, kappa="1", max_passes=5, tol=1e9)
    models = [model.fit(corpus.tokens, corpus.labels).model_ for model in (as_m, as_one)]
    assert len(models[0].weights) == len(models[1].weights) > 0
    np.testing.assert_allclose(models[0].weights, models[1].weights, rtol=1e-9)


def test_the_error_of_as_many_weights_is_read_off_the_curve() -> None:
    """Half way between two models in the logarithm of their weights is half way between their errors."""
    curve = [point(0.0, 0.1, 100, 200), point(0.0, 0.01, 400, 100), point(0.0, 0.0, 9_000, 90)]
    weights, theirs, ours = claim_tables._as_sparse([*curve, point(0.1, 0.0, 200, 140)], 0.1)
    assert (weights, ours) == (200, 14.0)
    assert math.isclose(theirs, 15.0)
    assert (
        claim_tables._as_sparse([*curve, point(0.1, 0.0, 401, 140)], 0.1) is None
    )  # beyond the curve; (0, 0) is off it
    assert claim_tables._as_sparse([*curve, point(0.1, 0.0, 99, 140)], 0.1) is None


def test_a_control_of_fewer_runs_is_laid_beside_the_same_runs() -> None:
    """A mean over one run is no mean over two."""
    crf = claim_tables.Summary([point(0.0, 0.1, 100, 200), point(0.0, 0.1, 100, 100)])
    assert claim_tables.beside(claim_tables.Summary([point(0.1, 0.0, 90, 210)]), crf) == "L1-CRF +1.00 (run 0)"
    assert claim_tables.beside(None, crf) == "-"
