"""Reading sentences with their raw lines and writing them back with labels."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcrf.data import raw, stream
from vcrf.data.layout import Layout
from vcrf.data.raw import InputFormat, open_raw, with_notes
from vcrf.data.writers import OutputFormat, Tagging, choose_writer
from vcrf.errors import InputError

CONLLU = (
    "# newdoc\n\n# sent_id = 1\n# text = no lo vi\n"
    "1-2\tnolo\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
    "1\tno\tno\tADV\tR\t_\t3\tadvmod\t_\t_\n"
    "2\tlo\tél\tPRON\tP\tCase=Acc|Gender=Masc\t3\tobj\t_\tGloss=it\n"
    "2.1\tella\t_\t_\t_\t_\t_\t_\t3:nsubj\t_\n"
    "3\tvi\tver\tVERB\tV\t_\t0\troot\t_\t_\n\n\n"
    "1\t#\t#\tSYM\t_\t_\t0\troot\t_\tProb=0.100|Ref=a b\n"
)


def labelled(
    content: str | bytes,
    tmp_path: Path,
    label: Callable[[str], str] = str.upper,
    *,
    input_format: InputFormat = "auto",
    output_format: OutputFormat | None = None,
    tag: str | int | None = None,
    trained: Layout | None = None,
    probabilities: bool = False,
    n_best: int = 0,
    name: str = "input",
) -> str:
    """What comes out when every token gets a label."""
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    file = open_raw(path, input_format, tag, trained=trained)
    write, _ = choose_writer(file, output_format)
    out = []
    for sentence in (s for block in file.blocks for s in block):
        labels = [label(token) for token in sentence.tokens]
        shares = [0.98765] * len(labels) if probabilities else None
        taggings = [Tagging(labels, shares, 0.5**i) for i in range(1, n_best + 1)] or [Tagging(labels, shares)]
        out.append(write(sentence, taggings))
    return "".join(out)


def test_conllu_is_kept_byte_for_byte_but_for_the_labels(tmp_path: Path) -> None:
    """Comments, ranges, empty nodes, blank lines, other fields and a missing last line end stay."""
    expected = CONLLU.replace("ADV", "NO").replace("PRON", "LO").replace("VERB", "VI").replace("SYM", "#")
    assert labelled(CONLLU, tmp_path) == expected
    assert labelled(CONLLU.rstrip("\n"), tmp_path) == expected.rstrip("\n")


def test_crlf_is_kept(tmp_path: Path) -> None:
    """Line ends of the input are those of the output."""
    content = CONLLU.replace("\n", "\r\n")
    assert labelled(content, tmp_path).replace("\r\n", "\n") == labelled(CONLLU, tmp_path)
    assert labelled(content, tmp_path).count("\r\n") == content.count("\r\n")


@pytest.mark.parametrize(
    ("tag", "trained", "field"),
    [(None, Layout("conllu", 1, 4, 10), 4), ("xpos", None, 4), (-1, None, 9), (None, Layout("columns", 0, 1, 2), 3)],
)
def test_the_label_goes_to_the_column_of_training(
    tag: str | int | None, trained: Layout | None, field: int, tmp_path: Path
) -> None:
    """An explicit column wins over the training's; a column of another format says nothing."""
    out = labelled(CONLLU, tmp_path, tag=tag, trained=trained)
    before, after = (next(line for line in text.split("\n") if line.startswith("3\t")) for text in (CONLLU, out))
    changed = [i for i, (a, b) in enumerate(zip(before.split("\t"), after.split("\t"), strict=True)) if a != b]
    assert changed == [field]


def test_probability_is_added_to_misc_and_replaces_an_older_one(tmp_path: Path) -> None:
    """What is in MISC stays."""
    out = labelled(CONLLU, tmp_path, probabilities=True).split("\n")
    fields = [line.split("\t")[-1] for line in out if line[:1].isdigit()]
    assert fields == ["SpaceAfter=No", "Prob=0.988", "Gloss=it|Prob=0.988", "_", "Prob=0.988", "Ref=a b|Prob=0.988"]


def test_nbest_repeats_the_sentence_after_two_comments(tmp_path: Path) -> None:
    """Every copy ends in a blank line, also the last one of a file without."""
    out = labelled("1\ta\t_\t_\t_\t_\t_\t_\t_\t_", tmp_path, n_best=2)
    row = "1\ta\t_\tA\t_\t_\t_\t_\t_\t_\n\n"
    assert out == f"# nbest = 1\n# probability = 0.5\n{row}# nbest = 2\n# probability = 0.25\n{row}"


def test_text_becomes_conllu_tsv_or_json(tmp_path: Path) -> None:
    """A sentence a line; an empty line is no sentence; a no-break space is part of a token."""
    text = "The\u00a0cat  sat\n\n#1 .\n"
    assert labelled(text, tmp_path) == (
        "# text = The\u00a0cat sat\n1\tThe\u00a0cat\t_\tTHE\u00a0CAT\t_\t_\t_\t_\t_\t_\n"
        "2\tsat\t_\tSAT\t_\t_\t_\t_\t_\t_\n\n"
        "# text = #1 .\n1\t#1\t_\t#1\t_\t_\t_\t_\t_\t_\n2\t.\t_\t.\t_\t_\t_\t_\t_\t_\n\n"
    )
    assert labelled("a b\r\n", tmp_path, output_format="tsv", probabilities=True) == (
        "a\tA\t0.988\r\nb\tB\t0.988\r\n\r\n"
    )
    (line,) = labelled("\nä b\n", tmp_path, output_format="json", n_best=2).splitlines()
    assert json.loads(line) == {
        "line": 2,
        "tokens": ["ä", "b"],
        "labels": ["Ä", "B"],
        "nbest": [{"labels": ["Ä", "B"], "probability": 0.5}, {"labels": ["Ä", "B"], "probability": 0.25}],
    }


def test_text_labelled_by_an_xpos_model_fills_xpos(tmp_path: Path) -> None:
    """The column of training holds for new CoNLL-U too."""
    out = labelled("a\n", tmp_path, trained=Layout("conllu", 1, 4, 10))
    assert out.split("\n")[1] == "1\ta\t_\t_\tA\t_\t_\t_\t_\t_"


def test_columns_get_a_new_column_or_the_one_of_training(tmp_path: Path) -> None:
    """A column that is not the training's is never overwritten unasked."""
    content = "# id = 1\na\tx\nb\ty\n\n-DOCSTART-\tO\nc\tz"
    assert labelled(content, tmp_path) == "# id = 1\na\tx\tA\nb\ty\tB\n\n-DOCSTART-\tO\nc\tz\tC"
    trained = Layout("columns", 0, 1, 2)
    replaced = "# id = 1\na\tA\nb\tB\n\n-DOCSTART-\tO\nc\tC"
    assert labelled(content, tmp_path, trained=trained) == replaced
    assert labelled(content, tmp_path, tag=-1) == replaced
    assert labelled("a\nb\n", tmp_path, input_format="columns", trained=trained) == "a A\nb B\n"
    assert labelled(content, tmp_path, tag=0, label=lambda t: t * 3).startswith("# id = 1\naaa\tx\n")
    with pytest.raises(InputError, match=r"expected 2 columns as in the training data.*got 3.*--tag 3"):
        labelled("a\tb\tc\n", tmp_path, trained=trained)


def test_columns_between_blanks_keep_their_blanks(tmp_path: Path) -> None:
    """Only the label's characters change."""
    content = "a   x  q\nb  y q \n"
    assert labelled(content, tmp_path, input_format="columns", tag=1) == "a   A  q\nb  B q \n"
    assert labelled("a\t\tq\n", tmp_path, tag=1, probabilities=True) == "a\tA\tq\t0.988\n"


def test_other_formats_from_columns_and_conllu(tmp_path: Path) -> None:
    """Written anew from the tokens alone."""
    assert labelled("a\tx\n\nb\ty\n", tmp_path, output_format="conllu").count("# text =") == 2
    assert labelled(CONLLU, tmp_path, output_format="tsv") == "no\tNO\nlo\tLO\nvi\tVI\n\n#\t#\n\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n", "conllu"),
        ("# c\n1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n", "conllu"),
        ("a\tb\n", "tsv"),
        ("-DOCSTART- O\n\na O\n", "tsv"),
        ("#a b\nc d e\n", None),
        ("", None),
    ],
)
def test_format_is_guessed_from_the_first_line_with_data(content: str, expected: str | None, tmp_path: Path) -> None:
    """CoNLL-U, columns or text."""
    path = tmp_path / "x"
    path.write_text(content)
    assert open_raw(path).reader.own_format == expected


def test_a_guess_between_text_and_columns_is_refused(tmp_path: Path) -> None:
    """A column file read as text would give nonsense without a word."""
    with pytest.raises(InputError, match=r":1: .*2 lines of 2 words.*--input-format"):
        labelled("EU NNP\nrejects VBZ\n\nGerman JJ\n", tmp_path)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("by_name", [True, False])
def test_compressed_input(pack: Callable[[bytes], bytes], by_name: bool, tmp_path: Path) -> None:
    """By name or by the first bytes."""
    suffix = {gzip: ".gz", bz2: ".bz2", lzma: ".xz"}[sys.modules[pack.__module__]] if by_name else ""
    assert labelled(pack(CONLLU.encode()), tmp_path, name=f"x{suffix}") == labelled(CONLLU, tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a b\nc \xff\n", r"x:2: expected UTF-8, got byte 0xff"),
        (b"a b\n\nc\0d\n", r"x:3: expected text, got a NUL"),
        (b"1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n2\tb\n", r"x:2: expected 10 tab-separated fields"),
        (b"1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n3\tb\t_\t_\t_\t_\t_\t_\t_\t_\n", r"x:2: expected ID 2"),
        (b"1\t\t_\t_\t_\t_\t_\t_\t_\t_\n", r"x:1: expected a token in FORM"),
        (b"a\tb\n\nc\n", r"x:3: expected 2 columns"),
        (gzip.compress(b"a b\n" * 100, mtime=0)[:-9], r"x: expected gzip data"),
        ("a b\n".encode("utf-16"), r"x:1: expected UTF-8"),
    ],
)
def test_bad_input_is_refused_with_its_line(content: bytes, message: str, tmp_path: Path) -> None:
    """File, line and what to do."""
    with pytest.raises(InputError, match=message):
        labelled(content, tmp_path, name="x")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """The path is named."""
    with pytest.raises(InputError, match="nowhere: expected a readable file"):
        open_raw(tmp_path / "nowhere")


def test_byte_order_mark_is_not_part_of_the_first_token(tmp_path: Path) -> None:
    """It is told apart, so that it can be written back."""
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbfa b\n")
    file = open_raw(path)
    assert file.has_bom
    assert [s.tokens for block in file.blocks for s in block] == [["a", "b"]]


def test_lines_that_never_end_and_sentences_that_never_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded: what would not fit is refused, with its line."""
    monkeypatch.setattr(raw, "MAX_TOKENS", 10)
    with pytest.raises(InputError, match=r"x:2: expected sentences, got one of more than 10 tokens"):
        labelled("a\n" + "b " * 11, tmp_path, name="x")
    with pytest.raises(InputError, match=r"x:3: expected sentences"):
        labelled("a\tx\n\n" + "b\ty\n" * 11, tmp_path, name="x")
    monkeypatch.setattr(stream, "_LONGEST_LINE", 1 << 19)
    with pytest.raises(InputError, match=r"x:2: expected lines of text"):
        labelled("a\n" + "b" * (1 << 20), tmp_path, name="x")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n"), max_size=6)))
def test_pieces_put_together_are_the_file(lines: list[str]) -> None:
    """Whatever the chunks, every line comes once, unchanged."""
    content = "\n".join(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "_CHUNK", 3)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        pieces = list(stream.stream_lines("-"))
    assert "".join(line for piece in pieces for line in piece) == content
    assert all(line.index("\n") == len(line) - 1 for piece in pieces for line in piece if "\n" in line)


ROWS = st.lists(
    st.sampled_from(
        ["# c", "# c = d\r", "", "\r", "1\ta\t_\tX\t_\t_\t_\t_\t_\t_", "1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_", "  "]
    ),
    max_size=12,
)


@given(ROWS, st.integers(2, 40))
def test_conllu_without_new_labels_is_the_same_file(rows: list[str], size: int) -> None:
    """Reading and writing back is the identity, however the stream is cut."""
    content = "\n".join(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "_CHUNK", size)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        file = open_raw("-", "conllu")
        write, is_in_place = choose_writer(file, None)
        assert is_in_place
        try:
            out = [write(s, [Tagging(["X"] * len(s.tokens))]) for block in file.blocks for s in block]
        except InputError:
            return  # two words with ID 1, or no word at all
    assert "".join(out) == content


def test_marks_of_an_earlier_run_are_replaced() -> None:
    """They are about labels that are gone; what others wrote stays, byte for byte where nothing is ours."""
    misc = "SpaceAfter=No|Prob=0.987|Check=Yes|Labels=A,B|Spans=PER:2|Checked=Yes|Check=No"
    assert with_notes(misc, []) == "SpaceAfter=No|Prob=0.987|Checked=Yes|Check=No"
    assert with_notes("Check=Yes", []) == "_"
    assert with_notes("a||b", []) == "a||b"
    assert with_notes("Check=Yes|a", [("Check", ""), ("Labels", "X")]) == "a|Labels=X"


def test_labels_in_a_list_are_told_apart() -> None:
    """Whatever they have in them."""
    tagging = Tagging(["a,b"], sets=[["a,b", "a", "b|c=d", "50%", "x y:z"]])
    assert tagging.notes(0) == [("Labels", "a%2Cb,a,b%7Cc%3Dd,50%25,x%20y%3Az")]
    assert [unquote(part) for part in tagging.notes(0)[0][1].split(",")] == tagging.sets[0]
