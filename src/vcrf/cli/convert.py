"""`vcrf convert`: from CRFsuite's files to ours, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcrf.cli.errors import saying_warnings
from vcrf.cli.options import AsJson
from vcrf.cli.output import print_json, say


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="A .crfsuite or .vcrf file, or a pickle of sklearn_crfsuite.CRF.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write; ends in .vcrf or .crfsuite.")],
    json: AsJson = False,
) -> None:
    """Convert a model between CRFsuite and vcrf.

    \b
    vcrf convert old.crfsuite my.vcrf            CRFsuite, python-crfsuite
    vcrf convert old.joblib my.vcrf              sklearn_crfsuite, from pickle or joblib; nothing in it is run
    vcrf convert my.vcrf new.crfsuite            for programs that read CRFsuite's files

    The model stays the same: labels, probabilities and weights. A .crfsuite file can hold what vcrf.compat.CRF trains,
    labels with attributes and pairs of labels; other models are refused.
    """
    from vcrf.cli.checks import check_output
    from vcrf.compat.conversion import check_suffix, read_any, write_any

    check_suffix(target)
    check_output("OUT", target, {source: "the input"})
    estimator = read_any(source)
    with saying_warnings():
        write_any(estimator, target)
    model = estimator._model()
    if json:
        print_json({"model": str(target), "n_labels": model.n_labels, "n_weights": len(model.weights)})
    else:
        say(f"{target}: {model.n_labels} labels, {len(model.weights):,} weights")
