"""What both components are: a tagger that learns in `initialize`, from the whole corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example

from vcrf import VCRF
from vcrf.errors import InputError, not_fitted
from vcrf.estimators.file import from_buffer, to_bytes
from vcrf.model import container

_FILE = "model.vcrf"


class VcrfPipe(Pipe):  # type: ignore[misc] # spaCy's pipes are compiled
    """A component around a VCRF. `initialize` trains it; there is nothing to update afterwards.

    Parameters
    ----------
    nlp, name : as spaCy gives them
    params : dict
        Parameters of `VCRF`, by name.
    """

    def __init__(self, nlp: Language, name: str, params: dict[str, Any]) -> None:
        self.vocab, self.name, self.params = nlp.vocab, name, dict(params)
        self.tagger: VCRF | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the model, none before it is trained."""
        return () if self.tagger is None else tuple(map(str, self.tagger.classes_))

    @property
    def label_data(self) -> tuple[str, ...]:
        """The same: nothing is written ahead of the training."""
        return self.labels

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Any = None,  # noqa: ARG002 - spaCy hands on what `spacy init labels` wrote
    ) -> None:
        """Train on all examples."""
        if nlp is not None and nlp.config.get("training", {}).get("max_epochs") == -1:
            raise InputError(
                f"{self.name}: with max_epochs = -1 spaCy shows a component the first examples only, and this one "
                "learns from all of them at once. Set max_epochs = 1 in [training]."
            )
        X: list[list[str]] = []
        y: list[list[str | None]] = []
        for example in get_examples():
            for tokens, tags in zip(*self._sentences_of(example), strict=True):
                if any(tag is not None for tag in tags):
                    X.append(tokens)
                    y.append(tags)
        if not X:
            raise InputError(
                f"{self.name}: the examples have no labels to learn from. Check the corpus of [initialize]."
            )
        self.tagger = self._estimator(y).fit(X, y)

    def __call__(self, doc: Doc) -> Doc:
        """Label a document."""
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Label documents, many at a time."""
        stream = iter(stream)
        while docs := list(islice(stream, batch_size)):
            self._annotate(docs)
            yield from docs

    # ---- files ----

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:  # noqa: ARG002 - there is nothing to leave out
        """The model file; no bytes before training."""
        return b"" if self.tagger is None else to_bytes(self.tagger)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> VcrfPipe:  # noqa: ARG002
        """Inverse of `to_bytes`."""
        self.tagger = from_buffer(data, self.name) if data else None
        return self

    def to_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> None:  # noqa: ARG002
        """Write one model file into the component's directory."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        if self.tagger is not None:
            self.tagger.save(folder / _FILE)

    def from_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> VcrfPipe:  # noqa: ARG002
        """Read what `to_disk` wrote."""
        file = Path(path) / _FILE
        # The file's bytes, not a map of it: spaCy may move the directory.
        self.tagger = from_buffer(bytes(container.map_file(file)), str(file)) if file.exists() else None
        return self

    # ---- for the two components ----

    def _sentences_of(self, example: Example) -> tuple[list[list[str]], list[list[str | None]]]:
        starts = example.get_aligned_sent_starts() if example.reference.has_annotation("SENT_START") else []
        return cut([token.text for token in example.predicted], starts), cut(self._gold(example), starts)

    def _gold(self, example: Example) -> list[str | None]:
        """The label of each token; None where it is not known."""
        raise NotImplementedError

    def _annotate(self, docs: list[Doc]) -> None:
        raise NotImplementedError

    def _estimator(self, y: list[list[str | None]]) -> VCRF:  # noqa: ARG002
        return VCRF(**self.params)

    def _trained(self) -> VCRF:
        if self.tagger is None:
            raise not_fitted(
                f"The component {self.name!r} is not trained yet: call nlp.initialize, or use spacy train."
            )
        return self.tagger


def cut(items: list[Any], starts: Iterable[Any]) -> list[list[Any]]:
    """The items sentence by sentence; `starts` is true (and not -1) where one begins, and may be empty."""
    sentences: list[list[Any]] = []
    flags = list(starts) or [False] * len(items)
    for item, is_start in zip(items, flags, strict=True):
        if not sentences or (is_start is True or is_start == 1):
            sentences.append([])
        sentences[-1].append(item)
    return sentences


def sentences_of(doc: Doc) -> list[list[str]]:
    """Tokens of a document's sentences; of the whole document, where nothing has set sentences."""
    if doc.has_annotation("SENT_START"):
        return [[token.text for token in sentence] for sentence in doc.sents]
    return [[token.text for token in doc]] if len(doc) else []
