"""The table of runs: their settings, their progress, and the processes that work on them."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil

from ansor.database.record import Record
from ansor.database.rows import COLUMNS, check_text, from_row, nonnegative
from ansor.database.schema import query

_COLUMNS = "id, identity, settings, horizon, began_s, spent_s, finished, owner"
_CLOCK_S = 5.0  # start times of one process, computed by two others, differ by less


@dataclass(frozen=True)
class RunRequest:
    """The identity and the settings of a run.

    Attributes:
        identity: hash of the arguments that decide the search; a run without one is never resumed.
        settings: JSON object with the arguments that users see.
    """

    identity: str = ""
    settings: str = "{}"


@dataclass(frozen=True)
class RunProgress:
    """The progress that is written with each record of a run.

    Attributes:
        run: its number.
        spent_s: seconds of the run.
        readings: of its clock since the last record, by their number.
    """

    run: int
    spent_s: float
    readings: Mapping[int, float]


@dataclass(frozen=True)
class RunRow:
    """One run; see the table `runs` in `formats` for the columns."""

    number: int
    identity: str
    settings: Mapping[str, Any]
    horizon: int
    began_s: float
    spent_s: float
    finished: bool
    owner: str | None

    @property
    def is_running(self) -> bool:
        """Whether a process works on it."""
        return self.owner is not None and is_alive(self.owner)


def all_runs(connection: sqlite3.Connection) -> list[RunRow]:
    """All runs, oldest first."""
    return list(_rows(connection, "1", ()))


def open_run(connection: sqlite3.Connection, identity: str) -> RunRow | None:
    """The newest run of an identity on which no process works; None if it has finished."""
    rows = _rows(connection, "identity = ?", (identity,))
    idle = [row for row in rows if not row.is_running]
    return None if not idle or idle[-1].finished else idle[-1]


def records_of(connection: sqlite3.Connection, run: int) -> Iterator[tuple[int, Record]]:
    """The records of a run with their numbers, oldest first, without records of unsupported
    versions."""
    statement = f"SELECT id, {COLUMNS} FROM records WHERE run = ? ORDER BY id"
    for number, *row in list(query(connection, statement, (run,))):
        with suppress(ValueError):
            yield number, from_row(row)


def readings_of(connection: sqlite3.Connection, run: int) -> list[float]:
    """The clock readings of an unfinished run, in order, up to a damaged one."""
    statement = "SELECT time_s FROM readings WHERE run = ? ORDER BY number"
    found: list[float] = []
    with suppress(ValueError):
        for (time_s,) in query(connection, statement, (run,)):
            found.append(nonnegative(time_s))
    return found


def outcomes_of(connection: sqlite3.Connection, run: int) -> Counter[str | None]:
    """Measurements of a run by the kind of their error, None for success."""
    statement = "SELECT error, COUNT(*) FROM records WHERE run = ? GROUP BY error"
    return Counter(dict(query(connection, statement, (run,))))


def begin(connection: sqlite3.Connection, request: RunRequest, horizon: int) -> int:
    """Adds a run on which this process works; returns its number.

    Args:
        connection: to the database.
        request: the identity and the settings of the run.
        horizon: number of the last record that it sees.
    """
    values = (request.identity, request.settings, horizon, time.time())
    cursor = connection.execute(
        f"INSERT INTO runs ({_COLUMNS}) VALUES (NULL, ?, ?, ?, ?, 0, 0, ?)",
        (*values, this_process()),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def write_progress(connection: sqlite3.Connection, progress: RunProgress) -> None:
    """Records the progress of a run."""
    values = (progress.spent_s, progress.run)
    connection.execute("UPDATE runs SET spent_s = ? WHERE id = ?", values)
    rows = [(progress.run, number, time_s) for number, time_s in progress.readings.items()]
    connection.executemany("INSERT OR REPLACE INTO readings VALUES (?, ?, ?)", rows)


def own(connection: sqlite3.Connection, run: int, owner: str | None) -> None:
    """Records the process that works on a run; None for none."""
    connection.execute("UPDATE runs SET owner = ? WHERE id = ?", (owner, run))


def finish(connection: sqlite3.Connection, run: int) -> None:
    """Records that a run is complete."""
    connection.execute("UPDATE runs SET finished = 1 WHERE id = ?", (run,))
    connection.execute("DELETE FROM readings WHERE run = ?", (run,))


def _rows(
    connection: sqlite3.Connection, condition: str, values: tuple[Any, ...]
) -> Iterator[RunRow]:
    statement = f"SELECT {_COLUMNS} FROM runs WHERE {condition} ORDER BY id"
    for row in list(query(connection, statement, values)):
        with suppress(TypeError, ValueError, RecursionError):
            yield _read(*row)


def _read(
    number: int,
    identity: str,
    settings: str,
    horizon: int,
    began_s: float,
    spent_s: float,
    finished: int,
    owner: str | None,
) -> RunRow:
    """A row of the table.

    Raises:
        ValueError: it is damaged.
        TypeError: likewise.
    """
    for text in (identity, settings, owner or ""):
        check_text(text)
    times_s = nonnegative(began_s), nonnegative(spent_s)
    told = dict(json.loads(settings))
    return RunRow(number, identity, told, int(horizon), *times_s, bool(finished), owner)


def this_process() -> str:
    """A text that names this process uniquely, on this machine until its next start."""
    return f"{os.getpid()} {psutil.Process().create_time():.2f}"


def is_alive(owner: str) -> bool:
    """Whether the process that a text names has not ended."""
    try:
        pid, began_s = owner.split()
        process = psutil.Process(int(pid))
        is_same = bool(abs(process.create_time() - float(began_s)) < _CLOCK_S)
        return is_same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, ValueError, OverflowError):  # a damaged text names none
        return False
