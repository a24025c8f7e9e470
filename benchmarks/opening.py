"""Time to open a model file, beside `import numpy` in a process of its own; and what the first runs cost.

    python benchmarks/opening.py [tamil basque english] [--passes 30]
    python benchmarks/opening.py tamil --first

With `--first` processor seconds of `vcrf train` and `vcrf tag` in new processes: with an empty cache of kernels each,
and once more with the cache that the first left.

The model has a weight for every observed pair (norm="l2", few passes): larger than what is trained to the end with
the sparse norm. Opening is timed when the modules are there already; best and median of 15. The treebanks are read
from `../shared/data`.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import vcrf
from vcrf import VCRF, read_corpus
from vcrf.model import container
from vcrf.model import file as model_file

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def milliseconds(action: Callable[[], object], repeats: int = 15) -> str:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        action()
        times.append(1e3 * (time.perf_counter() - began))
    return f"{min(times):7.1f} {statistics.median(times):7.1f} ms"


def import_numpy() -> None:
    subprocess.run([sys.executable, "-c", "import numpy"], check=True)


def measure(name: str, passes: int, path: Path) -> None:
    corpus = read_corpus(DATA / f"{name}.conllu.gz", split="train")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the weights need not be good
        form = {"recipe": "paper", "norm": "l2", "count_power": 0.35, "base_strength": 0.09 / len(corpus)}
        tagger = VCRF(**form, candidates="observed", max_passes=passes).fit(corpus.tokens, corpus.labels)
    tagger.save(path)
    model = tagger.model_
    print(
        f"{name}: {len(model.keys):,} attributes, {len(model.weights):,} weights, {path.stat().st_size / 1e6:.1f} MB",
        flush=True,
    )
    print(f"  import numpy, new process {milliseconds(import_numpy)}")
    print(f"  vcrf.load                 {milliseconds(lambda: vcrf.load(path))}")
    print(f"  of which checksums        {milliseconds(lambda: container.decode(container.map_file(path), name))}")
    print(f"  read_facts                {milliseconds(lambda: model_file.read_facts(path))}")
    print(f"  save                      {milliseconds(lambda: tagger.save(path))}", flush=True)


def processor_seconds(cache: Path, *args: object) -> float:
    """Of a command in a process of its own, one thread, with kernels kept in a directory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    variables = os.environ | {"NUMBA_CACHE_DIR": str(cache), "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "vcrf", *map(str, args)]
    subprocess.run(command, check=True, env=variables, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_runs(name: str, directory: Path) -> None:
    data, model = DATA / f"{name}.conllu.gz", directory / "first.vcrf"
    calls = {"train": ["train", data, "--split", "train", "-o", model], "tag": ["tag", model, data]}
    for command, args in calls.items():
        cold, warm = (processor_seconds(directory / command, *args) for _ in range(2))
        print(f"{name}: vcrf {command}, processor seconds: empty cache {cold:.1f}, filled {warm:.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["tamil", "basque"])
    parser.add_argument("--passes", type=int, default=30)
    parser.add_argument("--first", action="store_true", help="what the first runs cost")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        for name in options.names:
            if options.first:
                first_runs(name, Path(directory))
            else:
                measure(name, options.passes, Path(directory) / "model.vcrf")


if __name__ == "__main__":
    main()
