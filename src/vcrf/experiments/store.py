"""Results on disk: one SQLite file. A task is in it whole or not at all, whatever kills the process."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import get_type_hints

from vcrf.errors import InputError, WriteError
from vcrf.experiments.tasks import PathPoint, PathResult, PathTask

_LAYOUT = 2
_APPLICATION = 0x56435246  # "VCRF"
_TYPES = {int: "INTEGER", float: "REAL", str: "TEXT"}
_POINT_COLUMNS = {name: _TYPES.get(kind, "TEXT" if name == "families" else "REAL") for name, kind in
                  get_type_hints(PathPoint).items()}  # fmt: skip


class Store:
    """Results of tasks by their keys. Several processes may have one file open.

    Parameters
    ----------
    path : the file; made if there is none

    Raises
    ------
    InputError
        When the file is something else.
    WriteError
        When it cannot be opened or written, then or later.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._database = sqlite3.connect(path, timeout=60.0)
            self._open()
        except sqlite3.OperationalError as error:
            raise _unwritten(path, error) from error
        except sqlite3.DatabaseError as error:
            raise InputError(f"{path}: not a file of results of vcrf ({error}). Choose another directory.") from error

    def _open(self) -> None:
        (application,), (layout,) = (
            self._database.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if self._database.execute("SELECT 1 FROM sqlite_master").fetchone():
            if (application, layout) != (_APPLICATION, _LAYOUT):
                raise InputError(
                    f"{self.path}: expected results of layout {_LAYOUT}, got application {application:#x}, layout "
                    f"{layout}. Choose another directory, or delete the file."
                )
            return
        columns = ", ".join(f"{name} {kind}" for name, kind in _POINT_COLUMNS.items())
        with self._database:
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS tasks "
                "(key TEXT PRIMARY KEY, dataset TEXT, method TEXT, task TEXT, seconds REAL)"
            )
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS points "
                f"(key TEXT, position INTEGER, {columns}, PRIMARY KEY (key, position))"
            )
            self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._database.execute(f"PRAGMA user_version = {_LAYOUT}")

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._database.close()

    def add(self, task: PathTask, result: PathResult) -> None:
        """Keep the result of a task; one that is there already stays."""
        rows = [(task.key, i, *_row(point)) for i, point in enumerate(result.points)]
        described = json.dumps(task.to_json(), sort_keys=True)
        head = task.key, task.dataset, task.method.name, described, result.seconds
        try:
            with self._database:
                added = self._database.execute("INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?, ?)", head)
                if added.rowcount:
                    marks = ", ".join("?" * (2 + len(_POINT_COLUMNS)))
                    self._database.executemany(f"INSERT INTO points VALUES ({marks})", rows)
        except sqlite3.OperationalError as error:
            raise _unwritten(self.path, error) from error

    def get(self, task: PathTask) -> PathResult | None:
        """The result of a task; None if there is none."""
        found = self._database.execute("SELECT seconds FROM tasks WHERE key = ?", (task.key,)).fetchone()
        if found is None:
            return None
        names = ", ".join(_POINT_COLUMNS)
        rows = self._database.execute(f"SELECT {names} FROM points WHERE key = ? ORDER BY position", (task.key,))
        return PathResult([PathPoint._make([*row[:-1], json.loads(row[-1])]) for row in rows], found[0])

    def missing(self, tasks: Iterable[PathTask]) -> list[PathTask]:
        """Those of the tasks that have no result."""
        done = {key for (key,) in self._database.execute("SELECT key FROM tasks")}
        return [task for task in tasks if task.key not in done]


def _unwritten(path: Path, error: sqlite3.OperationalError) -> WriteError:
    return WriteError(
        f"{path}: cannot be written: {error}. What is in it stays. Free some space or correct the permissions, and "
        "give the same command again; or choose another directory."
    )


def _row(point: PathPoint) -> tuple[object, ...]:
    return (*point[:-1], json.dumps(point.families, sort_keys=True))
