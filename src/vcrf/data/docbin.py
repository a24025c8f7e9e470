"""spaCy's DocBin files (.spacy), with the extra `spacy`: sentences in, labels out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vcrf.data.conllu import TAG_FIELDS
from vcrf.data.corpus import Sentence
from vcrf.data.layout import Layout
from vcrf.errors import InputError, MissingExtraError, missing_extra
from vcrf.files import replacing

SUFFIX = ".spacy"
INSTALL = missing_extra("A .spacy file", "spaCy", "spacy")
# spaCy's attribute of a column of CoNLL-U.
ATTRIBUTES = {"upos": "pos_", "xpos": "tag_"}


def is_docbin(source: object) -> bool:
    """Whether a source is a .spacy file, by its name."""
    return isinstance(source, (str, os.PathLike)) and Path(source).suffix == SUFFIX


def trained_tag(trained: Layout | None) -> str:
    """Where a model's labels are, if it was trained on CoNLL-U or a .spacy file: "xpos", or "upos" like any other."""
    is_xpos = trained is not None and (trained.format, trained.tag) == ("conllu", TAG_FIELDS["xpos"])
    return "xpos" if is_xpos else "upos"


def read_docs(path: str | os.PathLike[str]) -> list[Any]:
    """The documents of a file."""
    try:
        from spacy.tokens import DocBin

        import spacy
    except ImportError as error:
        raise MissingExtraError(INSTALL) from error
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}. Check the path and the permissions.") from error
    try:
        return list(DocBin().from_bytes(data).get_docs(spacy.blank("xx").vocab))
    except Exception as error:  # noqa: BLE001 - whatever zlib, msgpack and spaCy say of other bytes
        raise InputError(
            f"{path}: not a DocBin of spaCy: {type(error).__name__}. Write it with `spacy convert` or DocBin.to_disk."
        ) from None


def write_docs(docs: list[Any], path: Path) -> None:
    """Write documents, whole or not at all."""
    from spacy.tokens import DocBin

    with replacing(path) as file:
        file.write(DocBin(docs=docs, store_user_data=True).to_bytes())


def sentences_of(doc: Any) -> list[Any]:
    """The sentences of a document as spans; the whole of it where none are set."""
    return list(doc.sents) if doc.has_annotation("SENT_START") else ([doc[:]] if len(doc) else [])


def read_docbin(path: str | os.PathLike[str], tag: str | int | None) -> Iterator[Sentence]:
    """Sentences with their labels: "upos" (the default) is `pos_`, "xpos" `tag_`.

    Raises
    ------
    InputError
        With the document and token, when a label is missing.
    """
    attribute = _attribute(path, tag)
    for i, doc in enumerate(read_docs(path), 1):
        for span in sentences_of(doc):
            labels = [getattr(token, attribute) for token in span]
            if "" in labels:
                raise InputError(
                    f"{path}: document {i}, token {span.start + labels.index('')} has no {attribute}. Choose another "
                    f"label (--tag {'xpos' if attribute == 'pos_' else 'upos'}), or annotate it."
                )
            yield Sentence(tuple(token.text for token in span), tuple(labels), f"{path}:{i}")


def _attribute(path: object, tag: str | int | None) -> str:
    found = ATTRIBUTES.get("upos" if tag is None else str(tag))
    if found is None:
        raise InputError(f"{path}: `tag` of a .spacy file is 'upos' (pos_) or 'xpos' (tag_), got {tag!r}.")
    return found
