"""`vcrf tag`."""

from __future__ import annotations

import gzip
import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from commands import Call, conllu, environment, start
from vcrf.data import Corpus
from vcrf.labelling.loading import load_tagger


def fields(text: str, column: int) -> list[str]:
    """A column of all words of a CoNLL-U text."""
    return [line.split("\t")[column] for line in text.splitlines() if line[:1].isdigit()]


def test_conllu_gets_the_labels_of_the_library(model: Path, corpus: Corpus, tmp_path: Path, call: Call) -> None:
    """In the column of training; everything else is as it was."""
    content = conllu(corpus)
    path = tmp_path / "in.conllu.gz"
    path.write_bytes(gzip.compress(content.encode()))
    out = call("tag", model, path).stdout
    predicted = [label for sentence in load_tagger(model).predict(corpus.tokens) for label in sentence]
    assert fields(out, 3) == predicted
    blank = [[*line.split("\t")[:3], *line.split("\t")[4:]] for line in out.split("\n")]
    assert blank == [[*line.split("\t")[:3], *line.split("\t")[4:]] for line in content.split("\n")]


def test_an_xpos_model_writes_xpos(xpos_model: Path, corpus: Corpus, call: Call) -> None:
    """UPOS stays, unless asked for."""
    content = conllu(corpus[:3])
    out = call("tag", xpos_model, given=content).stdout
    assert fields(out, 3) == fields(content, 3)
    assert all(label.isupper() for label in fields(out, 4))
    assert all(label.isupper() for label in fields(call("tag", xpos_model, "--tag", "upos", given=content).stdout, 3))


def test_marginals_and_nbest_agree_with_the_library(model: Path, corpus: Corpus, call: Call) -> None:
    """Probabilities of labels, and of sequences."""
    tokens = corpus.tokens[0]
    text = " ".join(tokens)
    (line,) = call("tag", model, "-", "--marginals", "--nbest", 3, "--format", "json", given=text).stdout.splitlines()
    found = json.loads(line)
    tagger = load_tagger(model)
    (kbest,), (marginals,) = tagger.predict_kbest([tokens], 3), tagger.predict_marginals([tokens])
    assert [(one["labels"], one["probability"]) for one in found["nbest"]] == kbest
    assert found["labels"] == kbest[0][0]
    assert found["probabilities"] == [round(p[y], 6) for p, y in zip(marginals, found["labels"], strict=True)]
    misc = fields(call("tag", model, "--marginals", given=text).stdout, 9)
    assert misc == [f"Prob={p:.3f}" for p in found["probabilities"]]


def test_text_from_a_pipe_to_tsv(model: Path, call: Call) -> None:
    """Two columns, and a blank line after each sentence."""
    out = call("tag", model, "--format", "tsv", given="a b\n\nc\n").stdout
    assert [line.split("\t")[0] for line in out.split("\n")] == ["a", "b", "", "c", "", ""]


def test_output_file_is_written_whole_or_not_at_all(model: Path, tmp_path: Path, call: Call) -> None:
    """It may even be the input; on an error the old one stays and no other is left."""
    path = tmp_path / "x.conllu"
    path.write_text("1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n")
    assert call("tag", model, path, "-o", path).stdout == ""
    assert fields(path.read_text(), 3) != ["_"]
    before = path.read_bytes()
    bad = tmp_path / "bad"
    bad.write_bytes(b"a b\n" * 100_000 + b"\xff\n")
    assert "bad:100001: expected UTF-8" in call("tag", model, bad, "-o", path, code=2).stderr
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad", "x.conllu"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a \xff\n", "<stdin>:1: expected UTF-8, got byte 0xff"),
        (b"a\nb\0\n", "<stdin>:2: expected text, got a NUL"),
        (b"1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n2\tb\n", "<stdin>:2: expected 10 tab-separated fields"),
        (b"x y\nz u\n\n", "--input-format text or --input-format columns"),
    ],
)
def test_bad_input_exits_with_2_and_the_line(content: bytes, message: str, model: Path, call: Call) -> None:
    """No traceback."""
    assert message in call("tag", model, given=content, code=2).stderr


def test_empty_input_gives_empty_output(model: Path, call: Call) -> None:
    """And blank lines stay blank lines, or give nothing."""
    empty = call("tag", model, given="")
    assert empty.stdout == ""
    assert "<stdin>: 0 sentences" in empty.stderr
    assert "0 sentences" not in call("tag", model, given="a\n").stderr
    blank = call("tag", model, given="\n\n")
    assert blank.stdout == ""
    assert "0 sentences" in blank.stderr
    assert call("tag", model, "--input-format", "conllu", given="\n\n").stdout == "\n\n"


def test_byte_order_mark_and_crlf_are_kept(model: Path, call: Call) -> None:
    """The first token has no mark in it."""
    content = "\ufeff1\ta\t_\t_\t_\t_\t_\t_\t_\t_\r\n\r\n".encode()
    out = call("tag", model, given=content).stdout_bytes
    assert out.startswith(b"\xef\xbb\xbf1\ta\t_\t")
    assert out.endswith(b"\t_\r\n\r\n")


def test_a_line_of_a_megabyte_and_a_sentence_of_100000_tokens(
    model: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence each; k best need a table that grows with it, which has a limit: exit code 1 and the line."""
    line = "word " * 200_000
    assert call("tag", model, "--format", "tsv", given=line).stdout.count("\n") == 200_001
    rows = "".join(f"{i}\tw\t_\t_\t_\t_\t_\t_\t_\t_\n" for i in range(1, 100_001))
    assert len(fields(call("tag", model, "--marginals", given=rows).stdout, 3)) == 100_000
    assert call("tag", model, given="w" * 1_000_000).stdout.count("\n") == 3
    monkeypatch.setattr("vcrf.decoding.potentials.MAX_LATTICE", 1000)
    result = call("tag", model, "--nbest", 2, given="a\n" + "w " * 1000, code=1)
    assert "<stdin>:2: A sentence of 1,000 tokens" in result.stderr


def test_a_file_that_is_no_model(tmp_path: Path, call: Call) -> None:
    """Named, and exit code 2."""
    path = tmp_path / "m"
    path.write_text("not a model")
    assert f"{path}" in call("tag", path, given="a", code=2).stderr
    assert "cannot be read" in call("tag", tmp_path / "none", given="a", code=2).stderr


def test_a_model_of_given_attributes_cannot_tag_text(tmp_path: Path, call: Call) -> None:
    """There is nothing to read off a word."""
    from vcrf import VCRF

    VCRF().fit([[{"w": "a"}]], [["X"]]).save(tmp_path / "m")
    assert "trained on feature dicts" in call("tag", tmp_path / "m", given="a", code=2).stderr


@pytest.mark.skipif(os.name == "nt", reason="select is for sockets there")
def test_a_pipe_gets_its_answer_at_once(model: Path) -> None:
    """A sentence is labelled before the next one is written."""
    with start("tag", model, "--format", "tsv") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(2):
            process.stdin.write(b"a\n")
            process.stdin.flush()
            has_answer, _, _ = select.select([process.stdout], [], [], 60.0)
            if not has_answer:
                process.kill()
            assert has_answer
            assert process.stdout.readline().startswith(b"a\t")
            assert process.stdout.readline() == b"\n"
        process.stdin.close()
        assert process.wait(timeout=60) == 0


@pytest.mark.skipif(os.name == "nt", reason="needs a pipe that breaks")
def test_a_broken_pipe_ends_quietly(model: Path, tmp_path: Path) -> None:
    """As with `| head -1`: nothing on stderr, exit code 0."""
    path = tmp_path / "long.txt"
    path.write_text("a b c d e f\n" * 200_000)
    with start("tag", model, path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"# text = a b c d e f\n"
        process.stdout.close()
        error = process.stderr.read()
        assert process.wait(timeout=60) == 0
    assert error == b""


_MEASURED = """
import resource, sys
from vcrf.cli.app import app
try:
    app()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KB on Linux only")
def test_memory_does_not_grow_with_the_text(model: Path, tmp_path: Path) -> None:
    """Ten times the text, the same peak; see benchmarks/streaming.py for 100 MB."""
    peaks = []
    for n in (10_000, 100_000):
        path = tmp_path / f"{n}.txt"
        path.write_text("".join(f"word{i % 5000} and some more {i % 77} tokens\n" for i in range(n)))
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED, "tag", str(model), str(path)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=True,
            env=environment(),
        )
        peaks.append(int(done.stderr.split()[-1]) / 1024)
    assert peaks[1] - peaks[0] < 20.0


def test_the_model_is_not_overwritten(model: Path, tmp_path: Path, call: Call) -> None:
    """By its own output."""
    path = tmp_path / "m.vcrf"
    path.write_bytes(model.read_bytes())
    assert "is also the model, which would be overwritten" in call("tag", path, "-o", path, given="a b", code=2).stderr
    assert path.read_bytes() == model.read_bytes()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--tag", "0"], "--tag 0: labels would overwrite ID"),
        (["--tag", "1"], "--tag 1: labels would overwrite FORM"),
        (["--tag", "-9"], "--tag 1: labels would overwrite FORM"),
        (["--tag", "9", "--marginals"], "--tag 9: probabilities are written to MISC"),
    ],
)
@pytest.mark.parametrize("given", ["1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n", "a b\n"])
def test_labels_do_not_overwrite_other_things(
    args: list[str], message: str, given: str, model: Path, call: Call
) -> None:
    """In CoNLL-U, read or written."""
    result = call("tag", model, *args, given=given, code=2)
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")
@pytest.mark.parametrize(
    ("command", "code"), [("tag {} <&-", 2), ("tag {} >&-", 1), ("show {} >&-", 1), ("train - -o x <&-", 2)]
)
def test_closed_streams_end_with_a_message(command: str, code: int, model: Path, tmp_path: Path) -> None:
    """Not with a traceback."""
    line = f"{sys.executable} -m vcrf {command.format(model)}"
    done = subprocess.run(
        ["sh", "-c", line], input=b"a b\n", capture_output=True, cwd=tmp_path, env=environment(), check=False
    )
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert b"is closed" in done.stderr


def test_least_expected_loss(model: Path, corpus: Corpus, call: Call) -> None:
    """--mbr writes what the library predicts for the loss; it is not --nbest."""
    content = conllu(corpus[:5])
    tagger = load_tagger(model)
    for name in ("hamming", "edit:band=2"):
        predicted = [label for y in tagger.predict_mbr(corpus.tokens[:5], name) for label in y]
        assert fields(call("tag", model, "--mbr", name, given=content).stdout, 3) == predicted
    wrong = call("tag", model, "--mbr", "hamming", "--nbest", 2, given=content, code=2)
    assert "ask for one of them" in wrong.stderr
    unknown = call("tag", model, "--mbr", "accuracy", given=content, code=2).stderr
    assert "--mbr accuracy: expected one of hamming, ngram, edit" in unknown
