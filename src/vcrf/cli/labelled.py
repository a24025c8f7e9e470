"""Labelled files for commands that compare a model's labels with true ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcrf.cli.errors import saying_warnings
from vcrf.cli.output import say

if TYPE_CHECKING:
    from vcrf.data import Corpus
    from vcrf.data.layout import Layout
    from vcrf.labelling.tagger import Tagger
    from vcrf.types import Label


@contextmanager
def in_sources(corpus: Corpus) -> Iterator[None]:
    """Name the line or task of a sentence where a message has its number."""
    from vcrf.errors import InputError

    try:
        yield
    except InputError as error:
        number = re.match(r"Sentence (\d+)", str(error))
        if number is None:
            raise
        raise InputError(f"{corpus.sources[int(number[1])]}{str(error)[number.end() :]}") from error


def read_data(*how: Any, **more: Any) -> tuple[Corpus, Layout]:
    """Do as `read_with_layout`, and say what it warns of."""
    from vcrf.data.readers import read_with_layout

    with saying_warnings():
        return read_with_layout(*how, **more)


def read_labelled(
    tagger: Tagger, model: Path, data: Path, split: str | None, tag: str | int | None, form: int | None,
    data_format: str | None,
) -> tuple[Corpus, list[list[Label]]]:  # fmt: skip
    """The sentences of a file in the columns of the training data, and their labels as the model writes them."""
    from vcrf.labelling.labelling import check_reads_words

    check_reads_words(tagger.model_, str(model))
    facts = tagger.model_.facts
    corpus, _ = read_data(data, tag, split, data_format, form, facts.layout if facts else None)
    # A file's labels are text, those of a model may be numbers.
    own: dict[str, Any] = {str(label): label for label in tagger.model_.labels}
    if not set(own).intersection(corpus.label_set):
        say(f"{model} and {data} have no label in common: is the label in another column? Pass it with --tag.")
    return corpus, [[own.get(label, label) for label in labels] for labels in corpus.labels]
