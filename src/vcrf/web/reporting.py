"""The report of `vcrf eval --html`: errors, training and families of a model in one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vcrf.page.standalone import Page, standalone
from vcrf.web.models import Models, Served
from vcrf.web.trying import errors_view
from vcrf.web.views import families_view, model_history, trust_view

if TYPE_CHECKING:
    from vcrf.data import Corpus
    from vcrf.labelling.tagger import Tagger

# A page with more sentences is slow to open; those with the surest mistakes are kept.
MOST_SENTENCES = 1_000


def report_page(tagger: Tagger, name: str, corpus: Corpus, data: str) -> Page:
    """A model on labelled sentences, as a page that needs no service."""
    served = Served(name, tagger, {})
    models = Models([served], corpus, data)
    errors = errors_view(models, served, limit=MOST_SENTENCES)
    answers: dict[str, Any] = {"/errors": errors, "/families": families_view(served, 12)}
    views = ["errors"]
    if tagger.model_.calibration is not None:
        answers["/trust"] = trust_view(served)
        views.append("trust")
    if served.facts is not None and served.facts.history:
        answers["/history"] = model_history(served)
        views.append("training")
    labels = [str(label) for label in tagger.model_.labels]
    return standalone(name, [*views, "families"], answers, labels=labels, models=[])
