"""Whether sentences for calibration are those of training: promises made from these would be void.

If a share s of the sentences was seen, and the tagger makes no errors there, its error looks smaller by the factor
1 - s. So few of them do little harm and are told, unless chance gives as many; more than `MOST` beyond what chance
gives are refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from vcrf.arguments.inputs import label_numbers, read_text, sorted_classes
from vcrf.errors import InputError
from vcrf.model import Model
from vcrf.model.facts import TrainingFacts, data_checksum
from vcrf.model.fingerprints import LONG, Overlap, fingerprints, overlap
from vcrf.trust.selective import percent
from vcrf.types import Label, UInts64

# Share of seen sentences, beyond what chance gives, that is refused.
MOST = 0.05
# Sentences that were given to training twice, to count more, look like a text that repeats itself: so much is believed.
_MOST_BY_CHANCE = 0.5
_WHICH = "that the model was trained on"
_ADVICE = (
    "Keep some back before training (`split` names a part of a file), or label new ones. If new text repeats sentences "
    "as often, pass `allow_seen`."
)


def seen_in_training(model: Model, sentences: list[Sequence[Any]]) -> str:
    """What to say of an error that is measured on sentences of the training; nothing where chance gives as many."""
    found = overlap(model.sentences, fingerprints(read_text(sentences))) if len(model.sentences) else None
    if found is None or found.share <= min(found.chance, _MOST_BY_CHANCE) + MOST:
        return ""
    long = f" of {LONG} tokens or more" if found.is_of_long else ""
    return (
        f"{found.n_seen:,} of the {found.n_sentences:,} sentences{long} are ones {_WHICH} ({percent(found.share)}): "
        "the error on new text is larger."
    )


def check_unseen(
    model: Model, sentences: list[Sequence[Any]], labels: list[list[Label]], prints: UInts64, allow_seen: bool
) -> None:
    """Refuse sentences of the training, and warn of single ones; with `allow_seen` only warn.

    Parameters
    ----------
    model : what was trained
    sentences, labels : for calibration
    prints : fingerprints of the sentences
    allow_seen : whether the user says that repetitions are in the nature of the text
    """
    if model.facts is not None and not allow_seen:
        _check_parts(sentences, labels, model.facts)
    check_overlap(overlap(model.sentences, prints), _WHICH, _ADVICE, allow_seen)


def check_overlap(found: Overlap, which: str, advice: str, allow_seen: bool) -> None:
    """Refuse many more sentences of another text than chance gives, warn of some more; with `allow_seen` only warn."""
    chance = min(found.chance, _MOST_BY_CHANCE)
    if found.share <= chance:
        return
    long = f" of {LONG} tokens or more" if found.is_of_long else ""
    are = "is one" if found.n_seen == 1 else "are ones"
    told = f"{found.n_seen:,} of the {found.n_sentences:,} sentences{long} {are} {which} ({percent(found.share)}"
    if found.share > chance + MOST and not allow_seen:
        raise InputError(f"{told}; {percent(chance)} may be by chance): expected others. {advice}")
    warnings.warn(f"{told}): promises look better than they are, unless new text repeats as many.", stacklevel=2)


def _check_parts(sentences: list[Sequence[Any]], labels: list[list[Label]], facts: TrainingFacts) -> None:
    """Refuse the training sentences as they were, also as the first or the last of more: old models know only these."""
    n = facts.n_sentences
    parts = [slice(0, n), slice(len(labels) - n, None)] if len(labels) > n else []
    sums = [checksum(sentences[part], labels[part]) for part in [slice(None), *parts]]
    if facts.data_checksum in sums:
        which = "Among these are" if parts else "These are"
        raise InputError(f"{which} the sentences {_WHICH}: expected others, which it has not seen. {_ADVICE}")


def checksum(sentences: list[Sequence[Any]], labels: list[list[Label]]) -> str:
    """As that of training: the same sentences and labels have the same sum."""
    classes = sorted_classes(labels)
    return data_checksum(read_text(sentences), label_numbers(labels, classes), classes)
