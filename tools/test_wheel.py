"""Test what is installed: build the wheel, install it alone in a new environment, run the tests there without `src`.

All tests run, with the extra `dev`. With `--plain` and `--oldest` those of `PLAIN` run: the others compare with other
people's implementations, which have no wheels for every Python and system, or ask for newer dependencies.

python tools/test_wheel.py                      # with the Python that runs this
python tools/test_wheel.py --pythons            # with every Python 3.11 and later, on the path or of pyenv
python tools/test_wheel.py --oldest             # with the oldest dependencies that pyproject.toml claims
python tools/test_wheel.py -- tests/data -q     # other arguments for pytest
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ["python3.11", "python3.12", "python3.13", "python3.14"]
# What most tests need besides the library; the extra `dev` has it too.
TOOLS = ["pytest>=8", "pytest-xdist>=3.5", "hypothesis>=6.100", "matplotlib>=3.8"]
# Tests that need no more than these.
PLAIN = [
    "tests/test_rooms.py", "tests/data", "tests/metrics", "tests/labelling/test_tagger.py",
    "tests/labelling/test_drawing.py", "tests/estimators/test_vcrf.py",
]  # fmt: skip
# Files that the tests read, beside the tests themselves; not `src`.
FILES = [
    "tests",
    "docs",
    "examples",
    "benchmarks",
    "tools",
    "results",
    "README.md",
    "CONTRIBUTING.md",
    "pyproject.toml",
]


def run(*command: object, cwd: Path | None = None) -> None:
    subprocess.run([str(part) for part in command], cwd=cwd, check=True)


def oldest(requirements: list[str]) -> list[str]:
    """The lower limit of each requirement, as the only version: numpy>=1.26 becomes numpy==1.26.*."""
    pinned = []
    for requirement in requirements:
        found = re.match(r"([\w\-\[\]]+)\s*>=\s*([\d.]+)", requirement)
        if found is None:
            raise SystemExit(f"pyproject.toml: expected NAME>=VERSION, got {requirement!r}")
        pinned.append(f"{found[1]}=={found[2]}.*")
    return pinned


def dependencies() -> list[str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return list(tomllib.load(file)["project"]["dependencies"])


def build(folder: Path, python: str) -> Path:
    """The wheel, built from the sources that git would keep."""
    run(python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "-w", folder, ROOT)
    (wheel,) = folder.glob("vcrf-*.whl")
    return wheel


def test(python: str, is_oldest: bool, is_plain: bool, arguments: list[str]) -> None:
    """One environment, one run of the tests."""
    with tempfile.TemporaryDirectory(prefix="vcrf-wheel-") as name:
        folder = Path(name)
        run(python, "-m", "venv", folder / "venv")
        own = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
        wheel = build(folder, str(own))
        wanted = [f"{wheel}", *TOOLS] if is_plain or is_oldest else [f"{wheel}[dev]"]
        if is_oldest:
            wanted += oldest(dependencies())
        run(own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
        work = folder / "work"
        work.mkdir()
        for file in FILES:
            source = ROOT / file
            shutil.copytree(source, work / file) if source.is_dir() else shutil.copy(source, work / file)
        run(
            own,
            "-c",
            f"import vcrf; assert {str(folder)!r} in vcrf.__file__, vcrf.__file__; print(vcrf.__version__)",
            cwd=work,
        )
        chosen = PLAIN if is_plain or is_oldest else ["tests"]
        run(own, "-m", "pytest", *(arguments or ["-q", "-n", "2", *chosen]), cwd=work)


def pythons() -> list[str]:
    """Every Python that is there and runs: on the path, or installed by pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found = []
    for name in PYTHONS:
        places = [shutil.which(name), *sorted(root.glob(f"versions/*/bin/{name}"))]
        found += [str(place) for place in places if place is not None and runs(place)][:1]
    return found


def runs(python: str | Path) -> bool:
    """Whether it starts; pyenv puts names on the path of Pythons that it then refuses."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pythons", action="store_true", help="every Python that is there")
    parser.add_argument("--oldest", action="store_true", help="the oldest dependencies")
    parser.add_argument("--plain", action="store_true", help="without other people's implementations")
    parser.add_argument("arguments", nargs="*", help="of pytest, after --")
    options = parser.parse_args()
    for python in pythons() if options.pythons else [sys.executable]:
        print(f"== {python}", flush=True)
        test(python, options.oldest, options.plain, options.arguments)


if __name__ == "__main__":
    main()
