"""Files to read that are damaged, odd or hostile: CoNLL-U, columns and text, plain and compressed.

What is read keeps every line; what cannot be read is refused with the file's name; a command that fails writes nothing.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.campaign.part import Part
from typer.testing import CliRunner

from commands import conllu
from vcrf import VCRF, read_corpus
from vcrf.cli.app import app
from vcrf.data import SyntheticLanguage
from vcrf.data.raw import open_raw
from vcrf.errors import InputError

_COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
_SUFFIXES = ["", "", "", ".gz", ".bz2", ".xz"]
# One case in so many goes through a command, and one in so many is large.
_COMMANDS, _LARGE = 100, 2_500
_ODD = [
    "\r", "\r\n", "\n\n", "\t", "\t\t", " ", "\u2028", "\u0085", "\x0b", "\x0c", "\x1c", "\xa0", "\ufeff", "\0", "#",
    "# ", "# split = train\n", "_", "-", "1-2\t", "1.1\t", "0\t", "99999999999999999999\t", "-DOCSTART- -X- O O\n", "é",
    "é", "😀", "\u202e", "\u200b", "|", "=", '"', "'", "\\", "%s", "{}", "\x1b[2J", "a" * 300, "\n" * 50,
]  # fmt: skip
_BYTES = [
    b"\xff",
    b"\xfe\xff",
    b"\xff\xfe",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\x80",
    b"\xc0\xaf",
    b"\x1a",
]


@dataclass
class State:
    """What every case needs."""

    scratch: Path
    model: Path
    bases: dict[str, str]


def prepare(scratch: Path) -> State:
    """A small corpus in each format, and a model for the commands."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=20, seed=1).sample(8, seed=2)
    columns = "".join(
        "".join(f"{token}\t{label}\n" for token, label in zip(tokens, labels, strict=True)) + "\n"
        for tokens, labels in zip(corpus.tokens, corpus.labels, strict=True)
    )
    text = "".join(" ".join(tokens) + "\n" for tokens in corpus.tokens)
    model = scratch / "model.vcrf"
    VCRF(recipe="paper", base_strength=0.05, tags=2).fit(corpus.tokens, corpus.labels).save(model)
    return State(scratch, model, {"conllu": conllu(corpus, "train"), "columns": columns, "text": text})


def attack(state: State, rng: np.random.Generator) -> str:
    """Make a file and read it in a way drawn at random."""
    kind = str(rng.choice(list(state.bases)))
    suffix = str(rng.choice(_SUFFIXES))
    name = f"{rng.choice(['data', 'a b', 'ü', '-x'])}{rng.choice(['.conllu', '.tsv', '.txt', ''])}{suffix}"
    path = state.scratch / name
    is_large = rng.integers(_LARGE) == 0
    path.write_bytes(_large(rng) if is_large else _content(state.bases[kind], suffix, rng))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if rng.integers(_COMMANDS) == 0 or is_large:
                return _through_a_command(state, path, rng)
            return _read_labelled(path, rng) if rng.random() < 0.5 else _read_raw(path, rng)
    finally:
        path.unlink(missing_ok=True)


# ------------------------------------------------------------------------------------ making files


def _content(base: str, suffix: str, rng: np.random.Generator) -> bytes:
    for _ in range(int(rng.choice([0, 0, 1, 1, 2, 5]))):
        base = _edited(base, rng)
    data = base.encode(str(rng.choice(["utf-8", "utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16"])), "surrogatepass")
    for _ in range(int(rng.choice([0, 0, 0, 1, 2]))):
        data = _damaged(data, rng)
    if suffix and rng.random() < 0.9:
        data = _COMPRESS[suffix](data)
        if rng.random() < 0.1:  # twice, or two archives one after the other
            data = _COMPRESS[suffix](data) if rng.random() < 0.5 else data + data
        if rng.random() < 0.4:
            data = _damaged(data, rng)
    return data


def _edited(text: str, rng: np.random.Generator) -> str:
    at, end = sorted(rng.integers(0, len(text) + 1, 2).tolist())
    odd = _ODD[int(rng.integers(len(_ODD)))]
    match int(rng.integers(9)):
        case 0 | 1 | 2:
            return text[:at] + odd + text[at:]
        case 3:
            return text.replace("\n", str(rng.choice(["\r\n", "\r", "\n\r", " \n", "\n\n", "\u2028"])))
        case 4:
            return text.replace("\t", str(rng.choice([" ", "  ", "\t\t", ",", ""])))
        case 5:
            lines = text.splitlines(keepends=True)
            rng.shuffle(lines)
            return "".join(lines)
        case 6:
            return text[:at] + text[min(end, at + 50) :]
        case 7:
            return text[:at]
        case _:
            return re.sub(r"\w+", lambda m: odd if rng.random() < 0.05 else m[0], text)


def _damaged(data: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(data) + 1))
    match int(rng.integers(5)):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + bytes([int(rng.integers(256))]) + data[at + 1 :]
        case 2:
            return data[:at] + _BYTES[int(rng.integers(len(_BYTES)))] + data[at:]
        case 3:
            return data[:at] + data[at + int(rng.integers(1, 20)) :]
        case _:
            return data + bytes(int(rng.integers(1, 50)))


def _large(rng: np.random.Generator) -> bytes:
    """Lines of megabytes, sentences of a million tokens, archives of zeros."""
    match int(rng.integers(4)):
        case 0:
            return b"a" * int(rng.choice([10_000_000, 20_000_000])) + b"\tN\n"
        case 1:
            return b"word\tN\n" * 1_100_000
        case 2:
            return gzip.compress(bytes(300_000_000), 1)
        case _:
            return b"w " * 1_100_000 + b"\n"


# ------------------------------------------------------------------------------------ reading them


def _read_labelled(path: Path, rng: np.random.Generator) -> str:
    tag = ["upos", "upos", "upos", "xpos", 1, -1, 3, 20][int(rng.integers(8))]
    split = "train" if rng.random() < 0.3 else None
    format_name = [None, None, None, "conllu", "columns"][int(rng.integers(5))]
    try:
        corpus = read_corpus(path, tag, split, format_name)
    except InputError as refusal:
        _check_named(str(refusal), path)
        return "refused"
    for sentence in corpus:
        assert len(sentence.tokens) == len(sentence.labels) > 0
        assert all(sentence.tokens)
        assert all(sentence.labels)
        line = int(sentence.source.rpartition(":")[2])
        assert line > 0
    "".join(label for labels in corpus.labels for label in labels).encode()  # can be written again
    return "read"


def _read_raw(path: Path, rng: np.random.Generator) -> str:
    """What `vcrf tag` reads: all lines come back as they are, through a pipe too."""
    input_format = str(rng.choice(["auto", "auto", "conllu", "columns", "text"]))
    source, writer = (path, None) if rng.random() < 0.9 else _as_fifo(path)
    try:
        file = open_raw(source, input_format)  # type: ignore[arg-type]
        blocks = [sentence for block in file.blocks for sentence in block]
    except InputError as refusal:
        _check_named(str(refusal), source)
        return "refused"
    finally:
        if writer is not None:
            writer.join()
            source.unlink()
    written = ("\ufeff" if file.has_bom else "") + "".join(line for each in blocks for line in each.lines)
    assert written == _decoded(path), "lines were lost or changed"
    return "read"


def _as_fifo(path: Path) -> tuple[Path, threading.Thread]:
    """The same bytes through a named pipe."""
    pipe = path.with_name("pipe" + "".join(path.suffixes))
    os.mkfifo(pipe)

    def write() -> None:
        try:
            with pipe.open("wb") as file:
                file.write(path.read_bytes())
        except BrokenPipeError:  # the reader has seen enough
            pass

    writer = threading.Thread(target=write)
    writer.start()
    return pipe, writer


def _decoded(path: Path) -> str:
    data = path.read_bytes()
    for suffix, magic, opened in ((".gz", b"\x1f\x8b", gzip), (".bz2", b"BZh", bz2), (".xz", b"\xfd7zXZ\x00", lzma)):
        if path.suffix == suffix or data.startswith(magic):
            with opened.open(io.BytesIO(data)) as file:  # type: ignore[attr-defined]
                return str(file.read().decode("utf-8"))
    return data.decode("utf-8")


def _through_a_command(state: State, path: Path, rng: np.random.Generator) -> str:
    out = state.scratch / "out"
    out.write_text("as it was", encoding="utf-8")
    given = f"./{path.name}"
    calls = [
        ["train", given, "-o", str(out), "--max-passes", "2"],
        ["tag", str(state.model), given, "-o", str(out)],
        ["tag", str(state.model), given, "--format", "json", "-o", str(out)],
        ["eval", str(state.model), given],
        ["classes", given, "-o", str(out), "--number", "3", "--min-count", "1"],
    ]
    call = calls[int(rng.integers(len(calls)))]
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # two passes are too few, and it says so
        done = CliRunner().invoke(app, call)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert "Traceback" not in done.stderr
    assert done.exit_code in (0, 1, 2), done.exit_code
    is_kept = out.read_bytes() == b"as it was"
    out.unlink()
    if done.exit_code:
        assert is_kept, f"{call}: the old file was lost"
        assert path.name in done.stderr, (call, done.stderr)
        return "command refused"
    return "command done"


def _check_named(message: str, path: Path) -> None:
    assert path.name in message or message.startswith(("tag=", "`tag=")), (
        message
    )  # a column that no file has is a wrong call
    assert len(message) < 2_000, len(message)


PART = Part(
    name="inputs",
    about="files to read that are damaged, odd or hostile",
    count=50_000,
    limit=120.0,
    prepare=prepare,
    attack=attack,
)
