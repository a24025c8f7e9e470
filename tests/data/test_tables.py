"""Long tables of pandas and polars: the same sentences as lists."""

from __future__ import annotations

from typing import Any

import pytest

from vcrf import VCRF
from vcrf.data import SyntheticLanguage, read_table, table_labels
from vcrf.errors import InputError

CORPUS = SyntheticLanguage(n_labels=3, n_stems=20).sample(20, seed=1)
COLUMNS: dict[str, list[Any]] = {
    "sentence": [i for i, tokens in enumerate(CORPUS.tokens) for _ in tokens],
    "token": [token for tokens in CORPUS.tokens for token in tokens],
    "label": [label for labels in CORPUS.labels for label in labels],
}


@pytest.fixture(params=["dict", "pandas", "polars"])
def make(request: pytest.FixtureRequest) -> Any:
    """Something that makes a table of columns."""
    return dict if request.param == "dict" else pytest.importorskip(request.param).DataFrame


def test_fit_and_predict_from_a_table(make: Any) -> None:
    """Sentences are what the lists are, and labels go back into a column."""
    X, y, names = read_table(make(COLUMNS))
    assert (X, y, names) == (CORPUS.tokens, CORPUS.labels, list(range(20)))
    predicted = VCRF(tol=0.1).fit(X, y).predict(X)
    assert len(table_labels(predicted)) == len(COLUMNS["token"])
    assert table_labels(y) == COLUMNS["label"]


def test_several_columns_are_features(make: Any) -> None:
    """A row becomes a dict; what is missing is left out, and a label that is missing is open."""
    table = make({"s": ["a", "a", "b"], "w": ["x", None, "z"], "n": [0.5, 1.5, None], "y": ["A", None, "B"]})
    X, y, names = read_table(table, "s", ["w", "n"], "y")
    assert X == [[{"w": "x", "n": 0.5}, {"n": 1.5}], [{"w": "z"}]]
    assert (y, names) == ([["A", None], ["B"]], ["a", "b"])
    assert read_table(table, "s", "s", None).y == []


def test_messages(make: Any) -> None:
    """A column that is not there, rows of a sentence apart, a sentence without a name."""
    with pytest.raises(InputError, match="no column 'words': expected one of 'sentence', 'token', 'label'"):
        read_table(make(COLUMNS), token="words")
    with pytest.raises(InputError, match="Row 2 of the table: the sentence 'a' occurs before"):
        read_table(make({"sentence": ["a", "b", "a"], "token": ["x"] * 3, "label": ["A"] * 3}))
    with pytest.raises(InputError, match=r"Row 1 of the table: the sentence .* is missing"):
        read_table(make({"sentence": ["a", None], "token": ["x"] * 2, "label": ["A"] * 2}))
    with pytest.raises(InputError, match=r"Row 1 of the table: the token is missing. .* keep_default_na=False"):
        read_table(make({"sentence": ["a", "a"], "token": ["x", None], "label": ["A", "B"]}))


def test_other_objects_are_no_tables() -> None:
    """A list of rows, and polars' frames that are not read yet."""
    with pytest.raises(InputError, match="or a dict of columns, got list"):
        read_table([{"sentence": 1, "token": "x"}])
    polars = pytest.importorskip("polars")
    with pytest.raises(InputError, match=r"got LazyFrame. Call its collect\(\) first"):
        read_table(polars.DataFrame(COLUMNS).lazy())


def test_columns_of_one_length() -> None:
    """Only a dict can have others."""
    with pytest.raises(InputError, match="differ in length: 1, 2, 1"):
        read_table({"sentence": [1], "token": ["x", "y"], "label": ["A"]})
