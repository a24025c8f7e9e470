"""`python -m tests.campaign [PART ...]`: run attacks and print a table; exit code 1 if one succeeded."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from pathlib import Path

# What the tests import by name (`enumeration`, `hostile`, ...).
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.campaign import runner
from tests.campaign.kept import Kept, Report
from tests.campaign.part import Part

_FRAME = {"__init__", "__main__", "kept", "part", "patience", "runner"}
PARTS = [path.stem for path in sorted(Path(__file__).parent.glob("*.py")) if path.stem not in _FRAME]


def main() -> None:
    """Run the parts that the command line names."""
    parts = {name: runner.part_of(name) for name in PARTS}
    given = _arguments(parts)
    if given.case is not None:
        _one(parts[given.parts[0]], given.seed, given.case)
        return
    sys.stdout.write(f"seed {given.seed}\n")
    kept = Kept(parts, given.seed, given.keep)
    reports = [kept.of(name) for name in given.parts or PARTS]
    try:
        for report in reports:
            count = given.count or max(int(report.part.count * given.share), 1)
            sys.stderr.write(f"{report.part.name}: {count:,} cases of seed {report.seed}, {report.n_cases:,} done\n")
            runner.run(report, range(count), given.seconds, given.jobs, kept.write)
    finally:
        kept.write(at_once=True)
        sys.stdout.write(_table(reports))
    sys.exit(any(report.findings for report in reports))


def _arguments(parts: dict[str, Part]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaign", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__,
        epilog="\n".join(f"{part.name:<12} {part.count:>8,}  {part.about}" for part in parts.values()),
    )  # fmt: skip
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(parts)}; all if none is given")
    parser.add_argument("--seed", type=int, default=secrets.randbits(31), help="drawn anew if not given")
    parser.add_argument("--count", type=int, help="cases of each part, in place of the numbers below")
    parser.add_argument("--share", type=float, default=1.0, help="share of the numbers below, say 0.01")
    parser.add_argument("--seconds", type=float, default=1e9, help="time for each part")
    parser.add_argument(
        "--keep", type=Path, metavar="FILE", help="keep what is done there, and go on from it, seed and all"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--case", type=int, help="run this one case here, under no guard")
    given = parser.parse_args()
    unknown = [name for name in given.parts if name not in parts]
    if unknown or (given.case is not None and len(given.parts) != 1):
        parser.error(f"name parts among {', '.join(parts)}, and just one with --case")
    return given


def _one(part: Part, seed: int, number: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        sys.stdout.write(part.attack(part.prepare(Path(scratch)), runner.rng_of(seed, number)) + "\n")


def _table(reports: list[Report]) -> str:
    lines = [f"{'part':<12} {'cases':>8} {'findings':>8} {'seconds':>8}  ends"]
    for report in reports:
        ends = ", ".join(f"{name} {n:,}" for name, n in report.ends.most_common())
        lines.append(
            f"{report.part.name:<12} {report.n_cases:>8,} {len(report.findings):>8} {report.seconds:>8.0f}  {ends}"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
