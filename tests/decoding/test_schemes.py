"""Schemes of span labels: a label may follow another exactly if the reading by hand says so."""

from __future__ import annotations

import itertools

import pytest

from vcrf.decoding.schemes import EDGE, SpanLabel, may_follow, scheme_label, span_label
from vcrf.errors import InputError
from vcrf.metrics import entities

BIO = ["O", "B-x", "I-x", "B-y", "I-y"]
BILOU = [*BIO, "L-x", "U-x", "L-y", "U-y"]


def is_valid(labels: tuple[str, ...], scheme: str) -> bool:
    """Whether every pair, and both ends, are allowed."""
    parts = [EDGE, *(scheme_label(label, scheme) for label in labels), EDGE]
    return all(may_follow(a, b, scheme) for a, b in itertools.pairwise(parts))


def spelled(spans: list[tuple[int, int, str]], n: int, scheme: str) -> tuple[str, ...]:
    """Write spans as labels."""
    labels = ["O"] * n
    for first, last, kind in sorted(spans):
        inside = ["I"] * (last - first + 1)
        if scheme == "BIO" or (scheme == "IOB1" and first and labels[first - 1].endswith("-" + kind)):
            inside[0] = "B"
        if scheme == "BILOU":
            inside[0], inside[-1] = "B", "L"
            if first == last:
                inside = ["U"]
        labels[first : last + 1] = [f"{prefix}-{kind}" for prefix in inside]
    return tuple(labels)


def all_spans(n: int) -> list[list[tuple[int, int, str]]]:
    """Every set of spans of two kinds that do not overlap."""
    if n == 0:
        return [[]]
    found = [list(rest) for rest in all_spans(n - 1)]  # the last token is outside
    for first in range(n):
        for kind in "xy":
            found += [[*rest, (first, n - 1, kind)] for rest in all_spans(first)]
    return found


@pytest.mark.parametrize(("scheme", "labels"), [("BIO", BIO), ("IOB1", BIO), ("BILOU", BILOU)])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_valid_sequences_are_those_that_spell_spans(scheme: str, labels: list[str], n: int) -> None:
    """All sequences of n labels: valid if and only if they write some set of spans."""
    expected = {spelled(spans, n, scheme) for spans in all_spans(n)}
    assert {y for y in itertools.product(labels, repeat=n) if is_valid(y, scheme)} == expected


@pytest.mark.parametrize(("scheme", "labels"), [("BIO", BIO), ("BILOU", BILOU)])
def test_valid_sequences_read_the_same_strictly_and_leniently(scheme: str, labels: list[str]) -> None:
    """Rules of decoding and of the metrics are the same."""
    for y in itertools.product(labels, repeat=4):
        if is_valid(y, scheme):
            assert entities(y, scheme) == entities(y)


def test_other_spellings() -> None:
    """IOB2 is BIO; E and S are L and U."""
    assert span_label("E-x") == span_label("L-x") == SpanLabel("L", "x")
    assert span_label("S-x") == span_label("U-x") == SpanLabel("U", "x")
    for a, b in itertools.product(map(span_label, BIO), repeat=2):
        assert may_follow(a, b, "IOB2") == may_follow(a, b, "BIO")
    for a, b in itertools.product(map(span_label, BILOU), repeat=2):
        assert may_follow(a, b, "BIOES") == may_follow(a, b, "BILOU")


def test_labels_of_another_scheme_are_refused() -> None:
    """BIO has no L; there is no scheme BMES."""
    with pytest.raises(InputError, match=r"BIO has labels with B, I and O only: got 'L-x'"):
        scheme_label("L-x", "BIO")
    with pytest.raises(InputError, match=r"A scheme is one of IOB1, BIO, .*: got 'BMES'"):
        scheme_label("B-x", "BMES")
