"""The component "vcrf_tagger": fine-grained tags, parts of speech or morphology."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spacy.language import Language
from spacy.scorer import Scorer
from spacy.tokens import Doc, MorphAnalysis
from spacy.training import Example

from vcrf.errors import InputError
from vcrf.spacy.pipe import VcrfPipe, sentences_of

_ATTRIBUTES = ("tag", "pos", "morph")


class VcrfTagger(VcrfPipe):
    """Sets `token.tag_`, `token.pos_` or `token.morph`."""

    def __init__(self, nlp: Language, name: str, attribute: str, params: dict[str, Any]) -> None:
        super().__init__(nlp, name, params)
        if attribute not in _ATTRIBUTES:
            raise InputError(f"{name}: attribute must be one of {', '.join(_ATTRIBUTES)}, got {attribute!r}.")
        self.attribute = attribute

    def score(self, examples: Iterable[Example], **_: Any) -> dict[str, Any]:
        """Share of tokens with the right label: "tag_acc", "pos_acc" or "morph_acc"."""
        scores: dict[str, Any] = Scorer.score_token_attr(examples, self.attribute)
        return scores

    def _gold(self, example: Example) -> list[str | None]:
        labels = example.get_aligned(self.attribute.upper(), as_string=True)
        return [label or None for label in labels]

    def _annotate(self, docs: list[Doc]) -> None:
        cut = [sentences_of(doc) for doc in docs]
        labels = iter(self._trained().predict([sentence for sentences in cut for sentence in sentences]))
        for doc, sentences in zip(docs, cut, strict=True):
            flat = [label for _ in sentences for label in next(labels)]
            for token, label in zip(doc, flat, strict=True):
                self._set(token, str(label))

    def _set(self, token: Any, label: str) -> None:
        if self.attribute == "morph":
            token.morph = MorphAnalysis(self.vocab, label)
        else:
            setattr(token, f"{self.attribute}_", label)


@Language.factory(  # type: ignore[untyped-decorator, unused-ignore] # spaCy is typed in part
    "vcrf_tagger",
    default_config={"attribute": "tag", "params": {}},
    assigns=["token.tag"],
    # One of them is scored: the attribute.
    default_score_weights={"tag_acc": 0.34, "pos_acc": 0.33, "morph_acc": 0.33},
)
def make_tagger(nlp: Language, name: str, attribute: str, params: dict[str, Any]) -> VcrfTagger:
    """What spaCy calls."""
    return VcrfTagger(nlp, name, attribute, params)
