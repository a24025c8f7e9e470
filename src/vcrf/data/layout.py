"""Where a file has its tokens and labels: the format, and the columns in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from vcrf.data.bundles import EMPTY, FEATS, split_columns
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
    tags : tuple of int
        The columns of a label that is a bundle of them; `tag` is the first. None if a label is one column.
    """

    format: str
    form: int
    tag: int
    n_columns: int
    tags: tuple[int, ...] = ()

    @property
    def bundle(self) -> str:
        """Names of the columns of a bundle, as in "UPOS+FEATS"; "" if a label is one column."""
        return "+".join(FIELDS[tag] for tag in self.tags)

    def has_features(self, labels: Iterable[str | int]) -> bool | None:
        """Whether some of the labels have features in FEATS; None if that is no part of them."""
        field = FIELDS.index(FEATS)
        if field not in self.tags:
            return None
        return any(dict(self.fields_of(str(label)))[field] != EMPTY for label in labels)

    def fields_of(self, label: str) -> list[tuple[int, str]]:
        """What a label writes to which column; InputError where it is no bundle of the columns."""
        if not self.tags:
            return [(self.tag, label)]
        return list(zip(self.tags, split_columns(label, [FIELDS[tag] for tag in self.tags]), strict=True))


def is_conllu(name: str, sample: str) -> bool:
    """Say whether a file is CoNLL-U, by its name or its first line with data."""
    stem = name.removesuffix(Path(name).suffix) if compression_suffix(name) else name
    return stem.lower().endswith(".conllu") or looks_like_conllu(sample)


def conllu_layout(tag: str | int, form: int | None = None) -> Layout:
    """Layout of a CoNLL-U file for "upos", "xpos", a field's number, or a bundle like "upos+feats"."""
    if isinstance(tag, str) and ("+" in tag or tag.upper() == FEATS):
        tags = _bundle_fields(tag)
        return Layout("conllu", _conllu_field(FORM_FIELD if form is None else form, "form"), tags[0], len(FIELDS), tags)
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
        more = ', or a bundle of these like "upos+feats"' if role == "tag" else ""
        raise InputError(
            f"{role}={field!r}: expected {names}a number from {-len(FIELDS)} to {len(FIELDS) - 1}, "
            f"for the {len(FIELDS)} fields of CoNLL-U ({', '.join(FIELDS)}){more}."
        )
    return field % len(FIELDS)


def _bundle_fields(tag: str) -> tuple[int, ...]:
    """Fields of a bundle, by their names or numbers between `+`."""
    found = []
    for part in tag.split("+"):
        name = part.strip().upper()
        number = int(name) if name.isdecimal() else FIELDS.index(name) if name in FIELDS else -1
        if not 1 < number < len(FIELDS):
            raise InputError(
                f"`tag={tag!r}`: {part!r} is no column of labels. Join names of columns by `+`, as in "
                f"`tag='upos+feats'`: {', '.join(name.lower() for name in FIELDS[2:])}."
            )
        found.append(number)
    if len(set(found)) < len(found):
        raise InputError(f"`tag={tag!r}` has a column twice. Name each once.")
    return tuple(found)


def _column_tag(tag: str | int, name: str) -> int:
    if isinstance(tag, int):
        return tag
    if tag == "upos":
        return -1
    raise InputError(
        f"{name}: `tag={tag!r}`, but a column file has no named columns. "
        "Pass the column's number (0 is the first, -1 the last), or `format='conllu'` if it is CoNLL-U."
    )
