"""Results survive, whole or not at all."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from points import point
from vcrf.errors import InputError, WriteError
from vcrf.experiments.plan import Plan
from vcrf.experiments.store import Store
from vcrf.experiments.tasks import PathResult


def test_results_come_back_as_they_were(tmp_path: Path, plan: Plan) -> None:
    """Every field, to the last bit; no certificate is None."""
    result = PathResult([point(), point(gap=None, n_active=7)], 1.25)
    with Store(tmp_path / "r.sqlite") as store:
        store.add(plan.tasks[0], result)
        store.add(plan.tasks[0], PathResult([], 9.0))  # the first one stays
    with Store(tmp_path / "r.sqlite") as store:
        assert store.get(plan.tasks[0]) == result
        assert store.get(plan.tasks[1]) is None
        assert store.missing(plan.tasks) == plan.tasks[1:]


def test_half_a_result_is_none(tmp_path: Path, plan: Plan) -> None:
    """What fails while it is written leaves nothing behind."""
    with Store(tmp_path / "r.sqlite") as store:
        with pytest.raises(sqlite3.Error):
            store.add(plan.tasks[0], PathResult([point(), point(n_active=object())], 1.0))
        assert store.missing(plan.tasks) == plan.tasks
        store.add(plan.tasks[0], PathResult([point()], 1.0))
        assert store.get(plan.tasks[0]) == PathResult([point()], 1.0)


def test_other_files_are_refused(tmp_path: Path) -> None:
    """Text is no database, and another program's database is left alone."""
    (tmp_path / "text").write_text("no database, " * 100, encoding="utf-8")
    with pytest.raises(InputError, match="not a file of results"):
        Store(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE mine (a)")
    other.close()
    with pytest.raises(InputError, match="expected results of layout 2"):
        Store(tmp_path / "other")


def test_a_full_disk_is_told_with_the_file(tmp_path: Path, plan: Plan) -> None:
    """What is stored stays."""
    path = tmp_path / "results.sqlite"
    first, second = plan.tasks[:2]
    with Store(path) as store:
        store.add(first, PathResult([point()], 1.0))
        pages = store._database.execute("PRAGMA page_count").fetchone()[0]
        store._database.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(WriteError, match=r"results.sqlite: cannot be written: database or disk is full. .* again"):
            store.add(second, PathResult([point()] * 500, 1.0))
        assert store.missing([first, second]) == [second]


def test_a_store_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    """A directory of its name, for instance."""
    (tmp_path / "results.sqlite").mkdir()
    with pytest.raises(WriteError, match=r"results.sqlite: cannot be written: unable"):
        Store(tmp_path / "results.sqlite")
