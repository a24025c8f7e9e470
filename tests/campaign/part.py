"""What a part of the campaign is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Part:
    """A kind of attack.

    Attributes
    ----------
    name : what the command line and the table call it
    about : one line for the help
    count : cases that a whole campaign runs
    limit : processor seconds that a case may take; more is a hang
    prepare : called once in each process with a directory of its own; what it returns goes to each case
    attack : runs one case; returns the name of a good end, raises otherwise
    jobs : most processes that make sense; 0 for one a core
    """

    name: str
    about: str
    count: int
    limit: float
    prepare: Callable[[Path], Any]
    attack: Callable[[Any, np.random.Generator], str]
    jobs: int = 0


@dataclass(frozen=True)
class Finding:
    """A case that did not end well."""

    part: str
    seed: int
    number: int
    what: str

    def __str__(self) -> str:
        return (
            f"{self.what.rstrip()}\nagain: python -m tests.campaign {self.part} --seed {self.seed} --case {self.number}"
        )
