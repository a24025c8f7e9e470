"""Label spaCy's DocBin files."""

from __future__ import annotations

from pathlib import Path

from vcrf.data.docbin import ATTRIBUTES, is_docbin, read_docs, sentences_of, trained_tag, write_docs
from vcrf.data.pieces import Shard
from vcrf.errors import InputError
from vcrf.labelling.tagger import Tagger

# What spaCy takes for `pos_`.
_UPOS = frozenset(
    [
        "ADJ",
        "ADP",
        "ADV",
        "AUX",
        "CCONJ",
        "CONJ",
        "DET",
        "EOL",
        "INTJ",
        "NOUN",
        "NUM",
        "PART",
        "PRON",
        "PROPN",
        "PUNCT",
        "SCONJ",
        "SPACE",
        "SYM",
        "VERB",
        "X",
    ]
)


def label_docbin(
    tagger: Tagger, path: Path, output: Path | None, tag: str | int | None, shard: Shard | None = None
) -> int:  # fmt: skip
    """Write the documents, or a part of them, with labels, and return their number.

    As `tag_` if the model was trained on that, or its labels are not spaCy's for `pos_`.
    """
    if output is None or not is_docbin(output):
        raise InputError(f"{path}: documents of spaCy are written to a .spacy file. Pass --output FILE.spacy.")
    if tag is not None and tag not in ATTRIBUTES:
        raise InputError(f"{path}: --tag of a .spacy file is upos (pos_) or xpos (tag_), got {tag}.")
    is_upos = set(tagger.classes_) <= _UPOS
    if tag == "upos" and not is_upos:
        raise InputError(f"{path}: spaCy takes universal parts of speech for pos_ only. Pass --tag xpos.")
    if tag is None:
        facts = tagger.model_.facts
        tag = trained_tag(facts.layout if facts else None) if is_upos else "xpos"
    attribute = ATTRIBUTES[str(tag)]
    docs = read_docs(path)
    docs = docs if shard is None else list(shard.select(docs))
    spans = [span for doc in docs for span in sentences_of(doc)]
    found = tagger.predict([[token.text for token in span] for span in spans])
    for span, labels in zip(spans, found, strict=True):
        for token, label in zip(span, labels, strict=True):
            setattr(token, attribute, str(label))
    write_docs(docs, output)
    return len(docs)
