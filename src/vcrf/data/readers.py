"""`read_corpus`: any supported file to a Corpus."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from vcrf.data.blocks import select_split, split_blocks
from vcrf.data.columns import BOUNDARIES, parse_columns
from vcrf.data.conllu import FIELDS, FORM_FIELD, TAG_FIELDS, looks_like_conllu, parse_conllu
from vcrf.data.corpus import Corpus, Sentence
from vcrf.data.text import Source, Text, compression_suffix, read_text
from vcrf.errors import InputError

Format: TypeAlias = Literal["conllu", "columns"]


def read_corpus(
    path: Source,
    tag: str | int = "upos",
    split: str | Collection[str] | None = None,
    format: Format | None = None,  # noqa: A002 - the word users know, and nothing here needs the builtin
    form: int | None = None,
) -> Corpus:
    r"""Read sentences with their labels.

    Parameters
    ----------
    path : str, path, or open stream
        A CoNLL-U or column file, plain or compressed (.gz, .bz2, .xz); `-` is standard input.
    tag : str or int
        Where the label is: "upos", "xpos", or the number of a column from 0, negative from the end.
        A column file has no UPOS: there the default means the last column.
    split : str or collection of str, optional
        Keep the sentences whose comment `# split = NAME` has this name, or one of these.
    format : "conllu" or "columns", optional
        By default guessed from the name (.conllu), otherwise from the first line with data.
    form : int, optional
        Column of the token; by default 1 in CoNLL-U and 0 in a column file.

    Returns
    -------
    Corpus
        At least one sentence, in the file's order.

    Raises
    ------
    InputError
        When the file cannot be read, a line is malformed, a label is missing, or no sentence is found.

    Examples
    --------
    >>> import io
    >>> read_corpus(io.StringIO("the DET\ncat NOUN\n"))
    Corpus(1 sentences, 2 tokens, 2 labels, first at <stream>:1)
    """
    _check_format(format)
    text = read_text(path)
    sample = _first_data_line(text)
    is_conllu = _is_conllu(text.name, sample) if format is None else format == "conllu"
    sentences = _conllu(text, tag, split, form) if is_conllu else _columns(text, sample, tag, split, form)
    corpus = Corpus.from_sentences(sentences)
    if not len(corpus):
        raise _no_sentences(text.name)
    return corpus


def _check_format(format_name: str | None) -> None:
    if format_name is not None and format_name not in get_args(Format):
        raise InputError(
            f"format={format_name!r}: expected one of {', '.join(get_args(Format))}. Leave it out to guess."
        )


def _no_sentences(name: str) -> InputError:
    return InputError(
        f"{name}: no sentences. Expected CoNLL-U, or a token and its label on each line; got no such line. "
        "Check that this is the right file."
    )


def _first_data_line(text: Text) -> str:
    """Return the first line that is surely no comment; if all begin with `#`, the first of those."""
    first = ""
    for block in split_blocks(text.content, BOUNDARIES):
        for line in block.lines:
            if not line.startswith("#"):
                return line
            first = first or line
    if not first:
        raise _no_sentences(text.name)
    return first


def _is_conllu(name: str, sample: str) -> bool:
    stem = name.removesuffix(Path(name).suffix) if compression_suffix(name) else name
    return stem.lower().endswith(".conllu") or looks_like_conllu(sample)


def _conllu(text: Text, tag: str | int, split: str | Collection[str] | None, form: int | None) -> Iterator[Sentence]:
    tag_field = _conllu_field(TAG_FIELDS.get(tag, tag) if isinstance(tag, str) else tag, "tag")
    form_field = _conllu_field(FORM_FIELD if form is None else form, "form")
    blocks = split_blocks(text.content)
    chosen = blocks if split is None else select_split(blocks, split, text.name)
    return parse_conllu(chosen, text.name, form_field, tag_field)


def _conllu_field(field: str | int, role: str) -> int:
    """Return the field counted from 0."""
    if isinstance(field, str) or not -len(FIELDS) <= field < len(FIELDS):
        names = '"upos", "xpos" or ' if role == "tag" else ""
        raise InputError(
            f"{role}={field!r}: expected {names}a number from {-len(FIELDS)} to {len(FIELDS) - 1}, "
            f"for the {len(FIELDS)} fields of CoNLL-U ({', '.join(FIELDS)})."
        )
    return field % len(FIELDS)


def _columns(
    text: Text, sample: str, tag: str | int, split: str | Collection[str] | None, form: int | None
) -> Iterator[Sentence]:
    blocks = split_blocks(text.content, BOUNDARIES)
    chosen = blocks if split is None else select_split(blocks, split, text.name)
    return parse_columns(chosen, text.name, sample, 0 if form is None else form, _column_tag(tag, text.name))


def _column_tag(tag: str | int, name: str) -> int:
    if isinstance(tag, int):
        return tag
    if tag == "upos":
        return -1
    raise InputError(
        f"{name}: tag={tag!r}, but a column file has no named columns. "
        "Pass the column's number (0 is the first, -1 the last), or format='conllu' if it is CoNLL-U."
    )
