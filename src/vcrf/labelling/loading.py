"""What tags, from a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vcrf.arguments.inputs import generator_of
from vcrf.decoding.constraints import as_constraints, check_constraints
from vcrf.errors import InputError
from vcrf.labelling.tagger import ModelTagger
from vcrf.model import Model, container
from vcrf.model.file import AGAIN, model_of, saying
from vcrf.model.graphs import GraphModel
from vcrf.model.json import load_params


def load_tagger(path: str | os.PathLike[str], constraints: str | None = None) -> ModelTagger:
    """Read what tags as the estimator does, without scikit-learn: the model and the constraints, or others."""
    name = os.fspath(path)
    contents = container.decode(container.map_file(Path(path)), name)
    with saying(f"{name}: the model file is not valid", AGAIN):
        model = model_of(contents)
        if isinstance(model, GraphModel):
            raise InputError(f"{name} labels graphs, not sentences: read it with `vcrf.load`.")
        given = {"constraints": contents.document["parameters"].get("constraints")}
        params = load_params(given, set(given))
        check_use(params, model)
    if constraints is not None:
        check_constraints(constraints, model.labels)
    return ModelTagger(model, params["constraints"] if constraints is None else constraints)


def check_use(params: Mapping[str, Any], model: Model) -> None:
    """Refuse parameters that prediction uses and that cannot work; `fit` checks the others."""
    if params.get("constraints") is not None:
        as_constraints(params["constraints"]).check(model.labels)
    generator_of(params.get("random_state"))
