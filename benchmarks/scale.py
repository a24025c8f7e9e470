"""Training on more and more data, in memory and with a budget: seconds a pass, peak memory, and how they grow.

    python benchmarks/scale.py [--times 1 2 4] [--memory 600MB] [--passes 30]
    python benchmarks/scale.py --times 4 --workers 1 2

The training part of the English treebank is written so many times into one file; in every copy but the first a part
of the words is drawn anew: one in twenty is another word with the same label, one in a hundred a new word. Each
training is a process of its own that reads the file (with a budget as it comes) and stops after some passes: the
objective has to be the same to the last bit. Seconds are processor time of one thread. Slopes are those of the
logarithms. With `--workers` the same file is trained on by a Dask cluster of so many processes of one thread on this
machine: seconds are those of the clock there, a pass is what is left of the time after the first scan, when blocks are
built and kernels loaded, and the bits have to be the same with any number of workers. The treebanks are read from
`../shared/data`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import peers

if TYPE_CHECKING:
    from vcrf.cluster import OnDask
    from vcrf.solvers.result import IterationRecord

_OTHER, _NEW = 0.05, 0.01
# Column files have a third of the bytes of CoNLL-U.
_BYTES_OF_PART = 1 << 19


def write_copies(path: Path, times: int) -> int:
    """The treebank so many times as a column file; the number of tokens."""
    sentences, labels = peers.read_treebank("english", "train")
    by_label: dict[str, list[str]] = {}
    for x, y in zip(sentences, labels, strict=True):
        for word, label in zip(x, y, strict=True):
            by_label.setdefault(label, []).append(word)
    rng = np.random.default_rng(0)
    n = 0
    with path.open("w", encoding="utf-8") as file:
        for copy in range(times):
            for x, y in zip(sentences, labels, strict=True):
                drawn = rng.random(len(x)) if copy else np.ones(len(x))
                for word, label, p in zip(x, y, drawn.tolist(), strict=True):
                    if p < _NEW:
                        word = f"{word}{rng.integers(1000)}"
                    elif p < _OTHER:
                        word = by_label[label][rng.integers(len(by_label[label]))]
                    file.write(f"{word}\t{label}\n")
                    n += 1
                file.write("\n")
    return n


def train(path: Path, memory: str | None, passes: int) -> None:
    """Train in this process, and print what it took."""
    from vcrf import VCRF, scratch
    from vcrf.data.readers import read_corpora

    peak = 0

    def look(_: object) -> None:
        nonlocal peak
        here = scratch._active.get()
        peak = 0 if here is None else here.peak

    warnings.simplefilter("ignore")
    with scratch.within(memory):
        began = time.process_time()
        corpus, _ = read_corpora([path], format="columns", is_streamed=memory is not None)
        tagger = VCRF(max_passes=passes, n_jobs=1, callback=look, memory=memory)
        data = tagger._read(corpus.tokens, corpus.labels, None)
        read = time.process_time()
        wall = time.perf_counter()
        tagger._solve(data, None)
        solved = time.process_time()
    print(json.dumps({
        "reading": read - began, "a_pass": (solved - read) / tagger.result_.n_passes,
        "wall_a_pass": (time.perf_counter() - wall) / tagger.result_.n_passes, "passes": tagger.result_.n_passes,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "files": peak / 1e6,
        "objective": tagger.objective_.hex(), "gap": tagger.gap_.hex(),
        "weights": hash(tagger.model_.weights.tobytes()),
    }))  # fmt: skip


def measured(path: Path, memory: str | None, passes: int) -> dict[str, float]:
    """What a training takes in a process of its own."""
    command = [sys.executable, __file__, "--file", str(path), "--passes", str(passes)]
    done = subprocess.run(
        [*command, *(["--memory", memory] if memory else [])],
        stdout=subprocess.PIPE, check=True, env={**os.environ, "PYTHONHASHSEED": "0", "NUMBA_NUM_THREADS": "1"},
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    return found


class _Look:
    """A callback that notes time, passes and bytes."""

    def __init__(self, runner: OnDask) -> None:
        self.runner, self.began = runner, time.perf_counter()
        self.seen: list[tuple[float, int, int]] = []

    def __call__(self, record: IterationRecord) -> None:
        self.seen.append((time.perf_counter() - self.began, record.n_passes, self.runner.n_bytes))


def on_dask(times: list[int], workers: list[int], passes: int) -> None:
    """Print a table of trainings on workers."""
    import distributed

    from vcrf import VCRF
    from vcrf.cluster import OnDask
    from vcrf.data.parts import parts_of_files
    from vcrf.estimators.cluster import fit_blocks

    warnings.simplefilter("ignore")
    print("| tokens | blocks | workers | until the first scan, s | s a pass | MB a pass | same bits |")
    print("|---|---|---|---|---|---|---|")
    for n in times:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "copies.tsv"
            n_tokens, bits = write_copies(path, n), set()
            parts, _ = parts_of_files([path], of_part=_BYTES_OF_PART)
            for n_workers in workers:
                with (
                    distributed.LocalCluster(
                        n_workers=n_workers, threads_per_worker=1, dashboard_address=None, silence_logs="ERROR"
                    ) as cluster,
                    distributed.Client(cluster) as client,
                ):
                    runner = OnDask(client)
                    look = _Look(runner)
                    tagger = fit_blocks(VCRF(max_passes=passes, callback=look), parts, runner)
                bits.add((tagger.objective_.hex(), tagger.gap_.hex(), tagger.model_.weights.tobytes()))
                seconds, made, moved = (b - a for a, b in zip(look.seen[0], look.seen[-1], strict=True))
                print(
                    f"| {n_tokens:,} | {len(parts)} | {n_workers} | {look.seen[0][0]:.1f} | {seconds / made:.3f} | "
                    f"{moved / made / 1e6:.1f} | {'yes' if len(bits) == 1 else 'NO'} |",
                    flush=True,
                )
    print(f"load of the machine {os.getloadavg()[0]:.1f}")


def slope(x: list[int], y: list[float]) -> float:
    """Of the logarithms, by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def compare(times: list[int], memory: str, passes: int) -> None:
    """Print a table."""
    print("| tokens | memory | reading, s | s a pass (wall) | passes | peak, MB | files, MB | same result |")
    print("|---|---|---|---|---|---|---|---|")
    sizes, found = [], []
    for n in times:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "copies.tsv"
            sizes.append(write_copies(path, n))
            pair = [measured(path, budget, passes) for budget in (None, memory)]
        same = all(pair[0][name] == pair[1][name] for name in ("objective", "gap", "weights", "passes"))
        for budget, row in zip(("all", memory), pair, strict=True):
            print(
                f"| {sizes[-1]:,} | {budget} | {row['reading']:.1f} | {row['a_pass']:.3f} ({row['wall_a_pass']:.3f}) | "
                f"{row['passes']} | {row['peak']:,.0f} | {row['files']:,.0f} | {'yes' if same else 'NO'} |",
                flush=True,
            )
        found.append(pair)
    if len(times) > 1:
        for i, budget in enumerate(("all", memory)):
            of = {name: slope(sizes, [pair[i][name] for pair in found]) for name in ("reading", "a_pass", "peak")}
            print(f"slopes, {budget}: " + ", ".join(f"{name} {value:.2f}" for name, value in of.items()))
    print(f"load of the machine {os.getloadavg()[0]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--memory")
    parser.add_argument("--passes", type=int, default=30)
    parser.add_argument("--workers", type=int, nargs="*")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.file is not None:
        train(options.file, options.memory, options.passes)
    elif options.workers:
        on_dask(options.times, options.workers, options.passes)
    else:
        compare(options.times, options.memory or "600MB", options.passes)


if __name__ == "__main__":
    main()
