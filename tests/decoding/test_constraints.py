"""Constraints in the user's terms, and what they become."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vcrf.decoding import Constraints
from vcrf.decoding.constraints import as_constraints
from vcrf.errors import InputError

LABELS = ["B-x", "I-x", "O"]


def test_scheme_becomes_arrays() -> None:
    """BIO: I-x neither starts nor follows O."""
    moves = as_constraints("BIO").compile(LABELS)
    assert moves.first.tolist() == [True, False, True]
    assert moves.last.all()
    assert moves.pairs.tolist() == [[True, True, True], [True, True, True], [True, False, True]]
    ends = as_constraints("BILOU").compile([*LABELS, "L-x"])
    assert ends.last.tolist() == [False, False, True, True]


def test_pairs_starts_and_ends_add_to_the_scheme() -> None:
    """All of them hold together."""
    given = Constraints("BIO", forbidden=[("O", "B-x")], forbidden_starts=["O"], forbidden_ends=("I-x",))
    moves = as_constraints(given).compile(LABELS)
    assert moves.first.tolist() == [True, False, False]
    assert moves.last.tolist() == [True, False, True]
    assert moves.pairs.tolist() == [[True, True, True], [True, True, True], [False, False, True]]


def test_a_list_is_forbidden_pairs_and_an_empty_one_forbids_nothing() -> None:
    """Pairs may be lists; labels may be int."""
    moves = as_constraints([["O", "O"], ("I-x", "O")]).compile(LABELS)
    assert np.argwhere(~moves.pairs).tolist() == [[1, 2], [2, 2]]
    assert not moves.is_free
    assert as_constraints([]).compile(LABELS).is_free
    assert np.argwhere(~as_constraints([(0, 1)]).compile([0, 1]).pairs).tolist() == [[0, 1]]


def test_unknown_labels_are_named_in_a_warning() -> None:
    """A typing error does not pass in silence, and a label that a fold lacks stops nothing."""
    with pytest.warns(UserWarning, match=r"labels that the model does not have: 'I-y', 'o'"):
        moves = as_constraints(Constraints(forbidden=[("o", "I-y"), ("O", "O")])).compile(LABELS)
    assert np.argwhere(~moves.pairs).tolist() == [[2, 2]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("bio", "A scheme is one of .* got 'bio'"),
        (3, "`constraints` must be the name of a scheme .* got 3"),
        (["AB"], "a pair .label, next label.: got 'AB'"),
        ([("A", "B", "C")], "a pair .label, next label.: got"),
        (Constraints(scheme="XY"), "got 'XY'"),
        (Constraints(forbidden=["AB"]), "got 'AB'"),
    ],
)
def test_wrong_constraints_are_named(given: Any, message: str) -> None:
    """Before anything is computed."""
    with pytest.raises(InputError, match=message):
        as_constraints(given)


def test_labels_must_fit_the_scheme() -> None:
    """Parts of speech have no BIO rules."""
    with pytest.raises(InputError, match="such as 'B-PER': got 'NOUN'"):
        as_constraints("BIO").compile(["NOUN", "O"])
