"""Data sets are found by name, read with the right column, and known by their content."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from vcrf.errors import InputError
from vcrf.experiments import paper
from vcrf.experiments.datasets import KNOWN, DataFile, find_data, read_dataset, unpack

SENTENCES = (
    "1\tthe\t_\tDET\tX\t_\t_\t_\t_\t_\n2\tcat\t_\tNOUN\tY\t_\t_\t_\t_\t_\n\n1\tcats\t_\tNOUN\tY\t_\t_\t_\t_\t_\n\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three data sets and a file that is none."""
    for name in ("tamil.conllu", "mine.conllu"):
        (tmp_path / name).write_text(3 * SENTENCES, encoding="utf-8")
    (tmp_path / "twitter-tweebank.conllu.gz").write_bytes(gzip.compress(3 * SENTENCES.encode()))
    (tmp_path / "README.md").write_text("nothing", encoding="utf-8")
    return tmp_path


def test_all_files_of_a_folder_with_their_columns(folder: Path) -> None:
    """Known ones have the paper's column, others UPOS."""
    found = find_data([folder], None, None)
    assert [(file.name, file.tag) for file in found] == [
        ("mine", "upos"), ("tamil", "upos"), ("twitter-tweebank", "xpos"),
    ]  # fmt: skip


def test_names_choose_and_order(folder: Path) -> None:
    """The paper's short names work too; a column that is given serves all."""
    assert [file.name for file in find_data([folder], ["twitter", "mine"], None)] == ["twitter-tweebank", "mine"]
    assert [file.name for file in find_data([folder], ["Tamil", "Twitter"], None)] == ["tamil", "twitter-tweebank"]
    assert {file.tag for file in find_data([folder], None, "xpos")} == {"xpos"}


def test_the_splits_are_those_of_the_paper_whatever_the_column(tmp_path: Path) -> None:
    """Of Finnish (TDT) the paper had no test split."""
    path = tmp_path / "finnish-tdt.conllu"
    first, second, _ = SENTENCES.split("\n\n")
    splits = [f"# split = {split}\n{part}\n\n" for split in ("train", "dev", "test") for part in (first, second)]
    path.write_text("".join(3 * splits), encoding="utf-8")
    for tag in (None, "upos", "xpos"):
        (file,) = find_data([path], None, tag)
        assert (file.tag, file.splits) == (tag or "xpos", ("train", "dev"))
        assert read_dataset(file).n_sentences == 12


def test_files_instead_of_a_folder(folder: Path) -> None:
    """A list of files; one that is also in the folder counts once."""
    assert [file.name for file in find_data([folder / "mine.conllu"], None, None)] == ["mine"]
    assert len(find_data([folder, folder / "mine.conllu"], None, None)) == 3


def test_what_is_not_there_is_told(folder: Path, tmp_path: Path) -> None:
    """Unknown names, missing folders, folders without data, two files of one name."""
    with pytest.raises(InputError, match=r"no data set 'basque'.*mine, tamil, twitter-tweebank"):
        find_data([folder], ["basque"], None)
    with pytest.raises(InputError, match="no such file or folder"):
        find_data([folder / "other"], None, None)
    with pytest.raises(InputError, match="No data set is named: expected some of mine, tamil"):
        find_data([folder], [], None)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="no data set"):
        find_data([empty], None, None)
    (empty / "mine.conllu.gz").write_bytes(b"")
    with pytest.raises(InputError, match="both named 'mine'"):
        find_data([folder, empty], None, None)


def test_the_checksum_is_that_of_the_content(folder: Path) -> None:
    """Compression and name do not matter; the labels do."""
    plain, packed, other = (
        read_dataset(DataFile("x", folder / name, tag))
        for name, tag in [("mine.conllu", "upos"), ("twitter-tweebank.conllu.gz", "upos"), ("mine.conllu", "xpos")]
    )
    assert plain.checksum == packed.checksum != other.checksum
    assert (plain.n_sentences, plain.n_tokens, plain.n_unique, plain.n_labels) == (6, 9, 3, 2)
    assert unpack(plain.blob) == (3 * [["the", "cat"], ["cats"]], 3 * [["DET", "NOUN"], ["NOUN"]])


def test_a_malformed_file_is_told_with_its_line(folder: Path) -> None:
    """File and line are in the message."""
    path = folder / "mine.conllu"
    path.write_text(SENTENCES + "1\tonly\tthree\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"mine\.conllu:6"):
        read_dataset(DataFile("mine", path, "upos"))


def test_a_file_too_small_for_the_folds_is_refused(folder: Path) -> None:
    """Once, and not by each of its tasks."""
    path = folder / "mine.conllu"
    path.write_text(2 * SENTENCES, encoding="utf-8")
    with pytest.raises(InputError, match=r"mine\.conllu: 5 folds need at least 5 sentences: got 4"):
        read_dataset(DataFile("mine", path, "upos"))


def test_a_part_is_drawn_by_the_seed_and_stays_in_order(tmp_path: Path) -> None:
    """Of a larger file; a smaller one is whole."""
    path = tmp_path / "mine.conllu"
    path.write_text("".join(f"1\tw{i:02}\t_\tX\t_\t_\t_\t_\t_\t_\n\n" for i in range(30)), encoding="utf-8")
    file = DataFile("mine", path, "upos")
    part, again, other = (read_dataset(file, 12, seed) for seed in (0, 0, 1))
    drawn = [word for (word,) in unpack(part.blob)[0]]
    assert len(set(drawn)) == part.n_sentences == 12
    assert drawn == sorted(drawn)
    assert (part.n_whole, part.checksum) == (30, again.checksum)
    assert other.checksum != part.checksum
    assert read_dataset(file, 30) == read_dataset(file)


def test_known_data_sets_have_a_row_in_every_table_of_the_paper() -> None:
    """Names lead to the paper's figures."""
    for known in KNOWN.values():
        for table in (paper.DATA, paper.RESULTS, paper.FEATURES, paper.NOISE):
            assert known.paper_name in table


@pytest.mark.parametrize("name", ["tamil", "twitter-tweebank"])
def test_treebanks_have_the_counts_of_the_paper(name: str, treebank) -> None:  # type: ignore[no-untyped-def]
    """The column that is chosen has the paper's number of labels."""
    (file,) = find_data([treebank(name)], None, None)
    found = read_dataset(file)
    counts = (found.n_sentences, found.n_tokens, found.n_unique, found.n_labels)
    assert counts == paper.DATA[KNOWN[name].paper_name]
