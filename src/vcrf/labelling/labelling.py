"""Label a stream of sentences, block by block: the memory used does not grow with the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from vcrf.data.raw import OutputFormat, RawFile, RawSentence
from vcrf.data.writers import Span, Tagging, Writer, choose_writer
from vcrf.decoding.schemes import scheme_of
from vcrf.errors import BudgetError, InputError
from vcrf.families import NamedFeature
from vcrf.labelling.tagger import Tagger
from vcrf.model import Model
from vcrf.trust.selective import accepted
from vcrf.types import Label

if TYPE_CHECKING:
    from vcrf.losses import Loss
    from vcrf.trust import Acceptance, SetThreshold

_BOM = "\ufeff"


class Tags(Protocol):
    """What tags: an estimator that is fitted, or a `ModelTagger`."""

    def predict(self, X: Sequence[Sequence[str]]) -> list[list[Label]]: ...
    def predict_mbr(self, X: Sequence[Sequence[str]], loss: Any) -> list[list[Label]]: ...
    def predict_marginals(self, X: Sequence[Sequence[str]]) -> list[list[dict[Label, float]]]: ...
    def predict_kbest(self, X: Sequence[Sequence[str]], k: int) -> list[list[tuple[list[Label], float]]]: ...


class OutputChoice(NamedTuple):
    """What to write of each sentence.

    Parameters
    ----------
    output_format : "conllu", "tsv", "json" or None
        None is the input's own format, CoNLL-U for plain text.
    marginals : bool
        The posterior of each chosen label too.
    n_best : int
        The k best sequences with their probabilities; 0 is the best one alone.
    loss : Loss, optional
        The sequence with the least expected loss instead of the best one.
    acceptance : Acceptance, optional
        Mark what is not accepted: `Check=Yes`.
    sets : SetThreshold, optional
        The label set of each token.
    """

    output_format: OutputFormat | None = None
    marginals: bool = False
    n_best: int = 0
    loss: Loss | None = None
    acceptance: Acceptance | None = None
    sets: SetThreshold | None = None


class Onlooker(Protocol):
    """Is told what is labelled: for a report, or to write what a person has to check."""

    def see(self, sentences: Sequence[RawSentence], taggings: Sequence[Sequence[Tagging]]) -> None: ...
    def see_text(self, text: str, tagging: Tagging) -> None: ...


def label_file(tagger: Tags, file: RawFile, wanted: OutputChoice, onlooker: Onlooker | None = None) -> Iterator[str]:
    """Text with labels, for each block of a file; see `open_raw` and `vcrf.data.writers`."""
    write, is_in_place = choose_writer(file, wanted.output_format)
    if is_in_place and file.has_bom:
        yield _BOM
    for block in file.blocks:
        sentences = [sentence for sentence in block if sentence.tokens]
        try:
            taggings = _taggings(tagger, sentences, wanted)
        except BudgetError as error:
            longest = max(sentences, key=lambda sentence: len(sentence.tokens))
            raise BudgetError(f"{file.name}:{longest.first_line}: {error}") from error
        except InputError as error:
            places = [f"{file.name}:{sentence.first_line}" for sentence in sentences]
            raise InputError(located(str(error), places)) from error
        if onlooker is not None:
            onlooker.see(sentences, taggings)
        left = iter(taggings)
        yield "".join([_written(write, sentence, left, onlooker) for sentence in block])


def _written(
    write: Writer, sentence: RawSentence, taggings: Iterator[list[Tagging]], onlooker: Onlooker | None
) -> str:  # fmt: skip
    """The text of the next sentence; the onlooker has it too."""
    if not sentence.tokens:
        return write(sentence, [])
    found = next(taggings)
    text = write(sentence, found)
    if onlooker is not None:
        onlooker.see_text(text, found[0])
    return text


def located(message: str, places: Sequence[str]) -> str:
    """A message about a sentence by its number, with the place in the file instead."""
    number = re.match(r"Sentence (\d+): ", message)
    return message if number is None else f"{places[int(number[1])]}: {message[number.end() :]}"


def _taggings(tagger: Tags, sentences: Sequence[RawSentence], wanted: OutputChoice) -> list[list[Tagging]]:
    X = [sentence.tokens for sentence in sentences]
    if wanted.n_best:
        found = [[Tagging(_texts(y), None, p) for y, p in best] for best in tagger.predict_kbest(X, wanted.n_best)]
    else:
        chosen = tagger.predict(X) if wanted.loss is None else tagger.predict_mbr(X, wanted.loss)
        found = [[Tagging(_texts(labels))] for labels in chosen]
    if wanted.marginals:
        posteriors = tagger.predict_marginals(X)
        found = [[_with_posterior(y, rows) for y in best] for best, rows in zip(found, posteriors, strict=True)]
        if not wanted.n_best and isinstance(tagger, Tagger):
            found = _with_spans(tagger, X, found)
    if wanted.acceptance is not None or wanted.sets is not None:
        found = _with_trust(tagger, X, found, wanted)
    return found


def _with_spans(tagger: Tagger, X: list[list[str]], found: list[list[Tagging]]) -> list[list[Tagging]]:
    """Entities with their probabilities, where the labels of the model mark entities."""
    from vcrf.metrics.entities import entities

    scheme = scheme_of(tagger.model_.labels)
    if not scheme:
        return found
    spans = [entities(best[0].labels, scheme) for best in found]
    values = tagger.entity_probability(X, spans, scheme)
    return [
        [best[0]._replace(spans=[Span(span.first, span.last, span.kind, p) for span, p in zip(*pair, strict=True)])]
        for best, *pair in zip(found, spans, values, strict=True)
    ]


def _with_trust(
    tagger: Any, X: list[list[str]], found: list[list[Tagging]], wanted: OutputChoice
) -> list[list[Tagging]]:  # fmt: skip
    """What has to be checked, and label sets, by the tagger's own probabilities."""
    from vcrf.labelling.observing import observe
    from vcrf.labelling.span_sets import span_sets
    from vcrf.labelling.trusting import label_sets, unit_sureness

    out = []
    has_spans = wanted.sets is not None and wanted.sets.unit == "span"
    left = iter(found)
    for block in observe(tagger, list(X)):
        rows = [] if wanted.acceptance is None else unit_sureness(block, tagger.model_, wanted.acceptance)
        sets, spans = [], []
        if wanted.sets is not None:
            sets = [] if has_spans else label_sets(block, tagger.model_, wanted.sets.threshold)
            spans = span_sets(block, tagger.model_, wanted.sets.threshold) if has_spans else []
        for i, (a, b) in enumerate(pairwise(block.scores.sent_ptr.tolist())):
            (best,) = next(left)
            if wanted.acceptance is not None:
                best = best._replace(checks=(~accepted(np.array(rows[i]), wanted.acceptance.threshold)).tolist())
            if has_spans:
                best = best._replace(span_set=spans[i])
            elif wanted.sets is not None:
                best = best._replace(sets=[_texts(labels) for labels in sets[a:b]])
            out.append([best])
    return out


def _with_posterior(tagging: Tagging, posterior: list[dict[Label, float]]) -> Tagging:
    by_text = [{str(label): probability for label, probability in row.items()} for row in posterior]
    return tagging._replace(probabilities=[row[y] for row, y in zip(by_text, tagging.labels, strict=True)])


def _texts(labels: list[Label]) -> list[str]:
    return [label if isinstance(label, str) else str(label) for label in labels]


def check_reads_words(model: Model, name: str) -> None:
    """Refuse a model that does not read words; `name` is that of its file."""
    if any(isinstance(source, NamedFeature) for source in model.sources):
        raise InputError(
            f"{name}: the model was trained on feature dicts, attribute lists or numbers: expected one trained on "
            "words. Label with the library (`vcrf.load`), `vcrf tag --input-format attributes`, or train on text."
        )


def check_labels_text(model: Model, name: str) -> None:
    """Refuse a model that does not read words, or whose labels would break a file of lines and fields."""
    check_reads_words(model, name)
    check_labels_fit(model, name)


def check_labels_fit(model: Model, name: str) -> None:
    """Refuse a model whose labels would break a file of lines and fields."""
    for label in model.labels:
        if isinstance(label, str) and (not label or any(mark in label for mark in "\t\n\r\0")):
            raise InputError(
                f"{name}: the label {label!r} of the model cannot be written into a field: it is empty or has a tab "
                "or line end in it. Use the library, or train with other labels."
            )
