"""Long tables, one token a row, to sentences: pandas, polars, or a dict of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from vcrf.errors import InputError


class TableSentences(NamedTuple):
    """Sentences of a table: tokens (or feature dicts), their labels (none without such a column), and their names."""

    X: list[list[Any]]
    y: list[list[Any]]
    names: list[Any]


def read_table(
    table: Any,
    sentence: str = "sentence",
    token: str | Sequence[str] = "token",
    label: str | None = "label",
) -> TableSentences:
    """Sentences of a long table.

    Parameters
    ----------
    table : pandas or polars DataFrame, or a mapping from names to columns
        One row a token, in the order of the text; the rows of a sentence stand together.
    sentence : str
        Column that names the sentence of each row.
    token : str or list of str
        Column of the tokens; of several columns each row becomes a dict of features, without those that are missing.
    label : str, optional
        Column of the labels; a label that is missing is left open. None if there is none.

    Returns
    -------
    TableSentences
        ``X, y, names``: ``VCRF().fit(X, y)``.

    Examples
    --------
    >>> table = {"sentence": [1, 1, 2], "token": ["a", "b", "a"], "label": ["A", "B", "A"]}
    >>> read_table(table).X
    [['a', 'b'], ['a']]
    """
    _check_is_table(table)
    several = not isinstance(token, str)
    wanted = [sentence, *(token if several else [token]), *([] if label is None else [label])]
    columns = [_column(table, name) for name in wanted]
    if len({len(column) for column in columns}) > 1:
        raise InputError(f"The columns of the table differ in length: {', '.join(map(str, map(len, columns)))} rows.")
    names, rows = columns[0], columns[1 : len(columns) - (label is not None)]
    tokens: list[Any] = rows[0]
    if several:
        given = zip(*rows, strict=True)
        tokens = [{n: v for n, v in zip(token, row, strict=True) if not _is_missing(v)} for row in given]
    else:
        _check_no_missing(tokens, str(token))
    bounds = _bounds(names, sentence)
    labels = [] if label is None else [None if _is_missing(value) else value for value in columns[-1]]
    return TableSentences(
        [tokens[first:last] for first, last in bounds],
        [labels[first:last] for first, last in bounds] if label is not None else [],
        [names[first] for first, _ in bounds],
    )


def table_labels(y: Sequence[Sequence[Any]]) -> list[Any]:
    """Labels of sentences as one column, for the table that they come from."""
    return [label for labels in y for label in labels]


def _check_is_table(table: Any) -> None:
    is_lazy = hasattr(table, "collect")  # polars
    if is_lazy or not (isinstance(table, Mapping) or hasattr(table, "columns")):
        advice = " Call its collect() first." if is_lazy else ""
        raise InputError(
            f"Expected a pandas or polars DataFrame or a dict of columns, got {type(table).__name__}.{advice}"
        )


def _check_no_missing(tokens: list[Any], column: str) -> None:
    row = next((i for i, value in enumerate(tokens) if _is_missing(value)), None)
    if row is not None:
        raise InputError(
            f"Row {row} of the table: the {column} is missing. Where the word is NA or null pandas reads nothing: "
            "pass keep_default_na=False to read_csv."
        )


def _column(table: Any, name: str) -> list[Any]:
    known = list(getattr(table, "columns", table))
    if name not in known:
        raise InputError(f"The table has no column {name!r}: expected one of {', '.join(map(repr, known))}.")
    column = table[name]
    for method in ("to_list", "tolist"):  # polars and pandas; numpy
        if hasattr(column, method):
            listed: list[Any] = getattr(column, method)()
            return listed
    return list(column)


def _bounds(names: list[Any], column: str) -> list[tuple[int, int]]:
    """First row and end of each sentence."""
    bounds, seen, first = [], set(), 0
    for name, rows in groupby(names):
        last = first + sum(1 for _ in rows)
        if _is_missing(name) or name in seen:
            raise InputError(
                f"Row {first} of the table: the {column} {name!r} "
                + ("is missing." if _is_missing(name) else "occurs before, with others between. Sort the table by it.")
            )
        seen.add(name)
        bounds.append((first, last))
        first = last
    return bounds


def _is_missing(value: Any) -> bool:
    """None, NaN and pandas' NA, none of which is equal to itself for sure."""
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )
