"""Memory and speed of `vcrf tag` on a text that is piped through it: the peak must not grow with the text.

    python benchmarks/streaming.py --megabytes 100

Trains a small model on an invented corpus, then pipes text of the same language through `vcrf tag`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from vcrf import VCRF
from vcrf.data import SyntheticLanguage

# The command measures itself: a parent knows only the largest of all its children.
COMMAND = """
import resource, sys
from vcrf.cli.app import app
try:
    app()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def train(path: Path) -> None:
    corpus = SyntheticLanguage().sample(200)
    VCRF(recipe="paper", base_strength=0.01).fit(corpus.tokens, corpus.labels).save(path)


def sample_lines() -> bytes:
    """About a megabyte of sentences, one a line."""
    tokens = SyntheticLanguage().sample(12_000, seed=1).tokens
    return "".join(" ".join(sentence) + "\n" for sentence in tokens).encode()


def pipe(model: Path, text: bytes, n_bytes: int, options: list[str]) -> tuple[float, float, int]:
    """Return peak MB, seconds and tokens."""
    command = [sys.executable, "-c", COMMAND, "tag", str(model), *options]
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ
    ) as process:
        n_copies = max(1, round(n_bytes / len(text)))
        for _ in range(n_copies):
            process.stdin.write(text)
        process.stdin.close()
        peak = int(process.stderr.read().split()[-1]) / 1024
        if process.wait() != 0:
            raise SystemExit(f"vcrf tag failed with exit code {process.returncode}")
    return peak, time.perf_counter() - began, n_copies * len(text.split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("options", nargs="*", help="further options of vcrf tag, after --")
    args = parser.parse_args()
    text = sample_lines()
    with tempfile.TemporaryDirectory() as directory:
        model = Path(directory) / "model.vcrf"
        train(model)
        small, _, _ = pipe(model, text, 2 * len(text), args.options)
        peak, seconds, n_tokens = pipe(model, text, int(args.megabytes * 1e6), args.options)
    print(f"{2 * len(text) / 1e6:.0f} MB of text: peak {small:.0f} MB")
    print(f"{args.megabytes:.0f} MB of text: peak {peak:.0f} MB, {n_tokens / seconds:,.0f} tokens a second")
    print(f"ratio of the peaks {peak / small:.2f}")


if __name__ == "__main__":
    main()
