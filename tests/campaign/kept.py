"""A campaign on file: another call goes on where the last one ended, however it ended."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.campaign.part import Finding, Part

from vcrf.files import replacing

# Seconds between two writings.
_PAUSE = 10.0


@dataclass
class Report:
    """What happened in a part.

    Attributes
    ----------
    first, beyond : all cases below `first` are done, and these
    """

    part: Part
    seed: int
    ends: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0
    first: int = 0
    beyond: set[int] = field(default_factory=set)

    @property
    def n_cases(self) -> int:
        return sum(self.ends.values()) + len(self.findings)

    def note(self, number: int, is_good: bool, what: str) -> None:
        """A case has ended."""
        if is_good:
            self.ends[what] += 1
        else:
            self.findings.append(Finding(self.part.name, self.seed, number, what))
        self.beyond.add(number)
        while self.first in self.beyond:
            self.beyond.remove(self.first)
            self.first += 1

    def has(self, number: int) -> bool:
        """Whether the case is done."""
        return number < self.first or number in self.beyond


class Kept:
    """The reports of a campaign; of the given seed those that are not on file."""

    def __init__(self, parts: dict[str, Part], seed: int, path: Path | None) -> None:
        self._path, self._written = path, time.monotonic()
        is_there = path is not None and path.exists()
        known = json.loads(path.read_text(encoding="utf-8")) if path is not None and is_there else {}
        self._reports = {
            name: _restored(part, known[name]) if name in known else Report(part, seed) for name, part in parts.items()
        }

    def of(self, name: str) -> Report:
        """The report of a part."""
        return self._reports[name]

    def write(self, at_once: bool = False) -> None:
        """Write what is done, now and then or at once."""
        if self._path is None or not (at_once or time.monotonic() - self._written > _PAUSE):
            return
        self._written = time.monotonic()
        kept = {name: _stored(report) for name, report in self._reports.items() if report.n_cases}
        with replacing(self._path) as file:
            file.write(json.dumps(kept, indent=1).encode())


def _stored(report: Report) -> dict[str, Any]:
    return {
        "seed": report.seed, "ends": dict(report.ends.most_common()), "seconds": round(report.seconds, 1),
        "findings": [[finding.number, finding.what] for finding in report.findings],
        "first": report.first, "beyond": sorted(report.beyond),
    }  # fmt: skip


def _restored(part: Part, stored: dict[str, Any]) -> Report:
    findings = [Finding(part.name, stored["seed"], number, what) for number, what in stored["findings"]]
    return Report(
        part, stored["seed"], Counter(stored["ends"]), findings, stored["seconds"], stored["first"],
        set(stored["beyond"]),
    )  # fmt: skip
