"""`python -m tests.fuzz --seconds 600`: the tests of drawn cases with new seeds, round after round."""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
# pytest: all passed, or nothing was left to run.
_GOOD = (0, 5)


def main() -> None:
    """Run rounds until the time is over; exit code 1 if a test failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=secrets.randbits(31), help="of the first round; drawn if not given")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("paths", nargs="*", help="tests, all if none is given")
    given = parser.parse_args()
    deadline, codes = time.monotonic() + given.seconds, []
    while time.monotonic() < deadline or not codes:
        seed = given.seed + len(codes)
        print(f"fuzz: seed {seed}", flush=True)  # noqa: T201 - a program of its own
        codes.append(_round(seed, max(deadline - time.monotonic(), 1.0), given.jobs, given.paths))
    failed = sum(code not in _GOOD for code in codes)
    last = given.seed + len(codes) - 1
    print(f"fuzz: seeds {given.seed} to {last}, {failed} of {len(codes)} rounds failed")  # noqa: T201
    sys.exit(failed > 0)


def _round(seed: int, seconds: float, jobs: int, paths: list[str]) -> int:
    command = [
        sys.executable, "-m", "pytest", "--quiet", "-n", str(jobs), "--fuzz", f"{seconds:.0f}",
        f"--hypothesis-seed={seed}", "-p", "no:cacheprovider", *paths,
    ]  # fmt: skip
    return subprocess.run(command, cwd=_ROOT, env={**os.environ, "VCRF_TEST_SEED": str(seed)}, check=False).returncode


if __name__ == "__main__":
    main()
