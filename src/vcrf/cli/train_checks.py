"""What `vcrf train` refuses before it reads any data."""

from __future__ import annotations

from pathlib import Path

from vcrf.arguments.parameters import PARAMETERS
from vcrf.cli.checks import check_development, check_output, check_picture_file, read_loss
from vcrf.errors import InputError
from vcrf.model.container import check_name


def check_call(
    data: list[Path],
    output: Path,
    split: str | None,
    dev: Path | None,
    dev_split: str | None,
    plot: Path | None,
    word_classes: Path | None,
) -> None:
    """Refuse what would cost data or hours later: outputs over inputs, and development data that are trained on."""
    inputs = dict.fromkeys(data, "a file of training data")
    if dev is not None:
        inputs.setdefault(dev, "the development data")
    if word_classes is not None:
        inputs.setdefault(word_classes, "the file of word classes")
    check_name(output)
    check_output("--output", output, inputs)
    if plot is not None:
        check_output("--plot", plot, {**inputs, output: "the model"})
    check_development(data, split, dev, dev_split)


def check_tuning(tune: bool, folds: int | None, plot: Path | None, start: Path | None) -> None:
    """Refuse options that belong to --tune where it is not given, and --start where it is."""
    if tune and start is not None:
        raise InputError("--start is for one training, --tune begins each with the one before: ask for one of them.")
    for name, value in (("--folds", folds), ("--plot", plot)):
        if value is not None and not tune:
            raise InputError(f"{name} belongs to --tune, which is not given. Add --tune, or leave {name} out.")
    if plot is not None:
        check_picture_file(plot)


def check_complexities(complexities: str, strength: float | None, tune: bool) -> None:
    """Refuse complexities that nothing multiplies."""
    if complexities != PARAMETERS["complexities"].default and strength is None and not tune:
        raise InputError(
            f"--complexities {complexities} is what --complexity-strength multiplies, which is 0 unless given. "
            "Add --complexity-strength X or --tune."
        )


def check_loss(loss: str | None) -> None:
    """Refuse what is no loss."""
    if loss not in (None, "none", "auto"):
        read_loss("--loss", loss, "none", "auto")
