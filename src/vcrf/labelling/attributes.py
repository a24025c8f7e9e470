"""Label files of given attributes, in CRFsuite's format."""

from __future__ import annotations

from collections.abc import Iterator

from vcrf.data.attributes import read_attribute_file
from vcrf.data.text import Source
from vcrf.errors import InputError
from vcrf.families import NamedFeature
from vcrf.labelling.tagger import Tagger
from vcrf.model import Model


def reads_attributes(model: Model) -> bool:
    """Whether a model was trained on feature dicts, attribute lists or numbers."""
    return any(isinstance(source, NamedFeature) for source in model.sources)


def label_attribute_file(tagger: Tagger, file: Source, marginals: bool) -> Iterator[str]:
    """A label a line, with its probability after a tab if asked for; an empty line after each sentence."""
    if not reads_attributes(tagger.model_):
        raise InputError("The model was trained on words: expected text, not attributes. Leave --input-format out.")
    for sentence in read_attribute_file(file):
        labels = tagger.predict([sentence.tokens])[0]
        rows = [str(label) for label in labels]
        if marginals:
            posterior = tagger.predict_marginals([sentence.tokens])[0]
            rows = [f"{label}\t{row[label]:.6g}" for label, row in zip(labels, posterior, strict=True)]
        yield "\n".join([*rows, "", ""])
