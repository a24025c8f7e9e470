"""What is checked of a call before any data are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vcrf.errors import InputError
from vcrf.files import check_target

if TYPE_CHECKING:
    from vcrf.labelling.tagger import Tagger
    from vcrf.losses import Loss


def check_output(option: str, output: Path, inputs: Mapping[Path, str]) -> None:
    """Refuse an output that cannot be written, or that is one of the inputs (file -> what it is)."""
    check_target(output)
    for path, what in inputs.items():
        if is_same_file(output, path):
            raise InputError(f"{option} {output} is also {what}, which would be overwritten. Choose another path.")


def read_loss(option: str, text: str, *others: str) -> Loss:
    """The loss that an option names; `others` are words that it takes besides, for the message."""
    from vcrf.losses.names import LOSSES, get_loss

    if text.partition(":")[0] in LOSSES and (loss := get_loss(text)) is not None:
        return loss
    raise InputError(
        f"{option} {text}: expected one of {', '.join((*others, *LOSSES))}. Parameters of a loss follow a colon, as in "
        "edit:band=2 or ngram:n=3,normalised=False."
    )


def check_picture_file(path: Path) -> None:
    """Refuse a picture that could not be drawn at the end."""
    from importlib.util import find_spec

    from vcrf.plots import INSTALL, check_suffix

    check_suffix(path)
    if find_spec("matplotlib") is None:
        raise InputError(INSTALL)


def check_development(data: Sequence[Path], split: str | None, dev: Path | None, dev_split: str | None) -> None:
    """Refuse development data that would be trained on."""
    if dev is None and dev_split is None:
        return
    if dev is None and split is None:
        raise InputError(
            "--dev-split without --dev takes sentences out of DATA: say which part to train on with --split NAME."
        )
    is_among_data = dev is None or any(is_same_file(dev, path) for path in data)
    # Without a name a split is the whole file.
    if is_among_data and (split is None or dev_split is None or split == dev_split):
        raise InputError(
            f"The development data {dev or data[0]} are trained on too. Pass another file with --dev, or two different "
            "parts with --split NAME and --dev-split NAME."
        )


def is_same_file(a: Path, b: Path) -> bool:
    """Whether two paths lead to one file, there or yet to be written; `-` is a stream."""
    if "-" in (str(a), str(b)):
        return False
    if a.exists() and b.exists():
        return a.samefile(b)
    return a.resolve() == b.resolve()


def check_calibrated(tagger: Tagger, model: Path) -> None:
    """Refuse a model that nobody has calibrated."""
    if tagger.model_.calibration is None:
        raise InputError(
            f"{model}: the model is not calibrated, so that nothing can be promised of its labels. Run `vcrf calibrate "
            f"{model} DATA` with labelled sentences that it was not trained on, then this again."
        )


def check_not_of_trees(command: str, model: Path) -> None:
    """Refuse a model of trees where a command is about sentences."""
    from vcrf.cli.trees import is_tree_model

    if is_tree_model(model):
        raise InputError(f"{model}: a model of trees. `vcrf {command}` is for models of sentences.")
