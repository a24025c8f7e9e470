"""What tags, from a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from vcrf.arguments.inputs import generator_of
from vcrf.arguments.parameters import check
from vcrf.arguments.running import n_threads
from vcrf.decoding.constraints import as_constraints, check_constraints
from vcrf.errors import InputError
from vcrf.labelling.tagger import ModelTagger
from vcrf.model import Model, container
from vcrf.model.file import AGAIN, model_of, saying
from vcrf.model.graphs import GraphModel
from vcrf.model.json import load_params

# Models that a process keeps for taggers that come to it one after the other.
_KEPT = 4


class _Read(NamedTuple):
    """A model file that was read; all its arrays are covered by the checksum."""

    model: Model
    constraints: Any
    checksum: str


class FileTagger(ModelTagger):
    """A tagger that `load_tagger` has read. Pickled it is the path of its file, which each process reads once."""

    def __init__(self, path: str, constraints: str | None, read: _Read) -> None:
        super().__init__(read.model, read.constraints if constraints is None else constraints)
        self._path, self._given, self._read = path, constraints, read

    def __reduce__(self) -> Any:
        if self.model_ is not self._read.model:  # it is not that of the file any more
            return ModelTagger, (self.model_, self.constraints)
        return _again, (self._path, self._given, self._read.checksum)


def load_tagger(path: str | os.PathLike[str], constraints: str | None = None) -> FileTagger:
    """Read what tags as the estimator does, without scikit-learn: the model and the constraints, or others.

    Parameters
    ----------
    path : str or path
    constraints : str, optional
        The name of a scheme, in place of the estimator's own constraints.

    Returns
    -------
    FileTagger
        It has all methods of an estimator that do not train. Pickled it is small: another process reads the file
        again, once, from the same path.

    Raises
    ------
    InputError
        When the file is not a model of sequences.
    """
    name = os.fspath(path)
    read = _read(name)
    if constraints is not None:
        check_constraints(constraints, read.model.labels)
    return FileTagger(str(Path(name).absolute()), constraints, read)


def _read(name: str) -> _Read:
    contents = container.decode(container.map_file(Path(name)), name)
    with saying(f"{name}: the model file is not valid", AGAIN):
        model = model_of(contents)
        if isinstance(model, GraphModel):
            raise InputError(f"{name} labels graphs, not sentences: read it with `vcrf.load`.")
        given = {"constraints": contents.document["parameters"].get("constraints")}
        params = load_params(given, set(given))
        check_use(params, model)
    return _Read(model, params["constraints"], container.checksum(contents.document))


def _again(path: str, constraints: str | None, checksum: str) -> FileTagger:
    return FileTagger(path, constraints, _kept(path, checksum))


@lru_cache(maxsize=_KEPT)
def _kept(path: str, checksum: str) -> _Read:
    read = _read(path)
    if read.checksum != checksum:
        raise InputError(
            f"{path}: this is another model than the one that was sent here. Write the same file on all machines, or "
            "load the tagger again."
        )
    return read


def check_use(params: Mapping[str, Any], model: Model) -> None:
    """Refuse parameters that prediction uses and that cannot work; `fit` checks the others."""
    if params.get("constraints") is not None:
        as_constraints(params["constraints"]).check(model.labels)
    generator_of(params.get("random_state"))
    n_threads(params.get("n_jobs"))
    if isinstance(model, GraphModel) and "max_table" in params:
        _check_tables(params["max_table"], model)


def _check_tables(max_table: Any, model: GraphModel) -> None:
    """Refuse tables that hold no factor: a graph that has one could not be labelled, however it is cut."""
    check("max_table", max_table)
    kinds = model.kinds
    largest = max(prod(len(kinds.labels[t]) for t in kind.types) for kind in kinds.kinds)
    if max_table < largest:
        raise InputError(f"`max_table` is {max_table}, and a table of this model's factors has {largest:,} entries")
