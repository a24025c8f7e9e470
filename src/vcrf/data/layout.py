"""Where a file has its tokens and labels: the format, and the columns in it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from vcrf.data.columns import column_number, field_splitter
from vcrf.data.conllu import FIELDS, FORM_FIELD, TAG_FIELDS, looks_like_conllu
from vcrf.data.text import compression_suffix
from vcrf.errors import InputError


class Layout(NamedTuple):
    """Columns of a file.

    Parameters
    ----------
    format : "conllu" or "columns"
    form, tag : int
        Columns of token and label, from 0.
    n_columns : int
        Columns a line; 10 in CoNLL-U.
    """

    format: str
    form: int
    tag: int
    n_columns: int


def is_conllu(name: str, sample: str) -> bool:
    """Say whether a file is CoNLL-U, by its name or its first line with data."""
    stem = name.removesuffix(Path(name).suffix) if compression_suffix(name) else name
    return stem.lower().endswith(".conllu") or looks_like_conllu(sample)


def conllu_layout(tag: str | int, form: int | None = None) -> Layout:
    """Layout of a CoNLL-U file for "upos", "xpos" or a field's number."""
    tag_field = _conllu_field(TAG_FIELDS.get(tag, tag) if isinstance(tag, str) else tag, "tag")
    return Layout("conllu", _conllu_field(FORM_FIELD if form is None else form, "form"), tag_field, len(FIELDS))


def column_layout(name: str, sample: str, tag: str | int, form: int | None = None) -> Layout:
    """Layout of a column file whose first line with data is `sample`; the tag "upos" means the last column."""
    n_columns = len(field_splitter(sample)(sample))
    if n_columns < 2:
        raise InputError(
            f"{name}: expected at least two columns, token and label, got {n_columns}. "
            "Separate them by a tab or a blank."
        )
    form_column = column_number(0 if form is None else form, n_columns, name, "form")
    return Layout("columns", form_column, column_number(_column_tag(tag, name), n_columns, name, "tag"), n_columns)


def _conllu_field(field: str | int, role: str) -> int:
    """Return the field counted from 0."""
    if isinstance(field, str) or not -len(FIELDS) <= field < len(FIELDS):
        names = '"upos", "xpos" or ' if role == "tag" else ""
        raise InputError(
            f"{role}={field!r}: expected {names}a number from {-len(FIELDS)} to {len(FIELDS) - 1}, "
            f"for the {len(FIELDS)} fields of CoNLL-U ({', '.join(FIELDS)})."
        )
    return field % len(FIELDS)


def _column_tag(tag: str | int, name: str) -> int:
    if isinstance(tag, int):
        return tag
    if tag == "upos":
        return -1
    raise InputError(
        f"{name}: `tag={tag!r}`, but a column file has no named columns. "
        "Pass the column's number (0 is the first, -1 the last), or `format='conllu'` if it is CoNLL-U."
    )
