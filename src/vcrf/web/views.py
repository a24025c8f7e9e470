"""What the page shows of a model as a whole: its training, its families, how far it can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vcrf.errors import InputError
from vcrf.trust.calibration import Calibration
from vcrf.trust.reliability import Reliability
from vcrf.trust.selective import GRID, accept, rates
from vcrf.web.limits import Refused

if TYPE_CHECKING:
    from vcrf.solvers.result import IterationRecord
    from vcrf.web.models import Served

# Errors that one can live with: the places of the slider, from 0.1 % to 20 %.
PLACES = [0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2]


def history_view(records: Sequence[IterationRecord], name: str, **more: Any) -> dict[str, Any]:
    """Records of the solver's rounds; the lower bound is the objective less the gap."""
    rows = [
        {
            "n_passes": r.n_passes, "seconds": r.seconds, "objective": r.objective, "gap": r.gap,
            "lower_bound": r.objective - r.gap, "relative_gap": r.gap / r.objective if r.objective > 0.0 else 0.0,
            "n_active": r.n_active, "n_working": r.n_working, "phase": r.phase, "dev_error": r.dev_error,
        }
        for r in records
    ]  # fmt: skip
    return {"model": name, "records": rows, "is_running": False, "tol": None, "status": None, **more}


def model_history(served: Served) -> dict[str, Any]:
    """How a model was trained."""
    facts = served.facts
    if facts is None:
        raise Refused(404, f"{served.name} was not trained by a solver: it has no history.")
    from vcrf.solvers.result import Status

    tol = (served.document.get("fitted") or {}).get("tol_")
    return history_view(
        facts.history, served.name, status=Status[facts.status].value, tol=tol, n_sentences=facts.n_sentences,
        n_tokens=facts.n_tokens, n_candidates=facts.n_candidates, n_columns=facts.n_columns, n_active=facts.n_active,
        objective=facts.objective, gap=facts.gap, seconds=facts.seconds,
    )  # fmt: skip


def families_view(served: Served, top: int = 8) -> dict[str, Any]:
    """Families with complexity, strength and weight, weights by length of the tag pattern, heaviest features."""
    model = served.tagger.model_
    families = [
        {
            "name": f.name, "tags": f.tags, "complexity": f.complexity, "strength": f.l1 + f.l2, "l1": f.l1, "l2": f.l2,
            "n_candidates": f.n_candidates, "n_columns": f.n_columns, "n_active": f.n_active, "l1_mass": f.l1_mass,
        }
        for f in model.families
    ]  # fmt: skip
    orders = [
        {
            "tags": k, "n_weights": int(np.count_nonzero(model.lengths == k)),
            "l1_mass": float(np.abs(model.weights[model.lengths == k]).sum()),
        }
        for k in range(1, model.order + 1)
    ]  # fmt: skip
    features = {
        str(label): [
            {
                "family": f.family, "attribute": f.attribute, "labels": [str(y) for y in f.labels],
                "weight": f.weight,
            }
            for f in model.heaviest(label, top)
        ]
        for label in model.labels
    }  # fmt: skip
    return {"model": served.name, "norm": model.norm, "families": families, "orders": orders, "features": features}


def trust_view(served: Served, confidence: float = 0.95, unit: str = "token") -> dict[str, Any]:
    """Reliability, risk by coverage on the calibration sentences, and the certified threshold at each place."""
    calibration = served.tagger.model_.calibration
    if calibration is None:
        raise Refused(404, f"{served.name} is not calibrated: run `vcrf calibrate MODEL DATA` with held-out sentences.")
    key = ("trust", confidence, unit)
    return served.recent.get(key, lambda: _trust(served.name, calibration, confidence, unit))


def _trust(name: str, calibration: Calibration, confidence: float, unit: str) -> dict[str, Any]:
    try:
        units = calibration.units(unit)
    except InputError as error:
        raise Refused(400, str(error)) from error
    curve = [(float(t), *rates(units, float(t))) for t in GRID[::4]]
    promises = [accept(units, place, confidence, unit) for place in PLACES]
    return {
        "model": name, "unit": unit, "confidence": confidence, "n_sentences": calibration.n_sentences,
        "n_tokens": calibration.n_tokens, "calibration_temperature": calibration.calibration_temperature,
        "units": ["token", "sentence", *(["span"] if calibration.scheme else [])],
        "reliability": {"before": _reliability(calibration.before), "after": _reliability(calibration.after)},
        "curve": [{"threshold": t, "share": s, "error": e} for t, s, e in curve if s > 0.0],
        "promises": [{**vars(promise), "is_any": promise.is_any, "message": promise.message} for promise in promises],
    }  # fmt: skip


def _reliability(side: Reliability) -> dict[str, Any]:
    filled = np.flatnonzero(side.n_tokens)
    return {
        "error": side.error,
        "bins": [
            {
                "n": int(side.n_tokens[i]), "sureness": float(side.sureness[i]), "accuracy": float(side.accuracy[i]),
            }
            for i in filled
        ],
    }  # fmt: skip
