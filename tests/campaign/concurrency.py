"""Many at once: threads, forked and spawned processes, cold caches, writers of one file; and hostile surroundings.

Whatever runs beside it, a result is that of a process alone, and nothing hangs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from tests.campaign.part import Part
from tests.campaign.patience import Patience, end_of

import vcrf
from commands import conllu, environment
from vcrf import VCRF
from vcrf.data import Corpus, SyntheticLanguage
from vcrf.estimators.file import load
from vcrf.labelling.loading import load_tagger

# Processor seconds of a command, or of the threads of one case.
_LIMIT = 240.0
_STRENGTHS = (0.3, 0.1, 0.03)
_ODD = ["Ζεύς", "naïve", "日本", "🙂", "a"]


@dataclass(frozen=True)
class State:
    """What a process alone finds."""

    directory: Path
    corpus: Corpus
    model: Path
    text: Path
    labelled: bytes
    fits: dict[float, bytes]


def _prepare(directory: Path) -> State:
    corpus = SyntheticLanguage(n_labels=6, n_stems=60).sample(120)
    tokens = [*corpus.tokens[:-1], _ODD]
    corpus = Corpus(tokens, [*corpus.labels[:-1], [corpus.labels[0][0]] * len(_ODD)], corpus.sources)
    model, text = directory / "model.vcrf", directory / "text.conllu"
    with warnings.catch_warnings(action="ignore"):
        fits = {strength: _fit(corpus, strength) for strength in _STRENGTHS}
        VCRF(recipe="paper", base_strength=0.02, max_passes=20).fit(corpus.tokens, corpus.labels).save(model)
    text.write_text(conllu(corpus), encoding="utf-8")
    labelled = _command(["tag", model, text], environment()).stdout
    return State(directory, corpus, model, text, labelled, fits)


def _fit(corpus: Corpus, strength: float) -> bytes:
    """The weights of a fit; it warns that it is not done."""
    tagger = VCRF(recipe="paper", base_strength=strength / 50, max_passes=15, n_jobs=2).fit(
        corpus.tokens, corpus.labels
    )
    return tagger.result_.weights.tobytes()


# ------------------------------------------------------------------------------------ processes


def _start(args: list[Any], env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *map(str, args)], env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def _ends(processes: list[subprocess.Popen[bytes]]) -> list[subprocess.CompletedProcess[bytes]]:
    """Wait for all; one that fails, or does not end, is a finding."""
    ends = []
    try:
        for process in processes:
            out, err = end_of(process, _LIMIT)
            assert process.returncode == 0, f"{process.args}: exit code {process.returncode}\n{err.decode()}"
            assert b"Traceback" not in err, f"{process.args}\n{err.decode()}"
            ends.append(subprocess.CompletedProcess(process.args, 0, out, err))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return ends


def _command(args: list[Any], env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    return _ends([_start(["-m", "vcrf", *args], env)])[0]


def _folder(state: State) -> Path:
    folder = state.directory / f"case-{time.monotonic_ns()}"
    folder.mkdir()
    return folder


# ------------------------------------------------------------------------------------ in one process


def _threads(state: State, rng: np.random.Generator) -> None:
    """Threads that predict and fit at once."""
    tagger = load(state.model) if rng.random() < 0.5 else load_tagger(state.model)
    X = [state.corpus.tokens[i] for i in rng.integers(0, len(state.corpus), 40)]
    alone = [method(X) for method in _methods(tagger)]
    jobs: list[Callable[[], bool]] = []
    for _ in range(int(rng.integers(2, 7))):
        i, strength = int(rng.integers(len(alone))), float(rng.choice(_STRENGTHS))
        if rng.random() < 0.3:
            jobs.append(lambda strength=strength: _fit(state.corpus, strength) == state.fits[strength])
        else:
            jobs.append(lambda i=i: all(_methods(tagger)[i](X) == alone[i] for _ in range(3)))
    found: list[object] = [None] * len(jobs)

    def work(n: int) -> None:
        try:
            found[n] = jobs[n]()
        except BaseException as error:  # noqa: BLE001 - it is told by the thread that started this one
            found[n] = error

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(len(jobs))]
    with warnings.catch_warnings(action="ignore"):  # here: threads share the filters
        patience = Patience(lambda: [psutil.Process()], _LIMIT)
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
                assert not patience.is_over(), "a thread hangs"
    assert all(value is True for value in found), f"other results than alone: {found}"


def _methods(tagger: Any) -> list[Callable[[Any], Any]]:
    return [
        tagger.predict,
        tagger.predict_marginals,
        lambda X: tagger.predict_kbest(X, 3),
        lambda X: tagger.predict_mbr(X, "hamming"),
    ]


# ------------------------------------------------------------------------------------ children

# A parent that has used its kernels and threads, and children that do the same.
_CHILDREN = """
import hashlib, json, multiprocessing, sys, warnings
warnings.simplefilter("ignore")
from vcrf import VCRF, load
def work(task):
    path, X, y, n = task
    tagger = load(path)
    labels = tagger.predict(X)
    fit = VCRF(base_strength=0.05, max_passes=4, n_jobs=2).fit(X, y)
    return hashlib.sha256(fit.result_.weights.tobytes() + json.dumps(labels).encode()).hexdigest()
if __name__ == "__main__":
    how, n, path, data = sys.argv[1:]
    X, y = json.load(open(data, encoding="utf-8"))
    task = path, X, y, 0
    alone = work(task)
    with multiprocessing.get_context(how).Pool(int(n)) as pool:
        found = pool.map(work, [task] * (2 * int(n)))
    print(json.dumps([alone, *found]))
"""


def _children(state: State, rng: np.random.Generator, how: str) -> None:
    folder = _folder(state)
    (folder / "children.py").write_text(_CHILDREN)
    chosen = rng.integers(0, len(state.corpus), 30)
    data = [[state.corpus.tokens[i] for i in chosen], [state.corpus.labels[i] for i in chosen]]
    (folder / "data.json").write_text(json.dumps(data), encoding="utf-8")
    args = [folder / "children.py", how, int(rng.integers(1, 4)), state.model, folder / "data.json"]
    (end,) = _ends([_start(["-W", "ignore", *args], environment())])
    assert len(set(json.loads(end.stdout))) == 1, f"children find something else: {end.stdout.decode()}"


def _fork(state: State, rng: np.random.Generator) -> None:
    _children(state, rng, "fork")


def _spawn(state: State, rng: np.random.Generator) -> None:
    _children(state, rng, "spawn")


# ------------------------------------------------------------------------------------ the cache of kernels

# One kernel with several signatures: processes that fill an empty cache at once write its index over and over.
_KERNELS = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import own
for name in sys.argv[2].split(","):
    x = np.arange(5).astype(name)
    found = own.total(x)
    assert found == 10 and own.total(x) == 10, (name, found)
    assert type(found) is type(own.total.py_func(x).item()), (name, type(found))
"""
_OWN = """
from vcrf.kernels._jit import kernel
@kernel
def total(x):
    out = x[0]
    for i in range(1, len(x)):
        out += x[i]
    return out
"""


def _cold_kernels(state: State, rng: np.random.Generator) -> None:
    """Processes that compile one kernel for several types, all for the first time."""
    folder = _folder(state)
    (folder / "own.py").write_text(_OWN)
    (folder / "use.py").write_text(_KERNELS)
    env = environment() | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    kinds = ["float64", "int64", "uint32", "float32", "uint64", "int32"]
    for _ in range(2):  # the second time they are to be found
        orders = [",".join(rng.permutation(kinds)[: rng.integers(1, 7)]) for _ in range(int(rng.integers(3, 7)))]
        _ends([_start([folder / "use.py", folder, order], env) for order in orders])


def _cold_tag(state: State, rng: np.random.Generator) -> None:
    """Commands that start at once and compile all that tagging needs."""
    env = environment() | {"NUMBA_CACHE_DIR": str(_folder(state) / "cache")}
    args = ["-m", "vcrf", "tag", state.model, state.text]
    ends = _ends([_start(args, env) for _ in range(int(rng.integers(2, 4)))])
    assert all(end.stdout == state.labelled for end in ends), "other labels"
    assert _command(args[2:], env).stdout == state.labelled


def _read_only(state: State, rng: np.random.Generator) -> None:
    """An installation that cannot be written, nor the home; sometimes there is no place for temporary files either."""
    site = state.directory / "site"
    if not site.exists():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(vcrf.__file__).parent, site / "vcrf", ignore=ignored)
        (site / "vcrf" / "kernels" / "__pycache__").write_text("")
        (state.directory / "home").write_text("")
        (state.directory / "temporary").mkdir()
    home = state.directory / "home"
    temporary = state.directory / "temporary"
    if rng.random() < 0.2:
        temporary = _folder(state)
        (temporary / f"vcrf-kernels-{os.getuid()}").write_text("")
    env = environment() | {
        "PYTHONPATH": str(site), "HOME": str(home), "XDG_CACHE_HOME": str(home), "TMPDIR": str(temporary),
        "NUMBA_CACHE_DIR": str(home / "cache"),
    }  # fmt: skip
    end = _command(["tag", state.model, state.text], env)
    assert end.stdout == state.labelled, "other labels"
    assert end.stderr.count(b"Set NUMBA_CACHE_DIR") == 1, end.stderr.decode()


# ------------------------------------------------------------------------------------ surroundings


def _locale(state: State, rng: np.random.Generator) -> None:
    """Encodings that do not have the text's letters."""
    env = environment() | dict(_LOCALES[rng.integers(len(_LOCALES))])
    out = _folder(state) / "out"
    assert _command(["tag", state.model, state.text], env).stdout == state.labelled
    _command(["tag", state.model, state.text, "-o", out], env)
    assert out.read_bytes() == state.labelled
    others: list[list[Any]] = [
        ["show", state.model], ["show", state.model, "--json"], ["explain", state.model, " ".join(_ODD)],
        ["explain", state.model, " ".join(_ODD), "--json"], ["eval", state.model, state.text],
        ["tag", state.model, state.text, "--format", "json"], ["info"], ["bound", state.model, state.text],
        ["classes", state.text, "-o", out, "--number", 3, "--min-count", 1, "--json"],
    ]  # fmt: skip
    for i in rng.permutation(len(others))[:3]:
        _command(others[i], env)


_LOCALES = [
    {"LC_ALL": "C"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "ascii:strict", "LC_ALL": "POSIX"},
    {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
]


# ------------------------------------------------------------------------------------ writers

_WRITER = """
import sys, time
from vcrf.estimators.file import load
tagger = load(sys.argv[1])
until = time.monotonic() + 1.0
while time.monotonic() < until:
    tagger.save(sys.argv[2])
"""
_READER = """
import sys, time
from vcrf.estimators.file import load
until = time.monotonic() + 1.0
while time.monotonic() < until:
    assert len(load(sys.argv[1]).predict([["a", "b"]])[0]) == 2
"""


def _writers(state: State, rng: np.random.Generator) -> None:
    """Processes that write one model file over and over, and others that read it."""
    folder = _folder(state)
    path = folder / "shared.vcrf"
    path.write_bytes(state.model.read_bytes())
    writers = [["-c", _WRITER, state.model, path]] * int(rng.integers(2, 4))
    readers = [["-c", _READER, path]] * int(rng.integers(1, 3))
    _ends([_start(["-W", "ignore", *args], environment()) for args in (*writers, *readers)])
    assert path.read_bytes() == state.model.read_bytes(), "not the file that each of them wrote"
    assert [file.name for file in folder.iterdir()] == [path.name], "something is left behind"


# How often each is drawn: those that compile everything take half a minute.
_KINDS: dict[str, tuple[Callable[[State, np.random.Generator], None], float]] = {
    "threads": (_threads, 0.25), "fork": (_fork, 0.12), "spawn": (_spawn, 0.1), "cold kernels": (_cold_kernels, 0.2),
    "cold tag": (_cold_tag, 0.05), "read-only": (_read_only, 0.08), "locale": (_locale, 0.1),
    "writers": (_writers, 0.1),
}  # fmt: skip


def _attack(state: State, rng: np.random.Generator) -> str:
    name = str(rng.choice(list(_KINDS), p=[share for _, share in _KINDS.values()]))
    _KINDS[name][0](state, rng)
    return name


PART = Part(
    "concurrency", "threads, forks, cold and read-only caches, odd locales, writers of one file", count=60,
    limit=600.0, prepare=_prepare, attack=_attack, jobs=1,
)  # fmt: skip
