"""Texts cut between sentences: the pieces are the text, and the parts of it too."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcrf.data.attributes import attribute_pieces, read_attribute_piece
from vcrf.data.pieces import Shard, part_of, read_shard, whole_sentences
from vcrf.data.raw import RawSentence, TextReader, open_pieces, open_raw
from vcrf.data.stream import Piece
from vcrf.errors import InputError

LINES = st.sampled_from([b"a\n", b"b c\n", b"\n", b" \t\n", b"\r\n", b"x\r\n", b"# c\n", b"-DOCSTART- x\n"])


@st.composite
def cut_texts(draw: st.DrawFn) -> list[Piece]:
    """A text in pieces of whole lines; the last line may have no end."""
    lines = draw(st.lists(LINES, max_size=30))
    if lines and draw(st.booleans()):
        lines[-1] = lines[-1].rstrip()
    bounds = sorted({0, len(lines), *draw(st.lists(st.integers(0, len(lines)), max_size=5))})
    pieces = [Piece(a + 1, b"".join(lines[a:b])) for a, b in pairwise(bounds)]
    return [piece for piece in pieces if piece.data]


def joined(pieces: list[Piece]) -> bytes:
    """Their bytes; each has the number of its first line."""
    text = b"".join(piece.data for piece in pieces)
    first, at = pieces[0].first_line if pieces else 1, 0
    for piece in pieces:
        assert piece.first_line == text.count(b"\n", 0, at) + first
        at += len(piece.data)
    return text


@given(cut_texts(), st.booleans(), st.integers(1, 6))
def test_parts_are_the_whole(pieces: list[Piece], is_line: bool, n: int) -> None:
    """Wherever the text was cut before; every part begins where a sentence does."""
    text = joined(pieces)
    whole = list(whole_sentences(pieces, is_line))
    assert joined(whole) == text
    parts = [list(part_of(whole, Shard(i, n).bounds(len(text)), is_line)) for i in range(1, n + 1)]
    assert joined([piece for part in parts for piece in part]) == text
    at_once = list(whole_sentences([Piece(1, text)], is_line))
    for i, part in enumerate(parts, 1):
        assert joined(part) == joined(list(part_of(at_once, Shard(i, n).bounds(len(text)), is_line)))
    for piece in whole[:-1] if not is_line else []:
        assert not piece.data.splitlines()[-1].strip()


@given(cut_texts(), st.integers(1, 5))
def test_pieces_have_the_sentences_of_the_file(pieces: list[Piece], n: int) -> None:
    """Of text: each by itself, with its line."""
    reader = TextReader("x")
    lines = [piece.lines("x") for piece in pieces]
    expected: list[RawSentence] = [sentence for block in reader.sentences(lines) for sentence in block]
    found = [
        sentence
        for i in range(1, n + 1)
        for piece in part_of(whole_sentences(pieces, True), Shard(i, n).bounds(len(joined(pieces))), True)
        for block in reader.sentences([piece.lines("x")], piece.first_line)
        for sentence in block
    ]
    assert found == expected


def test_no_part_is_larger_than_another_by_more_than_one() -> None:
    """And they are all there is."""
    for n in range(1, 8):
        parts = [Shard(i, n).select(range(20)) for i in range(1, n + 1)]
        assert [item for part in parts for item in part] == list(range(20))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("name", ["a.conllu", "a.conllu.gz"])
def test_a_file_is_read_in_parts(name: str, tmp_path: Path) -> None:
    """Plain or compressed, with a byte order mark at its beginning."""
    sentences = "".join(f"# {i}\n1\tw{i}\t_\t_\t_\t_\t_\t_\t_\t_\n\n" for i in range(50))
    content = ("\ufeff" + sentences).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    expected = [sentence for block in open_raw(path).blocks for sentence in block]
    found, sizes = [], []
    for i in (1, 2, 3):
        file, pieces = open_pieces(path, shard=Shard(i, 3))
        part = [s for piece in pieces for block in file.of_piece(piece).blocks for s in block]
        sizes.append(len(part))
        found += part
    assert found == expected
    assert max(sizes) - min(sizes) <= 2


def test_attributes_are_read_in_parts(tmp_path: Path) -> None:
    """A wrong value has its line in the file."""
    path = tmp_path / "a.crfsuite"
    path.write_bytes("\ufeff".encode() + b"X\ta:2\r\nY\tb\r\n\r\nX\tc\n\n\nY\td:x\n")
    first, *_ = attribute_pieces(path, Shard(1, 2))
    (one,) = read_attribute_piece(first, "a")
    assert (one.tokens, one.labels, one.source) == ([{"a": 2.0}, {"b": 1.0}], ["X", "Y"], "a:1")
    with pytest.raises(InputError, match=r"^a:7: "):
        _ = [read_attribute_piece(piece, "a") for piece in attribute_pieces(path, Shard(2, 2))]


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0", "-1/3", "1.0/2"])
def test_what_is_no_part_is_refused(text: str) -> None:
    """By name, with an example."""
    with pytest.raises(InputError, match="from 1/8 to 8/8"):
        read_shard(text)
    assert read_shard(" 2/3 ") == Shard(2, 3)


def test_a_stream_has_no_parts(tmp_path: Path) -> None:
    """Its length is not known; what is not there is said too."""
    with pytest.raises(InputError, match="<stdin>: `shard` is for files"):
        open_pieces("-", shard=Shard(1, 2))
    with pytest.raises(InputError, match="is for files"):
        open_pieces(tmp_path, shard=Shard(1, 2))
    with pytest.raises(InputError, match="expected a readable file"):
        open_pieces(tmp_path / "none", shard=Shard(1, 2))


def test_a_run_of_lines_without_end_is_left_to_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory stays bounded: it is not held to its end."""
    monkeypatch.setattr("vcrf.data.pieces.MOST_LINES", 10)
    pieces = [Piece(1 + 4 * i, b"a\n" * 4) for i in range(10)]
    whole = list(whole_sentences(pieces, is_line=False))
    assert joined(whole) == b"a\n" * 40
    assert len(whole) > 2
