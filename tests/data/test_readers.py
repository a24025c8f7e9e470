from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from vcrf.data import Corpus, Sentence, read_corpus
from vcrf.data.stream import stream_lines
from vcrf.errors import InputError

Save = Callable[[str, str | bytes], Path]


def word(number: object, form: str, upos: str = "X", xpos: str = "_") -> str:
    """Return one CoNLL-U line."""
    return "\t".join([str(number), form, "_", upos, xpos, *["_"] * 5]) + "\n"


TWO = (
    "# split = train\n# text = ignored\n"
    + word(1, "grey", "ADJ", "JJ")
    + word(2, "owls", "NOUN", "NNS")
    + "\n# split = dev\n"
    + word(1, "hoot", "VERB", "VBP")
    + "\n"
)


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Return a function that writes a file and returns its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def error_of(path: Path, **options: object) -> str:
    """Return the message of the InputError that reading must raise."""
    with pytest.raises(InputError) as caught:
        read_corpus(path, **options)  # type: ignore[arg-type]
    return str(caught.value)


# CoNLL-U


def test_reads_tokens_labels_and_places(save: Save) -> None:
    """Protects the three lists, and that a source names the line of the first word."""
    path = save("a.conllu", TWO)
    corpus = read_corpus(path)
    assert corpus.tokens == [["grey", "owls"], ["hoot"]]
    assert corpus.labels == [["ADJ", "NOUN"], ["VERB"]]
    assert corpus.sources == [f"{path}:3", f"{path}:7"]


@pytest.mark.parametrize(
    ("tag", "first"),
    [("upos", "ADJ"), ("xpos", "JJ"), (3, "ADJ"), (4, "JJ"), (-6, "JJ"), (1, "grey")],
)
def test_tag_chooses_the_field(save: Save, tag: str | int, first: str) -> None:
    """Protects the meaning of names, positive and negative numbers as tag."""
    assert read_corpus(save("a.conllu", TWO), tag=tag).labels[0][0] == first


def test_form_chooses_the_field(save: Save) -> None:
    """Protects form= for CoNLL-U."""
    assert read_corpus(save("a.conllu", TWO), form=4).tokens == [["JJ", "NNS"], ["VBP"]]


@pytest.mark.parametrize("tag", [10, -11, "pos"])
def test_unknown_tag_is_refused(save: Save, tag: str | int) -> None:
    """Protects the message that lists the possible tags."""
    message = error_of(save("a.conllu", TWO), tag=tag)
    assert message.startswith(f'tag={tag!r}: expected "upos", "xpos" or a number from -10 to 9')


def test_ranges_and_empty_nodes_are_left_out(save: Save) -> None:
    """Protects the words of a sentence with multiword tokens and empty nodes, even without a label."""
    lines = [
        word("0.1", "ghost", "_"),
        word("1-2", "cannot", "_"),
        word(1, "can"),
        word(2, "not"),
        word("2.1", "e", "_"),
    ]
    assert read_corpus(save("a.conllu", "".join(lines))).tokens == [["can", "not"]]


def test_forms_keep_spaces_and_odd_characters(save: Save) -> None:
    """Protects splitting on tabs and line feeds only."""
    forms = ["10 000", "no\u00a0break", "line\u2028separator", "next\u0085line", "#tag", "_", "'"]
    content = "".join(word(i, form) for i, form in enumerate(forms, 1))
    assert read_corpus(save("a.conllu", content)).tokens == [forms]


def test_last_sentence_needs_no_blank_line(save: Save) -> None:
    """Protects the last sentence of a file that ends early, and its line number."""
    path = save("a.conllu", word(1, "a") + "\n\n" + word(1, "b").rstrip("\n"))
    assert read_corpus(path).tokens == [["a"], ["b"]]
    assert read_corpus(path).sources == [f"{path}:1", f"{path}:4"]


def test_blank_lines_may_repeat_and_hold_blanks(save: Save) -> None:
    """Protects the cut at lines that look empty, and skips comments without a sentence."""
    path = save("a.conllu", "# header\n\n\n" + word(1, "a") + " \n\t\n" + word(1, "b"))
    assert read_corpus(path).tokens == [["a"], ["b"]]


def test_byte_order_mark_and_crlf_are_tolerated(save: Save) -> None:
    """Protects files written on Windows."""
    path = save("a.conllu", ("\ufeff" + TWO.replace("\n", "\r\n")).encode())
    assert read_corpus(path, tag="xpos").labels == [["JJ", "NNS"], ["VBP"]]
    assert read_corpus(path).sources == [f"{path}:3", f"{path}:7"]


def test_crlf_does_not_stick_to_the_last_column(save: Save) -> None:
    """Protects the last column, where a carriage return would hide."""
    assert read_corpus(save("a.txt", "a X\r\nb Y\r\n\r\nc X\r\n")).labels == [["X", "Y"], ["X"]]


def test_equal_strings_are_one_object(save: Save) -> None:
    """Protects memory: a type is stored once."""
    corpus = read_corpus(save("a.conllu", word(1, "owlish") + word(2, "owlish")))
    assert corpus.tokens[0][0] is corpus.tokens[0][1]
    assert corpus.labels[0][0] is corpus.labels[0][1]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2\tb\t_\tX\n", ":4: expected 10 tab-separated fields of CoNLL-U, got 4. Write the missing"),
        ("2 b _ X _ _ _ _ _ _\n", ":4: expected 10 tab-separated fields of CoNLL-U, got 1. If the file"),
        (word(1, "b"), ":4: expected ID 2 (or a range like 1-2, or an empty node like 1.1), got '1'. Number"),
        (word("x", "b"), ":4: expected ID 2 (or a range like 1-2, or an empty node like 1.1), got 'x'."),
        (word(2, ""), ":4: expected a token in FORM, got an empty field. Fill it in"),
        (word(2, "b", ""), ":4: expected a label in UPOS, got ''."),
        (
            word(2, "b", "_", "NN"),
            ":4: expected a label in UPOS, got '_'. XPOS has 'NN' here: pass `tag='xpos'`",
        ),
        (word(2, "b", "_"), ":4: expected a label in UPOS, got '_'. Neither UPOS nor XPOS has one here"),
    ],
)
def test_malformed_line_is_named(save: Save, line: str, expected: str) -> None:
    """Protects file:line (a comment inside the sentence counts), what was expected, and the advice."""
    path = save("a.conllu", "# text\n" + word(1, "a") + "# inside\n" + line + "\n")
    assert error_of(path).startswith(f"{path}{expected}")


def test_missing_xpos_points_to_upos(save: Save) -> None:
    """Protects the advice in the other direction."""
    assert "UPOS has 'X' here: pass `tag='upos'`" in error_of(save("a.conllu", word(1, "a")), tag="xpos")


def test_sentence_of_ranges_only_is_refused(save: Save) -> None:
    """Protects against a sentence without words."""
    path = save("a.conllu", word("1-2", "ab"))
    assert error_of(path).startswith(f"{path}:1: expected a sentence with words")


# Splits


def test_split_keeps_its_sentences(save: Save) -> None:
    """Protects the choice by comment, of one name or several."""
    path = save("a.conllu", TWO)
    assert read_corpus(path, split="train").tokens == [["grey", "owls"]]
    assert read_corpus(path, split="dev").sources == [f"{path}:7"]
    assert len(read_corpus(path, split=("train", "dev"))) == 2


def test_split_works_in_column_files(save: Save) -> None:
    """Protects the comment between columns of either kind."""
    for gap in " \t":
        content = f"# split = train\na{gap}X\n\n# split = dev\nb{gap}Y\n"
        assert read_corpus(save("a.txt", content), split="dev").tokens == [["b"]]


def test_unknown_split_names_those_there_are(save: Save) -> None:
    """Protects the list of names in the message."""
    path = save("a.conllu", TWO)
    expected = f"{path}: no sentence of split test; the file has dev, train. Pass one of these"
    assert error_of(path, split="test").startswith(expected)


def test_split_without_comments_is_refused(save: Save) -> None:
    """Protects against reading nothing, or everything, in silence."""
    path = save("a.conllu", word(1, "a"))
    expected = f"{path}: `split='train'` expects sentences with a comment '# split = NAME', but none has one"
    assert error_of(path, split="train").startswith(expected)


# Column files


def test_columns_default_to_first_and_last(save: Save) -> None:
    """Protects CoNLL-2003 files: blanks between columns, document lines skipped."""
    document = "-DOCSTART- -X- -X- O\n"
    content = "\nOwls NNS B-NP O\nhoot  VBP B-VP O\n" + document + "Ulm NNP B-NP B-LOC\n"
    path = save("a.txt", document + content)
    corpus = read_corpus(path)
    assert corpus.tokens == [["Owls", "hoot"], ["Ulm"]]
    assert corpus.labels == [["O", "O"], ["B-LOC"]]
    assert corpus.sources == [f"{path}:3", f"{path}:6"]
    assert read_corpus(path, tag=1).labels[0] == ["NNS", "VBP"]
    assert read_corpus(path, tag=-2, form=1).tokens[0] == ["NNS", "VBP"]


def test_tsv_is_split_on_tabs_only(save: Save) -> None:
    """Protects tokens with blanks, hashtags, and comments without a tab."""
    corpus = read_corpus(save("a.tsv", "# a remark\nNew York\tB\n#owl\tO\n#\tO\n"))
    assert corpus.tokens == [["New York", "#owl", "#"]]


def test_hash_is_a_token_between_blanks(save: Save) -> None:
    """Protects `# NN`, which is no comment, and the no-break space, which is no separator."""
    content = "# sent_id = 1\nthe DT\n# NN\nx\u00a0y SYM\n"
    assert read_corpus(save("a.txt", content)).tokens == [["the", "#", "x\u00a0y"]]


def test_all_lines_may_begin_with_a_hash(save: Save) -> None:
    """Protects a file of hashtags: its first line is data."""
    assert read_corpus(save("a.txt", "#owl HT\n#ulm HT\n")).tokens == [["#owl", "#ulm"]]


def test_underscore_is_a_label_in_columns(save: Save) -> None:
    """Protects column files where `_` is a label of its own."""
    assert read_corpus(save("a.txt", "a _\nb X\n")).labels == [["_", "X"]]


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("a X\nb\n", {}, ":2: expected 2 columns as in the first line with data, got 1. Correct the line"),
        ("a\tX\nb\t\n", {}, ":2: expected text in column 1, got an empty field. Fill it in"),
        ("a\tX\n\tX\n", {}, ":2: expected text in column 0, got an empty field. Fill it in"),
        ("a\nb\n", {}, ": expected at least two columns, token and label, got 1. Separate them"),
        ("a X\n", {"tag": 2}, ": tag=2, but the file has 2 columns. Pass a number from -2 to 1."),
        ("a X\n", {"form": -3}, ": form=-3, but the file has 2 columns. Pass a number from -2 to 1."),
        ("a X\n", {"tag": "xpos"}, ": `tag='xpos'`, but a column file has no named columns. Pass the column's"),
    ],
)
def test_malformed_columns_are_named(save: Save, content: str, options: dict[str, object], expected: str) -> None:
    """Protects the messages of column files."""
    path = save("a.txt", content)
    assert error_of(path, **options).startswith(f"{path}{expected}")


# Guessing the format


@pytest.mark.parametrize("first", [word(1, "a", "U", "P"), word("1-2", "ab") + word(1, "a", "U", "P")])
def test_conllu_is_recognised_without_its_name(save: Save, first: str) -> None:
    """Protects the guess from the first line with data."""
    path = save("a.txt", "# comment\n" + first)
    assert read_corpus(path).labels == [["U"]]
    assert read_corpus(path, tag="xpos").labels == [["P"]]


def test_ten_columns_without_id_are_columns(save: Save) -> None:
    """Protects column files that happen to have ten columns."""
    assert read_corpus(save("a.txt", "\t".join("abcdefghij"))).labels == [["j"]]


def test_name_and_format_override_the_content(save: Save) -> None:
    """Protects the order: format=, then the name, then the content."""
    assert "fields of CoNLL-U" in error_of(save("a.conllu.gz", gzip.compress(b"a X\n")))
    assert "fields of CoNLL-U" in error_of(save("a.txt", "a X\n"), format="conllu")
    assert read_corpus(save("a.conllu", "a X\n"), format="columns").labels == [["X"]]
    assert "`format='xml'`: expected one of conllu, columns" in error_of(save("b.txt", "a X"), format="xml")


# Where text comes from


COMPRESS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("kind", COMPRESS)
def test_compressed_files(save: Save, kind: str) -> None:
    """Protects each compression, by name, by content, and through a stream."""
    data = COMPRESS[kind](TWO.encode())
    plain = read_corpus(save("a.conllu", TWO))
    assert read_corpus(save(f"b.conllu.{kind}", data)).tokens == plain.tokens
    assert read_corpus(save("no-suffix", data)).tokens == plain.tokens
    assert read_corpus(io.BytesIO(data)).labels == plain.labels


@pytest.mark.parametrize("kind", COMPRESS)
def test_damaged_compression_is_an_input_error(save: Save, kind: str) -> None:
    """Protects the message for text under a false name and for a file cut off."""
    names = {"gz": "gzip", "bz2": "bzip2", "xz": "xz"}
    cut = COMPRESS[kind](TWO.encode() * 9)[:-12]
    for content in (TWO.encode(), cut):
        path = save(f"a.conllu.{kind}", content)
        message = error_of(path)
        assert message.startswith(f"{path}: expected {names[kind]} data, got bytes that cannot be decompressed")
        assert message.endswith(f"rename it without .{kind}.")


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_flipped_byte_anywhere_is_no_other_error(save: Save, kind: str) -> None:
    """Protects the list of what each library raises, read whole or in chunks."""
    data = COMPRESS[kind](TWO.encode())
    for place in range(len(data)):
        path = save(f"a.conllu.{kind}", data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        for read in (read_corpus, lambda path: list(stream_lines(path))):
            with contextlib.suppress(InputError):
                read(path)


@pytest.mark.parametrize("kind", COMPRESS)
def test_too_little_memory_is_not_called_damage(save: Save, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Protects what is wrong with the machine from being blamed on the file."""

    def fail(*_: object) -> None:
        raise MemoryError

    path = save(f"a.conllu.{kind}", COMPRESS[kind](TWO.encode()))
    monkeypatch.setattr("vcrf.data.text.decompressing", fail)
    monkeypatch.setattr("vcrf.data.stream.decompressing", fail)
    for read in (read_corpus, lambda path: list(stream_lines(path))):
        with pytest.raises(MemoryError):
            read(path)


def test_bzip2_magic_can_begin_a_word(save: Save) -> None:
    """Protects a plain file whose first word looks like bzip2."""
    assert read_corpus(save("a.txt", "BZh9 X\n")).tokens == [["BZh9"]]


@pytest.mark.parametrize("raw", [io.BytesIO(TWO.encode()), io.StringIO(TWO)])
def test_streams(raw: io.BytesIO | io.StringIO) -> None:
    """Protects binary and text streams, and their name in sources."""
    assert read_corpus(raw).sources == ["<stream>:3", "<stream>:7"]


def test_open_file_gives_its_name(save: Save) -> None:
    """Protects sources of an open file."""
    path = save("a.conllu", TWO)
    with path.open("rb") as stream:
        assert read_corpus(stream).sources[0] == f"{path}:3"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Protects `-`, read as bytes whatever the terminal's encoding, also compressed."""
    for data in (TWO.encode(), gzip.compress(TWO.encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="ascii"))
        assert read_corpus("-").sources == ["<stdin>:3", "<stdin>:7"]


def test_invalid_utf8_is_named(save: Save) -> None:
    """Protects file:line and the byte of an encoding error."""
    path = save("a.conllu", (word(1, "a") + word(2, "caf\u00e9")).encode("latin-1"))
    assert error_of(path).startswith(f"{path}:2: expected UTF-8, got byte 0xe9 (")


def test_nul_is_named(save: Save) -> None:
    """Protects against binary files that happen to decode."""
    path = save("a.txt", "a X\nb\0 X\n")
    assert error_of(path).startswith(f"{path}:2: expected text, got a NUL character. ")


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff", "-DOCSTART- O\n"])
def test_file_without_sentences_is_refused(save: Save, content: str) -> None:
    """Protects against training on nothing."""
    path = save("a.txt", content)
    assert error_of(path).startswith(f"{path}: no sentences. Expected CoNLL-U, or a token")


def test_comments_alone_are_no_sentences(save: Save) -> None:
    """Protects the same when there are comments, in either format."""
    assert "no sentences" in error_of(save("a.conllu", "# only = this\n"))
    assert "no sentences" in error_of(save("a.txt", "# only this\n"), format="conllu")


def test_missing_file_and_directory_are_input_errors(tmp_path: Path) -> None:
    """Protects one kind of error for everything wrong with the input."""
    absent = tmp_path / "absent"
    assert error_of(absent).startswith(f"{absent}: expected a readable file, got: No such file or directory.")
    assert "Is a directory" in error_of(tmp_path)


def test_reading_imports_no_heavy_library() -> None:
    """Protects start-up: reading a file needs neither numpy nor anything built on it."""
    code = (
        "import io, sys; from vcrf.data import read_corpus; read_corpus(io.StringIO('a X'));"
        "print(*{'numpy', 'numba', 'scipy', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


# Corpus


@pytest.fixture
def corpus() -> Corpus:
    """Return three sentences."""
    return Corpus([["a", "b"], ["c"], ["d"]], [["X", "Y"], ["X"], ["Z"]], ["t:1", "t:4", "t:6"])


def test_corpus_counts_and_prints(corpus: Corpus) -> None:
    """Protects the counts and the repr people see first."""
    assert (len(corpus), corpus.n_tokens, corpus.label_set) == (3, 4, ("X", "Y", "Z"))
    assert repr(corpus) == "Corpus(3 sentences, 4 tokens, 3 labels, first at t:1)"
    assert repr(corpus[:0]) == "Corpus(0 sentences, 0 tokens, 0 labels)"


def test_corpus_slices_indexes_and_iterates(corpus: Corpus) -> None:
    """Protects the three ways to a part, and the way back from sentences."""
    assert corpus[1] == Sentence(("c",), ("X",), "t:4")
    assert corpus[1:].sources == ["t:4", "t:6"]
    assert corpus.take([2, 0, -1]).tokens == [["d"], ["a", "b"], ["d"]]
    assert Corpus.from_sentences(corpus) == corpus


def test_take_refuses_what_is_no_position(corpus: Corpus) -> None:
    """Protects against masks and positions out of range."""
    with pytest.raises(InputError, match=r"take\(\) got position 3, but the corpus has 3 sentences"):
        corpus.take([3])
    with pytest.raises(InputError, match=r"got True\. Turn a boolean mask"):
        corpus.take([True, False, True])
    with pytest.raises(InputError, match=r"expects positions of sentences, got 'a'"):
        corpus.take("a")  # type: ignore[arg-type]


def test_corpus_refuses_unequal_lengths() -> None:
    """Protects the one shape of the three lists."""
    with pytest.raises(InputError, match="got 1 sentences, 0 lists of labels, 1 sources"):
        Corpus([["a"]], [], ["t:1"])
    with pytest.raises(InputError, match="t:1: expected one label a token, got 1 tokens and 2 labels"):
        Corpus([["a"]], [["X", "Y"]], ["t:1"])


# Real treebanks, when they are there


@pytest.mark.parametrize(
    ("name", "tag", "splits", "n_tokens", "n_types", "n_labels"),
    [
        ("basque", "upos", {"train": 5396, "dev": 1798, "test": 1799}, 121443, 26679, 16),
        ("tamil", "upos", {"train": 400, "dev": 80, "test": 120}, 9581, 3583, 14),
        ("tamil", "xpos", {}, 9581, 3583, 234),
        ("english", "upos", {"train": 12543, "dev": 2002, "test": 2077}, 254830, 23016, 17),
        ("twitter-tweebank", "xpos", {"train": 728, "test": 201}, 12318, 4479, 25),
        ("hindi", "upos", {"train": 13294, "dev": 1659, "test": 1684}, 351674, 19232, 16),
        ("dutch-alpino", "upos", {"train": 12264, "dev": 718, "test": 596}, 208470, 28869, 16),
        ("finnish-tdt", "upos", {"train": 12217, "dev": 1364, "test": 1555}, 201952, 57387, 15),
        ("finnish-tdt", "xpos", {}, 201952, 57387, 12),
        ("finnish-ftb", "upos", {"train": 14981, "dev": 1875, "test": 1867}, 159612, 46751, 17),
    ],
)
def test_treebank_counts(
    treebank: Callable[[str], Path],
    name: str,
    tag: str,
    splits: dict[str, int],
    n_tokens: int,
    n_types: int,
    n_labels: int,
) -> None:
    """Protects sentences, tokens, types and labels of real treebanks, counted independently."""
    path = treebank(name)
    corpus = read_corpus(path, tag=tag)
    n_found_types = len(set().union(*corpus.tokens))
    assert (corpus.n_tokens, n_found_types, len(corpus.label_set)) == (n_tokens, n_types, n_labels)
    parts = {split: read_corpus(path, tag=tag, split=split) for split in splits}
    assert {split: len(part) for split, part in parts.items()} == splits
    if splits:
        assert sum(part.n_tokens for part in parts.values()) == n_tokens
        assert sum(map(len, parts.values())) == len(corpus)


def test_treebank_splits_together(treebank: Callable[[str], Path]) -> None:
    """Protects reading two splits at once, as the Finnish experiment needs."""
    corpus = read_corpus(treebank("finnish-tdt"), tag="xpos", split=["train", "dev"])
    assert (len(corpus), corpus.n_tokens, len(set().union(*corpus.tokens))) == (13581, 180911, 53158)


def test_treebank_without_the_column(treebank: Callable[[str], Path]) -> None:
    """Protects the advice when a treebank has only the other label."""
    assert "pass `tag='xpos'`" in error_of(treebank("twitter-tweebank"))


def test_what_a_file_says_of_its_splits_is_cut_short(tmp_path: Path) -> None:
    """A message names some of them, however many there are and however long."""
    path = tmp_path / "many.tsv"
    path.write_text("".join(f"# split = {i:02}{'x' * 500}\na\tB\n\n" for i in range(30)), encoding="utf-8")
    with pytest.raises(InputError, match=r"no sentence of split dev; the file has 00xx.* and 20 others") as caught:
        read_corpus(path, split="dev")
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz"])
def test_an_archive_larger_than_memory_is_refused(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros take no room in an archive, and all the memory outside."""
    monkeypatch.setattr("vcrf.machine.total_memory", lambda: 2.0e8)
    path = tmp_path / f"bomb.tsv.{suffix}"
    path.write_bytes({"gz": gzip, "bz2": bz2, "xz": lzma}[suffix].compress(bytes(100_000_000)))
    with pytest.raises(InputError, match=r"bomb.tsv.[a-z0-9]+: expected text that fits into memory, got more than 0.1"):
        read_corpus(path)
