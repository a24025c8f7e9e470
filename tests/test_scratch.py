"""Arrays in files: the same results to the last bit, and nothing is left behind."""

from __future__ import annotations

import errno
import gc
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import Call, conllu, start
from vcrf import M3N, VCRF, StructSVM, VExponential, load, scratch
from vcrf.data import SyntheticLanguage, read_corpus
from vcrf.data.interned import InternedCorpus
from vcrf.data.readers import read_corpora
from vcrf.errors import InputError, WriteError
from vcrf.scratch import Scratch, read_size

CORPUS = SyntheticLanguage(n_labels=4, n_stems=40).sample(30, seed=3)
DICTS = [[{"w": word, "n": 0.5 * len(word), "first": t == 0} for t, word in enumerate(x)] for x in CORPUS.tokens]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every array is large, and every few of them are too much."""
    monkeypatch.setattr(scratch, "_LEAST_BYTES", 64)
    monkeypatch.setattr(scratch, "_WORTH", 0)
    monkeypatch.setattr(scratch, "_SECONDS", 0.001)


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2 * 10**9), ("500 mb", 5 * 10**8), ("1.5GiB", 3 << 29), ("7", 7), (7, 7), ("3k", 3000), ("1TB", 10**12)],
)
def test_sizes(text: object, size: int) -> None:
    """As people write them."""
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["2 bananas", "", "GB", "-1GB", "0", 0, -5, True, 1.5, "nan GB", "inf", "1e999", None])
def test_what_is_no_size_is_refused(text: object) -> None:
    """By name, with an example."""
    with pytest.raises(InputError, match=r"`memory=.*expected a size such as 2GB"):
        read_size(text)
    if text is not None:
        with pytest.raises(InputError, match="memory"):
            VCRF(memory=text).fit(CORPUS.tokens, CORPUS.labels)  # type: ignore[arg-type]


@pytest.mark.usefixtures("small")
def test_arrays_are_like_others(tmp_path: Path) -> None:
    """Zeros are zeros, also in the pages of an array that is gone; what is let go comes back."""
    with Scratch(1, tmp_path) as here:
        a = scratch.empty((100, 3), np.uint32)
        a[...] = np.arange(300).reshape(100, 3)
        here.trim()
        assert np.array_equal(a, np.arange(300).reshape(100, 3))
        b = scratch.concatenate([a, a])
        assert np.array_equal(b, np.concatenate([a, a]))
        assert here.used >= a.nbytes + b.nbytes
        b[...] = 7
        del b
        again = scratch.zeros((200, 3), np.uint32)
        assert not np.any(again)
        kept = scratch.keep(np.arange(50))
        assert np.array_equal(kept, np.arange(50))
        assert scratch.empty(3).shape == (3,)
        assert list(tmp_path.iterdir()) == []  # files have no names
    del again, kept
    assert np.array_equal(a, np.arange(300).reshape(100, 3))  # those that somebody holds stay
    del a
    gc.collect()
    assert here.used == 0
    assert isinstance(scratch.empty(1000).base, type(None))


def test_resident_memory_is_let_go(tmp_path: Path) -> None:
    """Of what is written to files no more stays than the budget, and a little."""
    before, _ = scratch.resident_bytes()
    with Scratch(before + (64 << 20), tmp_path):
        arrays = []
        for i in range(12):
            arrays.append(scratch.empty(4 << 20))  # 32 MB each
            for first in range(0, 4 << 20, 1 << 18):
                arrays[-1][first : first + (1 << 18)] = i
        resident = []
        for _ in range(100):  # the thread that looks may have to wait for its turn
            resident.append(scratch.resident_bytes()[0])
            if resident[-1] < before + (128 << 20):
                break
            os.sched_yield() if hasattr(os, "sched_yield") else None
            scratch._active.get()._is_over.wait(0.05)  # type: ignore[union-attr]
        assert resident[-1] < before + (128 << 20)
        assert [float(a[-1]) for a in arrays] == list(range(12))


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="room is taken at once where that is there")
def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a page is written; nothing is left."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    monkeypatch.setattr(scratch, "_LEAST_BYTES", 64)
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    with pytest.raises(WriteError, match=r"no room for the files of `memory`: No space left.*TMPDIR"):
        VCRF(memory="1GB").fit(CORPUS.tokens, CORPUS.labels)
    assert list(tmp_path.iterdir()) == []
    assert scratch._active.get() is None


def test_room_is_looked_for_first(tmp_path: Path) -> None:
    """With what is needed and what there is."""
    with Scratch(10**9, tmp_path) as here:
        scratch.check_room(1.0)
        with pytest.raises(WriteError, match=r"about 1,000,000,000,000 MB are needed"):
            scratch.check_room(1e18)
    assert here.directory == tmp_path
    scratch.check_room(1e18)  # in memory


SETTINGS: list[tuple[type[VCRF], dict[str, Any], list[Any]]] = [
    (VCRF, {}, CORPUS.tokens),
    (VCRF, {"recipe": "paper", "base_strength": 0.02}, CORPUS.tokens),
    (VCRF, {"norm": "group", "words": 1, "affix": 1, "tol": 0.02}, CORPUS.tokens),
    (VCRF, {"tags": 3, "inference": "patterns", "words": 1, "affix": 1, "tol": 0.02}, CORPUS.tokens),
    (VCRF, {"loss": "edit", "words": 1, "affix": 1, "tol": 0.02}, CORPUS.tokens[:10]),
    (VCRF, {"candidates": "observed", "dual_start": False}, DICTS),
    (VExponential, {"words": 1, "affix": 1, "tol": 0.02}, CORPUS.tokens),
    (M3N, {"words": 1, "affix": 1}, CORPUS.tokens),
    (StructSVM, {"words": 1, "affix": 1}, CORPUS.tokens[:10]),
]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("estimator", "given", "X"), SETTINGS)
@pytest.mark.filterwarnings("ignore")
def test_the_result_is_the_same(estimator: type[VCRF], given: dict[str, Any], X: list[Any]) -> None:
    """Weights, objective and certificate, to the last bit; with two threads too."""
    y = CORPUS.labels[: len(X)]
    plain = estimator(max_passes=60, n_jobs=1, **given).fit(X, y)
    for jobs in (1, 2):
        found = estimator(max_passes=60, n_jobs=jobs, memory=1, **given).fit(X, y)
        assert found.model_.weights.tobytes() == plain.model_.weights.tobytes()
        assert found.model_.keys.tobytes() == plain.model_.keys.tobytes()
        assert (found.objective_, found.gap_) == (plain.objective_, plain.gap_)
        assert found.predict(X) == plain.predict(X)
    assert scratch._active.get() is None


@pytest.mark.usefixtures("small")
def test_tuning_is_the_same() -> None:
    """The table of the search."""
    given: dict[str, Any] = {"words": 1, "affix": 1, "max_passes": 30, "n_jobs": 1}
    rows = [
        VCRF(memory=memory, **given).tune(CORPUS.tokens, CORPUS.labels, folds=2, base_strengths=[0.1]).rows
        for memory in (None, 1)
    ]
    first, second = ([replace(row, seconds=0.0) for row in found] for found in rows)
    assert first == second


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A treebank with two splits, Windows line ends and a byte order mark."""
    path = tmp_path / "bank.conllu"
    text = "\ufeff" + conllu(CORPUS[:20], "train") + conllu(CORPUS[20:], "dev")
    path.write_bytes(text.replace("\n", "\r\n").encode())
    return path


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small file has many pieces."""
    monkeypatch.setattr("vcrf.data.stream._CHUNK", 700)
    monkeypatch.setattr("vcrf.data.interned._CHUNK", 16)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("split", [None, "dev"])
def test_a_corpus_is_read_as_it_comes(split: str | None, file: Path) -> None:
    """The same sentences, labels and places, of one file and of two."""
    for paths in ([file], [file, file]):
        found, layout = read_corpora(paths, "upos", split, is_streamed=True)
        plain, expected = read_corpora(paths, "upos", split)
        assert isinstance(found, InternedCorpus)
        assert layout == expected
        assert list(found) == list(plain)
        assert (len(found), found.n_tokens, found.label_set) == (len(plain), plain.n_tokens, plain.label_set)
        assert found.tokens[-1] == plain.tokens[-1]
        assert found.tokens[1:4] == plain.tokens[1:4]
        assert found.sources[1:3] == plain.sources[1:3]


@pytest.mark.parametrize(
    ("content", "how"),
    [
        ("a X\nb Y\n\nc\n", {}),
        ("1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n\n" * 90 + "1\ta\t_\tX\n", {}),
        ("# split = a\n1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n\n" * 90, {"split": "b"}),
        ("1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n\n" * 90, {"split": "b"}),
        ("", {}),
        ("a X\n\n" * 500 + "\0 X\n", {}),
    ],
)
@pytest.mark.usefixtures("small_chunks")
def test_errors_are_the_same(content: str, how: dict[str, Any], tmp_path: Path) -> None:
    """With the line of the file."""
    path = tmp_path / "bad"
    path.write_text(content, encoding="utf-8")
    messages = []
    for is_streamed in (False, True):
        with pytest.raises(InputError) as caught:
            read_corpora([path], how.get("tag"), how.get("split"), is_streamed=is_streamed)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.usefixtures("small", "small_chunks")
def test_the_command(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same weights from a file that is read once, and nothing in the scratch directory."""
    scratched = tmp_path / "scratch"
    scratched.mkdir()
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(scratched))
    call, models = Call(), [tmp_path / "a.vcrf", tmp_path / "b.vcrf"]
    args = ("train", file, "--split", "train", "--dev-split", "dev", "--max-passes", 20, "--recipe", "paper")
    call(*args, "-o", models[0])
    result = call(*args, "-o", models[1], "--memory", "100MB")
    assert "20 sentences" in result.stderr
    first, second = map(load, models)
    assert first.model_.weights.tobytes() == second.model_.weights.tobytes()
    assert first.model_.sentences.tobytes() == second.model_.sentences.tobytes()
    assert first.model_.facts.data_checksum == second.model_.facts.data_checksum
    assert second.memory == "100MB"
    assert list(scratched.iterdir()) == []
    assert "--memory 2 bananas: expected a size" in call(*args, "-o", models[1], "--memory", "2 bananas", code=2).stderr
    assert read_corpus(file).n_tokens == CORPUS.n_tokens


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_signal_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even while it trains are there names in the scratch directory."""
    data, scratched = tmp_path / "long.conllu", tmp_path / "scratch"
    data.write_text(conllu(SyntheticLanguage().sample(600)), encoding="utf-8")
    scratched.mkdir()
    args = ("train", data, "-o", tmp_path / "m.vcrf", "--recipe", "paper", "--base-strength", 1e-4, "--memory", "1MB")
    monkeypatch.setenv("TMPDIR", str(scratched))
    with start(*args) as process:
        assert process.stderr is not None
        for _ in range(3):
            while b"training" not in (line := process.stderr.readline()):
                assert line, "the command ended before"
        assert list(scratched.iterdir()) == []
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == 143
    assert load(tmp_path / "m.vcrf").status_.name == "INTERRUPTED"
    assert list(scratched.iterdir()) == []
