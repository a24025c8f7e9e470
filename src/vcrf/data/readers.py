"""`read_corpus`: any supported file to a Corpus."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from vcrf.data.annotations import looks_like_annotations, parse_annotations
from vcrf.data.answers import accepted_blocks, say_left_out
from vcrf.data.blocks import LineBlock, select_split, split_blocks
from vcrf.data.columns import BOUNDARIES, field_splitter, parse_columns
from vcrf.data.conllu import FIELDS, parse_conllu
from vcrf.data.corpus import Corpus, Sentence
from vcrf.data.docbin import is_docbin, read_docbin, trained_tag
from vcrf.data.layout import Layout, column_layout, conllu_layout, is_conllu
from vcrf.data.pieces import whole_sentences
from vcrf.data.stream import Piece, stream_name, stream_pieces
from vcrf.data.text import DecodedText, Source, read_text
from vcrf.errors import InputError

Format: TypeAlias = Literal["conllu", "columns", "annotations"]


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
        A CoNLL-U or column file, or annotations (.json, .jsonl; see `vcrf.data.annotations`), plain or compressed
        (.gz, .bz2, .xz); `-` is standard input. With the extra `spacy` a DocBin (.spacy): "upos" is then `pos_`,
        "xpos" `tag_`.
    tag : str or int
        Where the label is: "upos", "xpos", or the number of a column from 0, negative from the end. In CoNLL-U also a
        bundle of columns, as "upos+feats": labels are then UPOS=NOUN|Case=Nom|Number=Sing.
        A column file has no UPOS: there the default means the last column.
    split : str or collection of str, optional
        Keep the sentences whose comment `# split = NAME` has this name, or one of these.
    format : "conllu", "columns" or "annotations", optional
        By default guessed from the name (.conllu, .json, .jsonl), otherwise from the first line with data.
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
    return read_with_layout(path, tag, split, format, form)[0]


def read_with_layout(
    path: Source,
    tag: str | int | None = None,
    split: str | Collection[str] | None = None,
    format: Format | None = None,  # noqa: A002
    form: int | None = None,
    trained: Layout | None = None,
    is_streamed: bool = False,
) -> tuple[Corpus, Layout]:
    """Do as `read_corpus`, and tell the file's format and columns too.

    Where `tag` or `form` is None the column is that of `trained`, if that is the layout of a like file: of the same
    format with as many columns. A file that is streamed is never whole in memory, nor are its sentences.
    """
    _check_format(format)
    if is_docbin(path):
        if split is not None:
            raise InputError(f"{path}: a .spacy file has no `split`. Write each part to a file of its own.")
        column = trained_tag(trained) if tag is None else tag
        layout = conllu_layout(column)
        return Corpus.from_sentences(read_docbin(path, column)), layout  # type: ignore[arg-type] # a path, as just seen
    text = _streamed(path) if is_streamed and isinstance(path, (str, os.PathLike)) else read_text(path)
    if looks_like_annotations(text.name) if format is None else format == "annotations":
        whole = read_text(path) if isinstance(text, _Streamed) else text
        return _answered(whole), conllu_layout("upos" if tag is None else tag)
    layout, sample = _layout_of(text, tag, format, form, trained)
    blocks = _blocks(text, split, () if layout.format == "conllu" else BOUNDARIES)
    if layout.format == "conllu":
        blocks = accepted_blocks(blocks, text.name)
    sentences = parsed(blocks, text.name, layout, sample)
    corpus = _kind_of_corpus(is_streamed).from_sentences(sentences)
    if not len(corpus):
        raise _no_sentences(text.name)
    return corpus, layout


def _layout_of(
    text: DecodedText | _Streamed,
    tag: str | int | None,
    format_name: str | None,
    form: int | None,
    trained: Layout | None,
) -> tuple[Layout, str]:
    """Format and columns of a text, and its first line with data."""
    sample = _first_data_line(text)
    if is_conllu(text.name, sample) if format_name is None else format_name == "conllu":
        return conllu_layout(*_columns_of("conllu", len(FIELDS), tag, form, trained)), sample
    n_columns = len(field_splitter(sample)(sample))
    return column_layout(text.name, sample, *_columns_of("columns", n_columns, tag, form, trained)), sample


def layout_of_file(
    path: str | os.PathLike[str], tag: str | int | None, format_name: Format | None, form: int | None
) -> tuple[Layout, str]:
    """Format and columns of a file of sentences, and its first line with data, from its beginning."""
    _check_format(format_name)
    return _layout_of(_streamed(path), tag, format_name, form, None)


def parsed(blocks: Iterable[LineBlock], name: str, layout: Layout, sample: str) -> Iterator[Sentence]:
    """The sentences of blocks of a file; `sample` is its first line with data."""
    if layout.format == "conllu":
        return parse_conllu(blocks, name, layout.form, layout.tag, layout.tags)
    return parse_columns(blocks, name, sample, layout.form, layout.tag)


class _Streamed(NamedTuple):
    """A text that is read as it is needed; `content` is its beginning, up to a line with data or further."""

    name: str
    content: str
    pieces: Iterator[Piece]

    def blocks(self, boundaries: tuple[str, ...]) -> Iterator[LineBlock]:
        for piece in whole_sentences(self.pieces, is_line=False):
            yield from split_blocks(_content(piece, self.name), boundaries, piece.first_line)


def _streamed(path: str | os.PathLike[str]) -> _Streamed:
    name, pieces, head = stream_name(path), stream_pieces(path), []
    for piece in pieces:
        head.append(piece)
        if any(line.strip() and not line.startswith("#") for line in _content(piece, name).split("\n")):
            break
    return _Streamed(name, "".join(_content(piece, name) for piece in head), chain(head, pieces))


def _content(piece: Piece, name: str) -> str:
    """A piece as `read_text` would give it."""
    content = "".join(piece.lines(name)).replace("\r\n", "\n")
    return content.removeprefix("\ufeff") if piece.first_line == 1 else content


def _answered(text: DecodedText) -> Corpus:
    """Sentences that a person has labelled, in a file of an annotation tool."""
    tasks = list(parse_annotations(text.content, text.name))
    corpus = Corpus.from_sentences([task for task in tasks if task is not None])
    n_open = sum(task is None for task in tasks)
    if not len(corpus):
        raise InputError(
            f"{text.name}: no task has an answer yet. Label some, and export them with their annotations. In lines "
            'that `vcrf suggest` wrote a person says "answer": "accept".'
        )
    say_left_out(text.name, n_open, len(tasks), "tasks")
    return corpus


def read_corpora(paths: Sequence[Source], *args: Any, **kwargs: Any) -> tuple[Corpus, Layout]:
    """Sentences of several files, one after the other, and the layout of the first; see `read_with_layout`."""
    parts = [read_with_layout(path, *args, **kwargs) for path in paths]
    has_features = [layout.has_features(corpus.label_set) for corpus, layout in parts]
    if False in has_features and not any(has_features):
        _say_no_features([stream_name(path) for path in paths if isinstance(path, (str, os.PathLike))], parts[0][1])
    if len(parts) == 1:
        return parts[0]
    for (corpus, _), has_any in zip(parts, has_features, strict=True):
        if has_any is not False or not any(has_features):
            continue
        warnings.warn(
            f"{corpus.sources[0]}: no word of this file has FEATS, and other files have some: its words are learnt as "
            "having no features. If they were left out, pass the file as --partial FILE=upos: they stay open.",
            stacklevel=2,
        )
    kinds = {type(corpus) for corpus, _ in parts}
    kind = Corpus if Corpus in kinds else kinds.pop()  # answers of persons are never streamed
    return kind.from_sentences(chain.from_iterable(corpus for corpus, _ in parts)), parts[0][1]


def _say_no_features(names: list[str], layout: Layout) -> None:
    """Warn that a bundle of columns is learnt without what it was asked for."""
    others = layout.bundle.lower().replace("feats", "").replace("++", "+").strip("+")
    warnings.warn(
        f"{', '.join(names) or 'The data'}: column FEATS is empty for every word, so that no features are learnt"
        + (f", and labels are those of `tag='{others}'`." if others else ".")
        + " Check that this is the right file.",
        stacklevel=3,
    )


def _kind_of_corpus(is_streamed: bool) -> type[Corpus]:
    if not is_streamed:
        return Corpus
    from vcrf.data.interned import InternedCorpus  # it needs numpy, which a file that is read whole does not wait for

    return InternedCorpus


def _columns_of(
    format_name: str, n_columns: int, tag: str | int | None, form: int | None, trained: Layout | None
) -> tuple[str | int, int | None]:
    """Columns of label and token: as asked for, else as in training, else the usual ones."""
    if trained is not None and (trained.format, trained.n_columns) == (format_name, n_columns):
        known = trained.bundle or trained.tag
        return known if tag is None else tag, trained.form if form is None else form
    return "upos" if tag is None else tag, form


def _blocks(
    text: DecodedText | _Streamed, split: str | Collection[str] | None, boundaries: tuple[str, ...]
) -> Iterable[LineBlock]:  # fmt: skip
    blocks = text.blocks(boundaries) if isinstance(text, _Streamed) else split_blocks(text.content, boundaries)
    return blocks if split is None else select_split(blocks, split, text.name)


def _check_format(format_name: str | None) -> None:
    if format_name is not None and format_name not in get_args(Format):
        raise InputError(
            f"`format={format_name!r}`: expected one of {', '.join(get_args(Format))}. Leave it out to guess."
        )


def _no_sentences(name: str) -> InputError:
    return InputError(
        f"{name}: no sentences. Expected CoNLL-U, or a token and its label on each line; got no such line. "
        "Check that this is the right file."
    )


def _first_data_line(text: DecodedText | _Streamed) -> str:
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
