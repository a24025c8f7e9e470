"""The text form of a CRFsuite model: written, and read again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from vcrf.errors import InputError
from vcrf.model import Model

_HEAD = re.compile(r"(FILEHEADER|LABELS|ATTRIBUTES|TRANSITIONS|STATE_FEATURES) = \{")
_NAMED = re.compile(r"(\w+): (.*)")
_WEIGHT = re.compile(r"\(\d+\) (.+) --> (.+): ([+-]?\d+\.\d+)")


@dataclass
class ParsedDump:
    """A model as dicts: `Tagger.info()`."""

    header: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    transitions: dict[tuple[str, str], float] = field(default_factory=dict)
    state_features: dict[tuple[str, str], float] = field(default_factory=dict)


class CRFsuiteDumpParser:
    """Reads the lines of a dump; `result` is the `ParsedDump`."""

    def __init__(self) -> None:
        self.state: str | None = None
        self.result = ParsedDump()

    def feed(self, line: str) -> None:
        """Read a line."""
        line = line.lstrip().rstrip("\r\n")
        head = _HEAD.match(line)
        if head is not None:
            self.state = head[1]
        elif line == "}":
            self.state = None
        elif line and self.state is not None:
            self._read(line, self.state)

    def _read(self, line: str, state: str) -> None:
        is_weight = state in ("TRANSITIONS", "STATE_FEATURES")
        found = (_WEIGHT if is_weight else _NAMED).match(line)
        if found is None:
            raise InputError(f"This line is not one of the part {state} of a CRFsuite dump: {line!r:.80}.")
        if is_weight:
            weights = self.result.transitions if state == "TRANSITIONS" else self.result.state_features
            weights[found[1], found[2]] = float(found[3])
        elif state == "FILEHEADER":
            self.result.header[found[1]] = found[2]
        else:
            (self.result.labels if state == "LABELS" else self.result.attributes)[found[2]] = found[1]


def model_info(model: Model, size: int) -> ParsedDump:
    """What a dump of a model tells, without rounding its weights; `size` is that of its file."""
    info = ParsedDump(labels={str(label): str(i) for i, label in enumerate(model.labels)})
    for feature in model.features():
        labels = tuple(map(str, feature.labels))
        if len(labels) == 1:
            info.attributes.setdefault(feature.attribute, str(len(info.attributes)))
            info.state_features[feature.attribute, labels[0]] = feature.weight
        else:
            info.transitions[labels[0], labels[1]] = feature.weight
    info.header = {
        "magic": "lCRF", "size": str(size), "type": "FOMC", "version": "100", "num_features": "0",
        "num_labels": str(len(info.labels)), "num_attrs": str(len(info.attributes)),
    }  # fmt: skip
    return info


def dump_lines(info: ParsedDump) -> Iterator[str]:
    """The lines of a dump."""
    yield "FILEHEADER = {\n"
    yield from (f"  {name}: {value}\n" for name, value in info.header.items())
    for title, numbers in (("LABELS", info.labels), ("ATTRIBUTES", info.attributes)):
        yield f"}}\n\n{title} = {{\n"
        yield from (f"  {number:>5}: {name}\n" for name, number in numbers.items())
    for title, kind, weights in (("TRANSITIONS", 1, info.transitions), ("STATE_FEATURES", 0, info.state_features)):
        yield f"}}\n\n{title} = {{\n"
        yield from (f"  ({kind}) {a} --> {b}: {weight:.6f}\n" for (a, b), weight in weights.items())
    yield "}\n"
