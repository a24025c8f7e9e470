"""Column files: one token a line, fields between tabs or blanks, blank lines between sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from sys import intern
from typing import TypeAlias

from vcrf.data.blocks import LineBlock
from vcrf.data.corpus import Sentence
from vcrf.errors import InputError

Splitter: TypeAlias = Callable[[str], list[str]]

# CoNLL-2003 announces documents with such a line; it is no token, and it ends a sentence.
BOUNDARIES = ("-DOCSTART-",)

# Lines of so many fields and more are sentences, if their numbers differ.
_MANY = 4

# Not str.split(): a no-break space belongs to its token.
_split_on_blanks = re.compile(r"[^ \t]+").findall
_KEY_VALUE = re.compile(r"#\s*[\w.:-]+\s*=")


def parse_columns(blocks: Iterable[LineBlock], name: str, sample: str, form: int, tag: int) -> Iterator[Sentence]:
    """Read token and label of each line.

    Parameters
    ----------
    blocks : iterable of Block
    name : str
        The file's name, for sources and messages.
    sample : str
        The first line with data. With a tab in it, the file is split on tabs only, so that tokens may
        contain blanks; otherwise on runs of blanks. Every line must have as many fields as this one.
    form, tag : int
        Columns of token and label, from 0.

    Yields
    ------
    Sentence
        A block of comments only yields none.

    Raises
    ------
    InputError
        At a malformed line, with its number.
    """
    for block in blocks:
        numbered = token_rows(block, name, sample, (form, tag))
        if numbered:
            yield Sentence(
                tuple([intern(row[form]) for _, row in numbered]),
                tuple([intern(row[tag]) for _, row in numbered]),
                f"{name}:{block.first_line + numbered[0][0]}",
            )


def token_rows(block: LineBlock, name: str, sample: str, needed: tuple[int, ...]) -> list[tuple[int, list[str]]]:
    """Fields of each token of a block, with the index of its line; the `needed` ones must not be empty."""
    split_line, is_comment = field_splitter(sample), comment_test(sample)
    numbered = [
        (index, split_line(line)) for index, line in enumerate(block.lines) if not (line[0] == "#" and is_comment(line))
    ]
    _check_fields(numbered, len(split_line(sample)), needed, name, block.first_line)
    return numbered


def field_splitter(sample: str) -> Splitter:
    """Return the function that cuts lines like `sample` into fields."""
    return (lambda line: line.split("\t")) if "\t" in sample else _split_on_blanks


def comment_test(sample: str) -> Callable[[str], bool]:
    """Return the function that says whether a line with `#` is a comment, in a file with lines like `sample`."""
    return _is_comment_with_tabs if "\t" in sample else _is_comment


def _is_comment_with_tabs(line: str) -> bool:
    """Say whether a line with `#` is a comment: it has no tab, unlike the token `#hashtag<TAB>label`."""
    return "\t" not in line


def _is_comment(line: str) -> bool:
    """Say whether a line is `# key = value`: no other is a comment, `# NN` is a token with its label."""
    return _KEY_VALUE.match(line) is not None


def column_number(index: int, n_columns: int, name: str, role: str) -> int:
    """Return the column counted from 0."""
    if not -n_columns <= index < n_columns:
        raise InputError(
            f"{name}: {role}={index}, but the file has {n_columns} columns. "
            f"Pass a number from {-n_columns} to {n_columns - 1}."
        )
    return index % n_columns


def _check_fields(
    numbered: list[tuple[int, list[str]]], n_columns: int, needed: tuple[int, ...], name: str, first_line: int
) -> None:
    for number, row in numbered:
        if len(row) != n_columns:
            hint = "Correct the line; sentences are separated by a blank line."
            if _are_sentences([row for _, row in numbered], n_columns):
                hint = "Is this text without labels? Expected is one word a line, with its label."
            raise InputError(
                f"{name}:{first_line + number}: expected {n_columns} columns as in the first line with data, "
                f"got {len(row)}. {hint}"
            )
        for index in needed:
            if not row[index]:
                raise InputError(
                    f"{name}:{first_line + number}: expected text in column {index}, got an empty field. "
                    "Fill it in, or choose other columns with `form` and `tag`."
                )


def _are_sentences(rows: list[list[str]], n_columns: int) -> bool:
    """Whether lines look like sentences more than like words with columns: most are long and of other numbers."""
    return max(n_columns, *map(len, rows)) > _MANY and 2 * sum(len(row) == n_columns for row in rows) <= len(rows)
