"""Rows of CSR lists, taken some at a time."""

from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vcrf.families import keys

ROWS = st.lists(st.lists(st.integers(0, 99), max_size=6), max_size=12)


@given(ROWS, st.data(), st.integers(1, 8), st.booleans())
def test_rows_are_those_of_the_list(rows: list[list[int]], data: st.DataObject, entries: int, has_values: bool) -> None:
    """However many entries are taken at a time."""
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10)) if rows else []
    ptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    ids = np.array([item for row in rows for item in row], np.uint32)
    values = ids * 0.5 if has_values else np.zeros(0)
    with mock.patch.object(keys, "_ENTRIES", entries):
        out_ptr, taken, of_values = keys.take_rows(ptr, ids, values, np.array(chosen, np.int64))
    assert out_ptr.tolist() == [0, *np.cumsum([len(rows[i]) for i in chosen]).astype(int).tolist()]
    assert taken.tolist() == [item for i in chosen for item in rows[i]]
    assert taken.dtype == ids.dtype
    assert of_values.tolist() == ([0.5 * item for item in taken.tolist()] if has_values and len(ids) else [])
