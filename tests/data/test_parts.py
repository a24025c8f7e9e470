"""Parts of files: all of them, one after the other, are the files."""

from __future__ import annotations

import gzip
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcrf.data import read_corpus
from vcrf.data.parts import n_parts, parts_of_files
from vcrf.data.readers import read_corpora
from vcrf.errors import InputError

_ENDS = st.sampled_from(["\n", "\r\n"])


def sentences_of(parts) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Tokens and labels of all parts."""
    every = chain.from_iterable(part.sentences() for part in parts)
    return [(sentence.tokens, sentence.labels) for sentence in every]


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=30),
    _ENDS,
    st.sampled_from(["", "\n", " \t\n"]),
    st.integers(1, 60),
)
def test_parts_are_the_file(tmp_path_factory, lengths: list[int], end: str, more: str, size: int) -> None:
    """However many there are, with blanks in blank lines, and with either end of a line."""
    path = tmp_path_factory.mktemp("parts") / "a.tsv"
    text = "\n".join("".join(f"w{i}é\tL{j}\n" for j in range(n)) + more for i, n in enumerate(lengths))
    path.write_bytes(("\ufeff" + text).replace("\n", end).encode())
    corpus = read_corpus(path)
    parts, layout = parts_of_files([path], of_part=size)
    assert layout == read_corpora([path])[1]
    assert sentences_of(parts) == [(sentence.tokens, sentence.labels) for sentence in corpus]
    assert len(parts) <= n_parts(path.stat().st_size, size)


def test_several_files_splits_and_compressed_ones(tmp_path: Path) -> None:
    """In their order; a compressed file is one part."""
    lines = [f"# split = {'train' if i % 2 else 'dev'}\n1\tw{i}\t_\tX\t_\t_\t_\t_\t_\t_\n\n" for i in range(8)]
    first, second = tmp_path / "a.conllu", tmp_path / "b.conllu.gz"
    first.write_text("".join(lines[:5]))
    second.write_bytes(gzip.compress("".join(lines[5:]).encode()))
    parts, _ = parts_of_files([first, second], "upos", "train", of_part=50)
    assert len(parts) > 2
    assert [part.last for part in parts][-1] is None
    assert [tokens[0] for tokens, _ in sentences_of(parts)] == ["w1", "w3", "w5", "w7"]


def test_answers_that_are_open_are_left_out(tmp_path: Path) -> None:
    """Of suggestions only those that a person has accepted."""
    path = tmp_path / "a.conllu"
    row = "1\t{}\t_\tX\t_\t_\t_\t_\t_\t_\n\n"
    path.write_text(
        "# usefulness = 1\n# answer = none\n"
        + row.format("a")
        + "# usefulness = 1\n# answer = accept\n"
        + row.format("b")
    )
    assert [tokens[0] for tokens, _ in sentences_of(parts_of_files([path])[0])] == ["b"]


def test_messages_name_the_line_of_the_file(tmp_path: Path) -> None:
    """Not that of the part."""
    path = tmp_path / "a.tsv"
    path.write_text("a\tX\n\n" * 40 + "b\n\n" + "a\tX\n\n" * 3)
    with pytest.raises(InputError, match=r"a\.tsv:81: "):
        sentences_of(parts_of_files([path], of_part=20)[0])


def test_what_workers_cannot_read_is_refused(tmp_path: Path) -> None:
    """Standard input, files of persons' answers, and a file that changes."""
    with pytest.raises(InputError, match=r"-: workers read files"):
        parts_of_files(["-"])
    answers = tmp_path / "a.json"
    answers.write_text("[]")
    with pytest.raises(InputError, match=r"Convert it, or train on one machine"):
        parts_of_files([answers])
    path = tmp_path / "a.tsv"
    path.write_text("a\tX\n\n" * 9)
    parts, _ = parts_of_files([path])
    path.write_text("a\tX\n\n")
    with pytest.raises(InputError, match=r"had 45 bytes when training began and has 5 now"):
        sentences_of(parts)
    path.unlink()
    with pytest.raises(InputError, match=r"expected a readable file"):
        sentences_of(parts)


@pytest.mark.parametrize(
    ("size", "of_part", "n"), [(0, 5, 1), (5, 5, 1), (6, 5, 2), (15, 5, 4), (20, 5, 4), (10**9, 5, 512)]
)
def test_numbers_of_parts_are_powers_of_two(size: int, of_part: int, n: int) -> None:
    """Each of 2, 4, 8 workers has as many."""
    assert n_parts(size, of_part) == n
