"""Sentences with their raw lines: what is read can be written back byte for byte, with other labels.

A file is streamed: the sentences that are whole so far come in blocks, and nothing is kept after a block.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple, Protocol, TypeAlias, get_args

from vcrf.data.annotations import looks_like_annotations
from vcrf.data.blocks import LineBlock
from vcrf.data.columns import BOUNDARIES, column_number, field_splitter, token_rows
from vcrf.data.conllu import FIELDS, word_rows
from vcrf.data.layout import Layout, conllu_layout, is_conllu
from vcrf.data.pieces import Shard, part_of, text_size, whole_sentences
from vcrf.data.stream import Piece, content_lines, stream_lines, stream_name, stream_pieces
from vcrf.errors import InputError

InputFormat: TypeAlias = Literal["auto", "conllu", "columns", "text"]
OutputFormat: TypeAlias = Literal["conllu", "tsv", "json"]

# What is said of a token beside its label: name and value, an empty one where there is nothing to say. MISC of CoNLL-U
# has those that are not empty, a column file a column for each.
Notes: TypeAlias = Sequence[tuple[str, str]]

# A longer "sentence" is a file without blank lines: it would not fit into constant memory.
MAX_TOKENS = 1_000_000

_BOM = "\ufeff"
_MISC = FIELDS.index("MISC")
# Not str.split(): a no-break space belongs to its token.
split_tokens = re.compile(r"[^ \t\r\n]+").findall


class RawSentence(NamedTuple):
    """Lines of a sentence and the tokens in them.

    Parameters
    ----------
    first_line : int
        Number of the first line in the file, from 1.
    lines : list of str
        All lines with their ends: comments and the blank line that ends the sentence too.
    rows : list of int
        Index in `lines` of the line of each token; empty for plain text, where a line has many.
    tokens : list of str
        Empty for a run of lines without any token.
    """

    first_line: int
    lines: list[str]
    rows: list[int]
    tokens: list[str]


class RawReader(Protocol):
    """A format that can be read line by line, and the output format that labels the lines in place, if any."""

    @property
    def own_format(self) -> OutputFormat | None: ...
    def sentences(self, pieces: Iterable[list[str]], first_line: int = 1) -> Iterator[list[RawSentence]]: ...
    def labelled(self, line: str, label: str, notes: Notes) -> str: ...


class RawFile(NamedTuple):
    """A file opened for labelling.

    Parameters
    ----------
    name : str
        For messages.
    reader : RawReader
    has_bom : bool
        Whether the file begins with a byte order mark.
    blocks : iterator of lists of RawSentence
        All lines of the file in their order.
    conllu : Layout
        Where labels belong when they are written as CoNLL-U.
    """

    name: str
    reader: RawReader
    has_bom: bool
    blocks: Iterator[list[RawSentence]]
    conllu: Layout

    def of_piece(self, piece: Piece) -> RawFile:
        """The sentences of a piece of the file alone; the mark at its beginning is that of the first piece."""
        blocks = self.reader.sentences([piece.lines(self.name)], piece.first_line)
        return self._replace(has_bom=self.has_bom and piece.first_line == 1, blocks=blocks)


def open_raw(
    source: str | os.PathLike[str],
    input_format: InputFormat = "auto",
    tag: str | int | None = None,
    form: int | None = None,
    trained: Layout | None = None,
) -> RawFile:
    """Open a file, or standard input (`-`), for labelling.

    Parameters
    ----------
    source : str or path
        Plain or compressed (.gz, .bz2, .xz).
    input_format : "auto", "conllu", "columns" or "text"
        "auto" looks at the name (.conllu) and the first line with data: ten tab-separated fields that begin with an ID
        are CoNLL-U, a line with a tab is of a column file, anything else is text, one sentence a line.
    tag : str or int, optional
        The column that labels are written to: "upos", "xpos" or a number, or the columns of a bundle ("upos+feats").
        By default that of the training data; a
        column file gets a new last column unless the model was trained on such a file.
    form : int, optional
        Column of the token; by default that of the training data where the format is the same, else 1 in CoNLL-U
        and 0 in a column file.
    trained : Layout, optional
        Columns of the training data.

    Raises
    ------
    InputError
        When the format cannot be told, and, while reading, at a malformed line.
    """
    return _opened(stream_name(source), stream_lines(source), input_format, _Wanted(tag, form, trained))


def open_pieces(
    source: str | os.PathLike[str],
    input_format: InputFormat = "auto",
    tag: str | int | None = None,
    form: int | None = None,
    trained: Layout | None = None,
    shard: Shard | None = None,
) -> tuple[RawFile, Iterator[Piece]]:
    """Do as `open_raw`, but leave the sentences in pieces, each of which can be labelled by itself: `RawFile.of_piece`.

    With a shard they are those of this part of the file.
    """
    name = stream_name(source)
    size = 0 if shard is None else text_size(source)
    pieces, head = stream_pieces(source), []
    for piece in pieces:
        head.append(piece)
        if _has_data(piece.lines(name)):
            break
    lines = [line for piece in head for line in piece.lines(name)]
    file = _opened(name, iter([lines]), input_format, _Wanted(tag, form, trained))
    if file.has_bom:
        head[0] = head[0]._replace(data=head[0].data.removeprefix(_BOM.encode()))
    is_line = isinstance(file.reader, TextReader)
    whole = whole_sentences(chain(head, pieces), is_line)
    return file._replace(blocks=iter(())), whole if shard is None else part_of(whole, shard.bounds(size), is_line)


def raw_content(
    content: bytes, name: str, input_format: InputFormat = "auto", trained: Layout | None = None
) -> RawFile:  # fmt: skip
    """Text that is in memory, opened as `open_raw` opens a file; `name` is for messages."""
    return _opened(name, content_lines(content, name), input_format, _Wanted(None, None, trained))


def _opened(name: str, pieces: Iterator[list[str]], input_format: InputFormat, wanted: _Wanted) -> RawFile:
    if input_format not in get_args(InputFormat):
        raise InputError(f"`input_format={input_format!r}`: expected one of {', '.join(get_args(InputFormat))}.")
    head = _head(pieces)
    has_bom = bool(head) and head[0].startswith(_BOM)
    if has_bom:
        head[0] = head[0][1:]
    reader = _reader(name, head, input_format, wanted)
    # In a column file a number says which of its own columns is meant.
    is_own_number = isinstance(reader, ColumnReader) and isinstance(wanted.tag, int)
    conllu = _conllu_columns(wanted._replace(tag=None) if is_own_number else wanted)
    return RawFile(name, reader, has_bom, reader.sentences(chain([head], pieces)), conllu)


def check_written_column(file: RawFile, has_probabilities: bool, output_format: OutputFormat | None) -> None:
    """Refuse labels over the ID or the token of CoNLL-U, or in MISC together with probabilities.

    A format of None is that of the input.
    """
    if (output_format or file.reader.own_format or "conllu") != "conllu":
        return
    layout = file.reader.layout if isinstance(file.reader, ConlluReader) else file.conllu
    tag = _MISC if _MISC in layout.tags else layout.tag
    if FIELDS[tag] in ("ID", "FORM"):
        raise InputError(
            f"`tag={tag}`: labels would overwrite {FIELDS[tag]}. Pass another column: `tag='upos'`, `tag='xpos'` or a "
            "number."
        )
    if tag == _MISC and has_probabilities:
        raise InputError(f"`tag={tag}`: probabilities are written to MISC, labels cannot be there too.")


class _Wanted(NamedTuple):
    tag: str | int | None
    form: int | None
    trained: Layout | None

    def form_in(self, file_format: str) -> int | None:
        if self.form is None and self.trained is not None and self.trained.format == file_format:
            return self.trained.form
        return self.form


def _head(pieces: Iterator[list[str]]) -> list[str]:
    """Lines up to a piece that has a line with data."""
    head: list[str] = []
    for piece in pieces:
        head += piece
        if _has_data(piece):
            break
    return head


def _has_data(lines: list[str]) -> bool:
    return any(not _is_blank(line) and not line.lstrip(_BOM).startswith("#") for line in lines)


def _reader(name: str, head: list[str], input_format: InputFormat, wanted: _Wanted) -> RawReader:
    data = [line.rstrip("\r\n") for line in head if not _is_blank(line) and not line.startswith(BOUNDARIES)]
    sample = next((line for line in data if not line.startswith("#")), data[0] if data else "")
    if input_format == "auto":
        input_format = _guess(name, head, sample)
    if input_format == "text":
        return TextReader(name)
    if input_format == "conllu":
        return ConlluReader(name, _conllu_columns(wanted))
    return ColumnReader(name, sample, _columns(name, sample, wanted))


def _guess(name: str, head: list[str], sample: str) -> InputFormat:
    if is_conllu(name, sample):
        return "conllu"
    if looks_like_annotations(name) and sample.lstrip()[:1] in ("[", "{"):
        raise InputError(
            f"{name}: JSON, as annotation tools write it: expected text, CoNLL-U or columns. Write its sentences one a "
            "line, or pass --input-format text to label the lines as they are."
        )
    if "\t" in sample or any(line.startswith(BOUNDARIES) for line in head):
        return "columns"
    _check_is_text(name, head)
    return "text"


def _check_is_text(name: str, head: list[str]) -> None:
    """Refuse to guess between text and a column file with blanks: equal numbers of fields, then a blank line."""
    end = next((i for i, line in enumerate(head) if _is_blank(line)), None)
    counts = [len(split_tokens(line)) for line in head[:end]]
    if end is not None and len(counts) > 1 and counts[0] > 1 and len(set(counts)) == 1:
        raise InputError(
            f"{name}:1: expected to see the format, got {len(counts)} lines of {counts[0]} words and a blank line: "
            "that is text, or a column file. Pass --input-format text or --input-format columns."
        )


def _conllu_columns(wanted: _Wanted) -> Layout:
    tag: str | int = "upos" if wanted.tag is None else wanted.tag
    if wanted.tag is None and wanted.trained is not None and wanted.trained.format == "conllu":
        tag = wanted.trained.bundle or wanted.trained.tag
    return conllu_layout(tag, wanted.form_in("conllu"))


def _columns(name: str, sample: str, wanted: _Wanted) -> Layout:
    n = len(field_splitter(sample)(sample))
    form = column_number(wanted.form_in("columns") or 0, n, name, "form") if sample else 0
    return Layout("columns", form, _column_to_write(name, n, wanted), n)


def _column_to_write(name: str, n_columns: int, wanted: _Wanted) -> int:
    """Return the column of the label; `n_columns` means a new one."""
    if wanted.tag is not None:
        if wanted.tag == n_columns:
            return n_columns
        if isinstance(wanted.tag, str) and wanted.tag != "upos":
            raise InputError(f"{name}: `tag={wanted.tag!r}`, but a column file has no named columns. Pass a number.")
        return column_number(-1 if isinstance(wanted.tag, str) else wanted.tag, n_columns, name, "tag")
    if wanted.trained is None or wanted.trained.format != "columns":
        return n_columns
    if n_columns in (wanted.trained.n_columns, wanted.trained.tag):
        return wanted.trained.tag
    raise InputError(
        f"{name}: expected {wanted.trained.n_columns} columns as in the training data, labels in column "
        f"{wanted.trained.tag}, or the columns before it; got {n_columns}. Pass --tag {n_columns} to add the label as "
        "a new column."
    )


# ------------------------------------------------------------------------------------ the three formats


@dataclass(frozen=True)
class TextReader:
    """Plain text: a sentence a line, tokens between blanks or tabs."""

    name: str
    own_format: OutputFormat | None = None

    def sentences(self, pieces: Iterable[list[str]], first_line: int = 1) -> Iterator[list[RawSentence]]:
        number = first_line
        for piece in pieces:
            block = [RawSentence(i, [line], [], split_tokens(line)) for i, line in enumerate(piece, number)]
            for sentence in block:
                if len(sentence.tokens) > MAX_TOKENS:
                    raise _too_long(self.name, sentence.first_line)
            number += len(piece)
            yield block

    def labelled(self, line: str, label: str, notes: Notes) -> str:
        raise NotImplementedError("Plain text has no place for labels: write another format.")


@dataclass(frozen=True)
class ConlluReader:
    """CoNLL-U: ten fields a word; ranges (1-2), empty nodes (1.1) and comments stay as they are."""

    name: str
    layout: Layout
    own_format: OutputFormat | None = "conllu"

    def sentences(self, pieces: Iterable[list[str]], first_line: int = 1) -> Iterator[list[RawSentence]]:
        return _grouped(pieces, first_line, self.name, (), self._parse)

    def _parse(self, block: LineBlock) -> list[tuple[int, str]]:
        form = self.layout.form
        rows = [(index, fields[form]) for index, fields in word_rows(block, self.name)]
        for index, token in rows:
            if not token:
                raise InputError(
                    f"{self.name}:{block.first_line + index}: expected a token in {FIELDS[form]}, got an empty field. "
                    "Fill it in, or write '_'."
                )
        return rows

    def labelled(self, line: str, label: str, notes: Notes) -> str:
        fields = line.split("\t")
        # The last field has the line's end.
        fields[_MISC], end = _cut_end(fields[_MISC])
        for column, value in self.layout.fields_of(label):
            fields[column] = value
        fields[_MISC] = with_notes(fields[_MISC], notes)
        return "\t".join(fields) + end


@dataclass(frozen=True)
class ColumnReader:
    """Column file: fields between tabs, or between blanks; the label replaces a field or is added as the last."""

    name: str
    sample: str
    layout: Layout
    own_format: OutputFormat | None = "tsv"

    def sentences(self, pieces: Iterable[list[str]], first_line: int = 1) -> Iterator[list[RawSentence]]:
        return _grouped(pieces, first_line, self.name, BOUNDARIES, self._parse)

    def _parse(self, block: LineBlock) -> list[tuple[int, str]]:
        rows = token_rows(block, self.name, self.sample, (self.layout.form,))
        return [(index, fields[self.layout.form]) for index, fields in rows]

    def labelled(self, line: str, label: str, notes: Notes) -> str:
        body, end = _cut_end(line)
        separator = "\t" if "\t" in self.sample else " "
        if self.layout.tag == self.layout.n_columns:
            body = f"{body}{separator}{label}"
        else:
            first, last = self._span(body)
            body = body[:first] + label + body[last:]
        return separator.join([body, *(value or "_" for _, value in notes)]) + end

    def _span(self, body: str) -> tuple[int, int]:
        """Where the field of the label begins and ends in a line."""
        pattern = r"[^\t]*(?:\t|$)" if "\t" in self.sample else r"[^ \t]+"
        found = next(match for i, match in enumerate(re.finditer(pattern, body)) if i == self.layout.tag)
        return found.start(), found.end() - found[0].endswith("\t")


# What `tag` promises in MISC: said of labels that are about to be replaced.
_is_mark = re.compile(r"Check=Yes|(?:Labels|Spans)=.*").fullmatch
# What separates labels, items of MISC, and names from values.
_ESCAPES = str.maketrans({mark: f"%{ord(mark):02X}" for mark in "%,|=: "})


def escaped(label: str) -> str:
    """A label inside a list in a field: `,` is %2C, and likewise for `%`, `|`, `=`, `:` and blanks."""
    return label.translate(_ESCAPES)


def with_notes(misc: str, notes: Notes) -> str:
    """Field MISC with `Prob=0.987` and the like, in place of what an earlier `tag` wrote; what is empty is left out."""
    names = tuple(f"{name}=" for name, _ in notes)
    items = [] if misc in ("_", "") else misc.split("|")
    others = [item for item in items if not (names and item.startswith(names)) and not _is_mark(item)]
    if not notes and len(others) == len(items):
        return misc  # byte for byte
    return "|".join([*others, *(f"{name}={value}" for name, value in notes if value)]) or "_"


class _Parse(Protocol):
    """Index of the line, and token, of each token of a block of lines without their ends."""

    def __call__(self, block: LineBlock, /) -> list[tuple[int, str]]: ...


def _grouped(
    pieces: Iterable[list[str]], first_line: int, name: str, boundaries: tuple[str, ...], parse: _Parse
) -> Iterator[list[RawSentence]]:
    """Cut at blank lines, which stay with the sentence before them; a boundary line stands alone."""
    held: list[str] = []
    number = first_line - 1
    for piece in pieces:
        block: list[RawSentence] = []
        for line in piece:
            number += 1
            is_boundary = line.startswith(boundaries)
            if is_boundary and held:
                block.append(_sentence(held, number - len(held), parse))
                held = []
            held.append(line)
            if is_boundary or _is_blank(line):
                is_empty = len(held) == 1
                first = number - len(held) + 1
                block.append(RawSentence(first, held, [], []) if is_empty else _sentence(held, first, parse))
                held = []
            elif len(held) > MAX_TOKENS:
                raise _too_long(name, number - len(held) + 1)
        yield block
    if held:
        yield [_sentence(held, number - len(held) + 1, parse)]


def _sentence(lines: list[str], first_line: int, parse: _Parse) -> RawSentence:
    content = "".join(lines)
    bodies = content.split("\n") if "\r" not in content else [_cut_end(line)[0] for line in lines]
    while _is_blank(bodies[-1]):
        bodies.pop()
    rows = parse(LineBlock(first_line, bodies))
    return RawSentence(first_line, lines, [index for index, _ in rows], [token for _, token in rows])


def _is_blank(line: str) -> bool:
    return not line or line.isspace()


def _cut_end(line: str) -> tuple[str, str]:
    if line[-2:] == "\r\n":
        return line[:-2], "\r\n"
    return (line[:-1], "\n") if line[-1:] == "\n" else (line, "")


def _too_long(name: str, line: int) -> InputError:
    return InputError(
        f"{name}:{line}: expected sentences, got one of more than {MAX_TOKENS:,} tokens. In CoNLL-U and column files a "
        "blank line ends a sentence, in text each line is one."
    )
