"""Scores of tag patterns as the kernels take them: of those that fire anywhere, and of those of single tokens.

| patterns that fire | dense, scores alone: decoding | dense, with factors: training | arcs of a pattern automaton |
|---|---|---|---|
| anywhere | `ScoreTables` | `FactorTables` | `ArcFactors` |
| at one token | `LocalScores` | `LocalFactors` | `LocalArcs` |

A factor is exp(score), less a shift of the whole table. Dense tables have every run of labels, by the depth that fits
at a token; arcs are the runs that an automaton tells apart. Codes and depths are those of `kernels.decode`.
"""

from __future__ import annotations

from typing import NamedTuple

from vcrf.types import Floats, Ints, UInts32


class ScoreTables(NamedTuple):
    """Summed scores of plain tag patterns by depth.

    `natural[offsets[d]:offsets[d + 1]]` holds depth d by arc code; `full` the full depth as [h, b, a].
    """

    offsets: Ints
    natural: Floats
    full: Floats


class FactorTables(NamedTuple):
    """The same with factors: `log` is `natural` of `ScoreTables`, and exp(score - shift[depth]) is in three layouts.

    `span` is how far the scores differ.
    """

    order: int
    offsets: Ints
    log: Floats
    exp: Floats
    forward: Floats  # full depth as [h, b, a]
    backward: Floats  # full depth as [h, a, b]
    shift: Floats
    span: float


class ArcFactors(NamedTuple):
    """The same for the arcs of an automaton: exp(score - shift); how far scores differ, and the longest pattern."""

    log: Floats
    factor: Floats
    shift: float
    span: float
    order: int


class LocalScores(NamedTuple):
    """CSR over tokens: length, code and score of tag patterns of 2 labels or more that fire there only."""

    ptr: Ints
    size: UInts32
    code: UInts32
    score: Floats


class LocalFactors(NamedTuple):
    """The same with factors, the corrections of the tables in a pass; `flip` is the code the other way round."""

    ptr: Ints
    size: UInts32
    code: UInts32
    flip: UInts32
    score: Floats
    factor: Floats


class LocalArcs(NamedTuple):
    """The same by the arc of an automaton that a pattern is."""

    ptr: Ints
    arc: UInts32
    score: Floats
    factor: Floats
