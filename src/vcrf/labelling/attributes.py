"""Tokens of given attributes: files of them in CRFsuite's format, and what to show in the place of a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from vcrf.data.attributes import AttributeSentence, attribute_line
from vcrf.families import NamedFeature
from vcrf.labelling.tagger import Tagger
from vcrf.model import Model


def reads_attributes(model: Model) -> bool:
    """Whether a model was trained on feature dicts, attribute lists or numbers."""
    return any(isinstance(source, NamedFeature) for source in model.sources)


def label_attributes(tagger: Tagger, sentences: Iterable[AttributeSentence], marginals: bool) -> Iterator[str]:
    """A label a line, with its probability after a tab if asked for; an empty line after each sentence."""
    for sentence in sentences:
        labels = tagger.predict([sentence.tokens])[0]
        rows = [str(label) for label in labels]
        if marginals:
            posterior = tagger.predict_marginals([sentence.tokens])[0]
            rows = [f"{label}\t{row[label]:.6g}" for label, row in zip(labels, posterior, strict=True)]
        yield "\n".join([*rows, "", ""])


def token_texts(tokens: Sequence[Any]) -> list[str]:
    """What to show in the place of tokens: words as they are, of given attributes one.

    It is the first that is not at all tokens of the sentence, as a bias is, and that has a text: `w:the`, `w=the`.

    >>> token_texts([{"bias": 1.0, "w": "the"}, {"bias": 1.0, "w": "cat"}, ["bias", "EOS"]])
    ['w:the', 'w:cat', 'EOS']
    """
    if all(isinstance(token, str) for token in tokens):
        return list(tokens)
    names = [_attribute_names(token) for token in tokens]
    everywhere = set(names[0]).intersection(*names[1:]) if len(names) > 1 else set()
    found = []
    for listed in names:
        own = [name for name in listed if name not in everywhere] or listed
        found.append(next((name for name in own if ":" in name or "=" in name), own[0] if own else "(no attribute)"))
    return found


def _attribute_names(token: Any) -> list[str]:
    if isinstance(token, Mapping):
        return [f"{name}:{value}" if isinstance(value, str) else str(name) for name, value in token.items()]
    return [str(name) for name in token]


def example_lines(model: Model) -> list[str]:
    """A sentence to begin with, in CRFsuite's format: the heaviest attribute of each of the first labels."""
    heaviest: dict[Any, tuple[float, str]] = {}
    for feature in model.features():
        if len(feature.labels) == 1:
            (label,) = feature.labels
            heaviest[label] = max(heaviest.get(label, (0.0, "")), (feature.weight, feature.attribute))
    names = [heaviest[label][1] for label in model.labels if label in heaviest]
    return [attribute_line("", [name]) for name in names if name][:5]
