"""The component "vcrf_ner": entities with their probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spacy.language import Language
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from vcrf import VCRF
from vcrf.metrics import entities
from vcrf.spacy.pipe import VcrfPipe, sentences_of

_BIO = {"U": "B", "L": "I"}  # of BILUO

if not Span.has_extension("vcrf_prob"):
    Span.set_extension("vcrf_prob", default=None)


class VcrfNer(VcrfPipe):
    """Sets `doc.ents`; `doc.spans[spans_key]` has the same spans with `attrs["scores"]`, and so has `span._.vcrf_prob`.

    A score is the probability that the model gives to the entity as it is, no shorter and no longer.
    """

    def __init__(self, nlp: Language, name: str, spans_key: str, params: dict[str, Any]) -> None:
        super().__init__(nlp, name, params)
        self.spans_key = spans_key

    def score(self, examples: Iterable[Example], **_: Any) -> dict[str, Any]:
        """Precision, recall and F of entities: "ents_p", "ents_r", "ents_f", "ents_per_type"."""
        scores: dict[str, Any] = get_ner_prf(examples)
        return scores

    def _gold(self, example: Example) -> list[str | None]:
        tags = example.get_aligned_ner()
        return [None if tag in (None, "-", "") else _BIO.get(tag[0], tag[0]) + tag[1:] for tag in tags]

    def _estimator(self, y: list[list[str | None]]) -> VCRF:
        has_entities = any(tag is not None and tag != "O" for tags in y for tag in tags)
        scheme = {"constraints": "BIO"} if has_entities else {}
        return VCRF(**{**scheme, **self.params})

    def _annotate(self, docs: list[Doc]) -> None:
        tagger, cut = self._trained(), [sentences_of(doc) for doc in docs]
        X = [sentence for sentences in cut for sentence in sentences]
        found = [entities(list(map(str, labels))) for labels in tagger.predict(X)]
        scores = tagger.entity_probability(X, found)
        each = iter(zip(found, scores, strict=True))
        for doc, sentences in zip(docs, cut, strict=True):
            self._set(doc, sentences, [next(each) for _ in sentences])

    def _set(self, doc: Doc, sentences: list[list[str]], found: list[Any]) -> None:
        spans: list[Span] = []
        values: list[float] = []
        offset = 0
        for sentence, (listed, scores) in zip(sentences, found, strict=True):
            for (first, last, kind), score in zip(listed, scores, strict=True):
                spans.append(Span(doc, offset + first, offset + last + 1, label=kind))
                values.append(score)
            offset += len(sentence)
        doc.set_ents(spans, default="outside")
        doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, spans=spans, attrs={"scores": values})
        for span, value in zip(spans, values, strict=True):
            span._.vcrf_prob = value


@Language.factory(  # type: ignore[untyped-decorator, unused-ignore] # spaCy is typed in part
    "vcrf_ner",
    default_config={"spans_key": "vcrf", "params": {}},
    assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def make_ner(nlp: Language, name: str, spans_key: str, params: dict[str, Any]) -> VcrfNer:
    """What spaCy calls."""
    return VcrfNer(nlp, name, spans_key, params)
