"""CoNLL-U: ten tab-separated fields a word, `#` comments, blank lines between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from sys import intern

from vcrf.data.blocks import LineBlock
from vcrf.data.bundles import join_columns
from vcrf.data.corpus import Sentence
from vcrf.errors import InputError

FIELDS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
TAG_FIELDS = {"upos": FIELDS.index("UPOS"), "xpos": FIELDS.index("XPOS")}
FORM_FIELD = FIELDS.index("FORM")

_N_FIELDS = len(FIELDS)
_ANY_ID = re.compile(r"[0-9]+(?:[-.][0-9]+)?")
_SKIPPED_ID = re.compile(r"[0-9]+[-.][0-9]+")


def looks_like_conllu(line: str) -> bool:
    """Say whether a line has ten tab-separated fields that begin with an ID (1, 1-2 or 1.1)."""
    fields = line.split("\t")
    return len(fields) == _N_FIELDS and _ANY_ID.fullmatch(fields[0]) is not None


def parse_conllu(
    blocks: Iterable[LineBlock], name: str, form: int, tag: int, tags: tuple[int, ...] = ()
) -> Iterator[Sentence]:
    """Read the words of each block; multiword ranges (1-2) and empty nodes (1.1) are left out.

    Parameters
    ----------
    blocks : iterable of Block
    name : str
        The file's name, for sources and messages.
    form, tag : int
        Fields of token and label, 0 to 9.
    tags : tuple of int
        Fields of a label that is a bundle of them; none if it is that of `tag` alone.

    Yields
    ------
    Sentence
        A block of comments only yields none.

    Raises
    ------
    InputError
        At a malformed line, with its number.
    """
    known: dict[tuple[str, ...], str] = {}
    for block in blocks:
        rows = [line.split("\t") for line in block.lines if line[0] != "#"]
        if not rows:
            continue
        source = f"{name}:{_line_of(block, 0)}"
        _check_field_counts(rows, block, name)
        if not _ids_are_sequential(rows):
            rows = _words(rows, block, name)
        tokens = tuple([intern(row[form]) for row in rows])
        labels = _bundles(rows, tags, known, block, name) if tags else tuple([intern(row[tag]) for row in rows])
        if "" in tokens or (not tags and ("" in labels or "_" in labels)):
            _raise_missing(block, name, form, None if tags else tag)
        yield Sentence(tokens, labels, source)


def _bundles(
    rows: list[list[str]], tags: tuple[int, ...], known: dict[tuple[str, ...], str], block: LineBlock, name: str
) -> tuple[str, ...]:
    """The bundle of each word; `known` are those of fields that were seen before."""
    names, labels = [FIELDS[tag] for tag in tags], []
    for word, row in enumerate(rows):
        values = tuple([row[tag] for tag in tags])
        if values not in known:
            try:
                known[values] = intern(join_columns(names, values))
            except InputError as error:
                raise InputError(f"{name}:{_line_of_word(block, word)}: {error}") from None
        labels.append(known[values])
    return tuple(labels)


def _line_of_word(block: LineBlock, word: int) -> int:
    """The line number of a word of a block, from 0; ranges and empty nodes are none."""
    numbered = enumerate(block.lines, block.first_line)
    numbers = [i for i, line in numbered if line[0] != "#" and not _SKIPPED_ID.fullmatch(line.split("\t", 1)[0])]
    return numbers[word]


def word_rows(block: LineBlock, name: str) -> list[tuple[int, list[str]]]:
    """Fields of each word of a block, with the index of its line; nothing is asked of the labels.

    Raises
    ------
    InputError
        At a malformed line, or a word without a form.
    """
    numbered = [(index, line.split("\t")) for index, line in enumerate(block.lines) if line[0] != "#"]
    rows = [row for _, row in numbered]
    _check_field_counts(rows, block, name)
    if rows and not _ids_are_sequential(rows):
        _words(rows, block, name)
        numbered = [(index, row) for index, row in numbered if not _SKIPPED_ID.fullmatch(row[0])]
    return numbered


def _line_of(block: LineBlock, row: int) -> int:
    """Return the line number of the block's row-th line that is no comment."""
    numbers = [number for number, line in enumerate(block.lines, block.first_line) if line[0] != "#"]
    return numbers[row]


def _check_field_counts(rows: list[list[str]], block: LineBlock, name: str) -> None:
    for index, row in enumerate(rows):
        if len(row) != _N_FIELDS:
            hint = (
                "Write the missing fields as '_'."
                if len(row) > 1
                else "If the file is not CoNLL-U, pass `format='columns'`."
            )
            raise InputError(
                f"{name}:{_line_of(block, index)}: expected {_N_FIELDS} tab-separated fields of CoNLL-U, "
                f"got {len(row)}. {hint}"
            )


def _ids_are_sequential(rows: list[list[str]]) -> bool:
    """Say whether the IDs are 1, 2, 3, ...: the common case, with nothing to leave out."""
    return [row[0] for row in rows] == [str(number) for number in range(1, len(rows) + 1)]


def _words(rows: list[list[str]], block: LineBlock, name: str) -> list[list[str]]:
    words: list[list[str]] = []
    for index, row in enumerate(rows):
        if _SKIPPED_ID.fullmatch(row[0]):
            continue
        if row[0] != str(len(words) + 1):
            # Most often two sentences run into each other; read as one they would train a wrong model.
            raise InputError(
                f"{name}:{_line_of(block, index)}: expected ID {len(words) + 1} (or a range like 1-2, or an "
                f"empty node like 1.1), got {row[0]!r}. "
                "Number the words of a sentence from 1 and leave a blank line after each sentence."
            )
        words.append(row)
    if not words:
        raise InputError(
            f"{name}:{_line_of(block, 0)}: expected a sentence with words, got only ranges and empty nodes. "
            "Add the words or delete the sentence."
        )
    return words


def _raise_missing(block: LineBlock, name: str, form: int, tag: int | None) -> None:
    """Find the word without form or label and raise; `_` is a form but not a label."""
    for number, line in enumerate(block.lines, block.first_line):
        fields = line.split("\t")
        if line[0] == "#" or _SKIPPED_ID.fullmatch(fields[0]):
            continue
        if not fields[form]:
            raise InputError(
                f"{name}:{number}: expected a token in {FIELDS[form]}, got an empty field. Fill it in, or write '_'."
            )
        if tag is not None and fields[tag] in ("", "_"):
            raise InputError(
                f"{name}:{number}: expected a label in {FIELDS[tag]}, got {fields[tag]!r}. {_other_tag(fields, tag)}"
            )


def _other_tag(fields: list[str], tag: int) -> str:
    """Advise the tag field that does have a label on this line."""
    for other, index in TAG_FIELDS.items():
        if index != tag and fields[index] not in ("", "_"):
            return f"{FIELDS[index]} has {fields[index]!r} here: pass `tag={other!r}`, or fill in the label."
    return (
        "Neither UPOS nor XPOS has one here: fill in the label, or pass as `tag` the number of another field, 0 to 9."
    )
