"""Bounds on the risk of a model, from labelled sentences; they take seconds, or minutes, and are computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vcrf.web.limits import Refused

if TYPE_CHECKING:
    from vcrf.data import Corpus
    from vcrf.web.models import Models, Served

# More sentences take longer than anyone waits for.
_MOST_SENTENCES = 2_000


def bounds_view(models: Models, served: Served) -> dict[str, Any]:
    """The bounds with their terms, and what each family adds to the complexity; at first only that they are begun."""
    corpus = models.labelled()
    found = served.remembered.get_soon("bounds", lambda: _bounds(served, corpus, models.data_name))
    return {"model": served.name, "is_running": True} if found is None else found


def _bounds(served: Served, corpus: Corpus, name: str) -> dict[str, Any]:
    import warnings

    from vcrf.complexity.report import risk_report
    from vcrf.families.text import intern_sentences
    from vcrf.losses import HammingLoss

    model = served.tagger.model_
    number = {str(label): i for i, label in enumerate(model.labels)}
    pairs = zip(corpus.tokens, corpus.labels, strict=True)
    # A bound is about the labels that the model was trained with.
    sample = [(x, y) for x, y in pairs if all(str(label) in number for label in y)][:_MOST_SENTENCES]
    if not sample:
        raise Refused(400, "No labelled sentence has only labels of the model: there is nothing that a bound is about.")
    y = np.array([number[str(label)] for _, labels in sample for label in labels], np.uint32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the notes of the report say the same
        report = risk_report(model, intern_sentences([x for x, _ in sample]), y, HammingLoss().for_labels(model.labels))
    return {
        "model": served.name, "is_running": False, "data": name, "loss": "hamming",
        "loss_bound": report.frontier.loss_bound,
        "empirical_risk": report.frontier.risk, "is_vacuous": report.best.is_vacuous, "notes": report.notes,
        "is_training_data": report.is_training_data, "n_sentences": report.n_sentences,
        "bounds": [
            {
                "name": b.name, "margin": margin, "rho": b.rho or None, "empirical": b.empirical,
                "complexity": b.complexity, "confidence": b.confidence, "total": b.total, "is_vacuous": b.is_vacuous,
                "complexity_at_margin_1": unit,
            }
            for b, margin, unit in zip(report.bounds, report.margins, report.at_margin_1, strict=True)
        ],
        "families": [
            {"name": f.name, "tags": f.tags, "share": f.share, "complexity": f.complexity.value}
            for f in report.families
        ],
    }  # fmt: skip
