"""`vcrf tag --jobs` and `--shard`: the same text, by several processes and on several machines."""

from __future__ import annotations

import gzip
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from commands import Call, conllu, feed, start
from vcrf.data import Corpus

ATTRIBUTES = "X\tw:1\ta\r\nY\tw\r\n\r\n" + "X\tb\n\n\n" + "Y\tw:0.5\tb\n\n"


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small file has many pieces."""
    monkeypatch.setattr("vcrf.data.stream._CHUNK", 500)


@pytest.fixture(params=["a.conllu", "a.conllu.gz", "a.txt", "a.tsv"])
def file(request: pytest.FixtureRequest, corpus: Corpus, tmp_path: Path) -> Path:
    """The corpus in each format, with a byte order mark, boundaries, blank lines and no end of the last line."""
    path = tmp_path / str(request.param)
    pairs = zip(corpus.tokens, corpus.labels, strict=True)
    texts = {
        "conllu": "\ufeff" + conllu(corpus),
        "gz": conllu(corpus).replace("\n", "\r\n"),
        "txt": "\n\n".join(" ".join(tokens) for tokens in corpus.tokens),
        "tsv": "-DOCSTART-\tx\n"
        + "\n \t\n".join("\n".join(f"{w}\t{z}" for w, z in zip(*pair, strict=True)) for pair in pairs),
    }
    content = texts[path.suffix[1:]].encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("options", [[], ["--format", "json", "--marginals"]])
def test_processes_and_parts_give_the_same_bytes(
    options: list[str], file: Path, model: Path, call: Call
) -> None:  # fmt: skip
    """In every format; lines that JSON tells are those of the whole file."""
    options = [*options, "--input-format", "columns"] if file.suffix == ".tsv" else options
    whole = call("tag", model, file, *options).stdout_bytes
    assert call("tag", model, file, *options, "--jobs", 3).stdout_bytes == whole
    for n in (1, 3, 5):
        parts = [call("tag", model, file, *options, "--shard", f"{i}/{n}").stdout_bytes for i in range(1, n + 1)]
        assert b"".join(parts) == whole
        assert all(parts)
    both = [call("tag", model, file, *options, "--shard", f"{i}/2", "--jobs", 2).stdout_bytes for i in (1, 2)]
    assert b"".join(both) == whole


def test_attributes(tmp_path: Path, call: Call) -> None:
    """CRFsuite's data have parts too, and are labelled by processes."""
    from vcrf import VCRF

    VCRF().fit([[{"w": 1.0}, {"a": 1.0}], [{"b": 2.0}]], [["X", "Y"], ["X"]]).save(tmp_path / "m.vcrf")
    path = tmp_path / "a.crfsuite"
    path.write_bytes(ATTRIBUTES.encode() * 40)
    args = ("tag", tmp_path / "m.vcrf", path, "--input-format", "attributes", "--marginals")
    whole = call(*args).stdout
    assert whole.count("\n\n") == 120
    assert call(*args, "--jobs", 2).stdout == whole
    assert "".join(call(*args, "--shard", f"{i}/3").stdout for i in (1, 2, 3)) == whole


def test_trees(tmp_path: Path, corpus: Corpus, call: Call) -> None:
    """Parts by sentences; no processes."""
    rows = "".join(
        "".join(f"{t}\t{w}\t_\tX\t_\t_\t{t - 1}\t{'root' if t == 1 else z}\t_\t_\n" for t, (w, z) in enumerate(pair, 1))
        + "\n"
        for pair in (zip(x, y, strict=True) for x, y in zip(corpus.tokens[:8], corpus.labels[:8], strict=True))
    )
    path = tmp_path / "t.conllu"
    path.write_text(rows, encoding="utf-8")
    trees = tmp_path / "m.vcrf"
    call("train", path, "--structure", "tree", "-o", trees, "--max-passes", 5)
    whole = call("tag", trees, path).stdout
    assert "".join(call("tag", trees, path, "--shard", f"{i}/3").stdout for i in (1, 2, 3)) == whole
    assert "--jobs are not for a model of trees" in call("tag", trees, path, "--jobs", 2, code=2).stderr


@pytest.mark.filterwarnings("ignore:ks_2samp")
def test_reports_and_reviews_are_joined(model: Path, corpus: Corpus, tmp_path: Path, call: Call) -> None:
    """What several processes have seen is what one has."""
    calibrated, path = tmp_path / "c.vcrf", tmp_path / "a.conllu"
    path.write_text(conllu(corpus), encoding="utf-8")
    call("calibrate", model, path, "-o", calibrated, "--allow-seen")
    seen = []
    for jobs in (1, 3):
        review = tmp_path / f"review{jobs}.conllu"
        asked = ("--max-error", "5%", "--report", "--review", review, "--jobs", jobs)
        result = call("tag", calibrated, path, *asked)
        seen.append((result.stdout, result.stderr.replace(str(review), "review"), review.read_bytes()))
    assert seen[0] == seen[1]
    assert "least sure: line" in seen[0][1]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_names_the_line_of_the_file(jobs: int, model: Path, tmp_path: Path, call: Call) -> None:
    """Whichever piece and process it is in; no output is written."""
    path, output = tmp_path / "bad.txt", tmp_path / "out.conllu"
    path.write_bytes(b"a b\n" * 3000 + b"\xff\n" + b"a b\n" * 3000)
    assert "bad.txt:3001: expected UTF-8" in call("tag", model, path, "-o", output, "--jobs", jobs, code=2).stderr
    assert not output.exists()
    path.write_bytes(b"1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n\n" * 1000 + b"1\ta\n\n")
    assert "bad.txt:2001: expected 10" in call("tag", model, path, "--shard", "2/2", "--jobs", jobs, code=2).stderr


def test_wrong_numbers_are_refused(model: Path, call: Call) -> None:
    """By the names of the options, with exit code 2."""
    assert "--shard 3/2: expected a part" in call("tag", model, "--shard", "3/2", given="a", code=2).stderr
    assert "<stdin>: --shard is for files" in call("tag", model, "--shard", "1/2", given="a", code=2).stderr
    assert "--jobs" in call("tag", model, "--jobs", 0, given="a", code=2).stderr


@pytest.fixture
def tagging(model: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command with two processes at work, which waits for more input."""
    with start("tag", model, "--format", "tsv", "--jobs", 2, start_new_session=True) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            for word in (b"a", b"b", b"c"):
                feed(process, word + b"\n")
                has_answer, _, _ = select.select([process.stdout], [], [], 60.0)
                assert has_answer
                assert process.stdout.readline().startswith(word)  # at once, before there is more
                assert process.stdout.readline() == b"\n"
            yield process
        finally:
            process.kill()


def group(process: subprocess.Popen[bytes]) -> list[int]:
    """Processes of its session that are alive."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # gone
            state, _, _, session = path.read_text(encoding="utf-8").rpartition(")")[2].split()[:4]
            if int(session) == process.pid and state != "Z":
                found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("everyone", [False, True])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_all(number: int, code: int, everyone: bool, tagging: subprocess.Popen[bytes]) -> None:
    """Sent to the command, or by a terminal to all its processes: one message, and none is left."""
    assert len(group(tagging)) >= 3
    os.killpg(tagging.pid, number) if everyone else tagging.send_signal(number)
    _, err = tagging.communicate(timeout=60)
    assert tagging.returncode == code
    assert err == b"vcrf: Interrupted: no file was written.\n"
    assert not group(tagging)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_an_error_does_not_wait_for_more_input(tagging: subprocess.Popen[bytes]) -> None:
    """The pipe stays open."""
    feed(tagging, b"a \xff\n")
    assert tagging.wait(timeout=60) == 2
    assert tagging.stderr is not None
    assert b"<stdin>:4: expected UTF-8" in tagging.stderr.read()
    assert not group(tagging)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_broken_pipe_ends_all(tagging: subprocess.Popen[bytes]) -> None:
    """As with `| head`: quietly."""
    assert tagging.stdout is not None
    tagging.stdout.close()
    feed(tagging, b"a\n")
    assert tagging.wait(timeout=60) == 0
    assert tagging.stderr is not None
    assert tagging.stderr.read() == b""
    assert not group(tagging)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_nobody_outlives_a_kill(tagging: subprocess.Popen[bytes]) -> None:
    """Kill -9 of the command alone."""
    tagging.kill()
    tagging.wait(timeout=60)
    for _ in range(600):
        if not group(tagging):
            return
        select.select([], [], [], 0.1)
    raise AssertionError("processes are left")
