"""`Database`: every measurement ever made, by task and target."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from ansor.closing import Closing
from ansor.database.known import CONDITION, EVERYTHING, Known
from ansor.database.record import Record, here_and_now
from ansor.database.rows import COLUMNS, PLACEHOLDERS, from_row, to_row, versions_text
from ansor.database.runs import RunProgress, write_progress
from ansor.database.schema import connect, transaction
from ansor.measure.result import ErrorKind, Measurement
from ansor.program.codec import decode, encode
from ansor.program.program import Program

if TYPE_CHECKING:  # a task brings TVM along
    from ansor.task import Task

_INSERT = f"INSERT INTO records ({COLUMNS}, run) VALUES ({PLACEHOLDERS}, ?)"
_INSERT_TASK = "INSERT OR IGNORE INTO tasks VALUES (?, ?, ?)"
_WRONG = ErrorKind.WRONG.value


@dataclass(frozen=True)
class TaskEntry:
    """A task that has records: its key, its name, the canonical text of its definition."""

    key: str
    name: str
    definition: str


# Takes in new records, with their tasks.
Observer = Callable[[Sequence[TaskEntry], Sequence[Record]], None]


@dataclass(frozen=True)
class Election:
    """What a function ended with: the key of its variant, the program, seconds since 1970."""

    task_key: str
    program: Program
    time_s: float


class Database(Closing):
    """Records in one SQLite file; several processes may use it at once, one thread per object.

    Args:
        path: a file, made when it does not exist; None for a database in memory.

    Attributes:
        unreadable: rows met so far that another version wrote and this one cannot read; they are
            left out of every answer.

    Raises:
        DatabaseError: the file cannot be opened, is not ours, or is of a newer format.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.unreadable = 0
        self._observers: list[Observer] = []
        self._connection = connect(path)

    @property
    def connection(self) -> sqlite3.Connection:
        """To the file, for other modules of this package."""
        return self._connection

    @contextmanager
    def observed(self, observer: Observer) -> Iterator[None]:
        """Tells an observer of each batch of records that is added meanwhile."""
        self._observers.append(observer)
        try:
            yield
        finally:
            self._observers.remove(observer)

    def add(
        self, task: Task, program: Program, measurement: Measurement, seed: int | None = None
    ) -> None:
        """Records one measurement, durably."""
        self.add_many(task, [(program, measurement)], seed)

    def add_many(
        self,
        task: Task,
        pairs: Iterable[tuple[Program, Measurement]],
        seed: int | None = None,
        host: str | None = None,
    ) -> None:
        """Records measurements of one task: all of them or, on an error, none.

        Args:
            task: of the programs.
            pairs: programs and their measurements.
            seed: of the search.
            host: that measured them; by default this machine.
        """
        entry = TaskEntry(task.key, task.name, task.dag.text)
        records = [Record(task.key, task.target, p, m, here_and_now(seed, host)) for p, m in pairs]
        self.add_records([entry], records)

    def add_records(
        self, tasks: Sequence[TaskEntry], records: Sequence[Record], run: RunProgress | None = None
    ) -> None:
        """Records measurements, in one transaction.

        Args:
            tasks: of the records.
            records: new ones.
            run: that made them, with its progress; None for none.
        """
        with transaction(self._connection):
            for entry in tasks:
                values = (entry.key, entry.name, entry.definition)
                self._connection.execute(_INSERT_TASK, values)
            if run is not None:
                write_progress(self._connection, run)
            number = None if run is None else run.run
            self._connection.executemany(_INSERT, [(*to_row(r), number) for r in records])
        for observer in self._observers:
            observer(tasks, records)

    def add_check(self, task: Task, program: Program, difference: float) -> None:
        """Notes that a program was found right on this machine, by the packages installed now.

        Args:
            difference: largest error of its results relative to the reference's largest value.
        """
        with transaction(self._connection):
            self._connection.execute(_INSERT_TASK, (task.key, task.name, task.dag.text))
            self._connection.execute(
                "INSERT OR REPLACE INTO checks VALUES (?, ?, ?, ?, ?, ?)",
                (*_check_key(task, program), difference),
            )

    def checked(self, task: Task, program: Program) -> float | None:
        """The difference with which a program was found right; None where that was not here, not
        with the packages installed now, or never."""
        found = self._connection.execute(
            "SELECT difference FROM checks WHERE task_key = ? AND target = ? AND program = ? "
            "AND host = ? AND versions = ?",
            _check_key(task, program),
        ).fetchone()
        return None if found is None else float(found[0])

    def elect(self, function: str, task: Task, program: Program) -> None:
        """Notes what a function ended with on this machine after its leaders were compared.

        Args:
            function: key of its first variant.
            task: the variant that won.
        """
        here = here_and_now(None)
        with transaction(self._connection):
            self._connection.execute(_INSERT_TASK, (task.key, task.name, task.dag.text))
            self._connection.execute(
                "INSERT OR REPLACE INTO elections VALUES (?, ?, ?, ?, ?, ?)",
                (function, task.target, here.host, task.key, encode(program), here.time_s),
            )

    def elected(self, function: str, target: str) -> Election | None:
        """The last that was noted here; None where there is none that this version can read."""
        found = self._connection.execute(
            "SELECT task_key, program, time_s FROM elections "
            "WHERE function = ? AND target = ? AND host = ?",
            (function, target, here_and_now(None).host),
        ).fetchone()
        try:
            return None if found is None else Election(found[0], decode(found[1]), found[2])
        except ValueError:
            self.unreadable += 1
            return None

    def best(self, key: str, target: str, n: int = 1) -> list[Record]:
        """The fastest record of each of the `n` fastest distinct programs, fastest first.

        A program that was ever found wrong is left out.
        """
        rows = self._select(
            "target = ? AND task_key = ? AND latency_s IS NOT NULL AND program NOT IN (SELECT "
            "program FROM records WHERE target = ? AND task_key = ? AND error = ?) "
            "GROUP BY program HAVING MIN(latency_s) ORDER BY latency_s, id",
            (target, key, target, key, _WRONG),
        )
        return [record for record, _ in zip(rows, range(n), strict=False)]

    def winners(self, target: str, besides: str, known: Known = EVERYTHING) -> list[Record]:
        """The fastest known record of every task but one, the newest first."""
        numbers = astuple(known)
        rows = self._select(
            f"{CONDITION} AND target = ? AND task_key <> ? AND latency_s IS NOT NULL "
            f"AND program NOT IN (SELECT program FROM records "
            f"WHERE {CONDITION} AND target = ? AND error = ?) "
            "GROUP BY task_key HAVING MIN(latency_s) ORDER BY id DESC",
            (*numbers, target, besides, *numbers, target, _WRONG),
        )
        return list(rows)

    def records(self, key: str, target: str, known: Known = EVERYTHING) -> list[Record]:
        """All known records of a task on a target, oldest first."""
        condition = f"{CONDITION} AND target = ? AND task_key = ? ORDER BY id"
        return list(self._select(condition, (*astuple(known), target, key)))

    def all_records(self, target: str) -> list[Record]:
        """All records on a target, oldest first."""
        return list(self._select("target = ? ORDER BY id", (target,)))

    def has(self, record: Record) -> bool:
        """Whether the same measurement (task, target, program, time) is recorded already."""
        _, _, _, program, *_, time_s = to_row(record)
        found = self._connection.execute(
            "SELECT 1 FROM records WHERE target = ? AND task_key = ? AND time_s = ? "
            "AND program = ?",
            (record.target, record.task_key, time_s, program),
        )
        return found.fetchone() is not None

    def count(self, key: str | None = None, target: str | None = None) -> int:
        """Number of records, of one task or target where given."""
        found = self._connection.execute(
            "SELECT COUNT(*) FROM records "
            "WHERE (?1 IS NULL OR task_key = ?1) AND (?2 IS NULL OR target = ?2)",
            (key, target),
        )
        return int(found.fetchone()[0])

    def targets(self, key: str | None = None) -> list[str]:
        """Targets that have records, of one task where given: "none for yours, but for these"."""
        found = self._connection.execute(
            "SELECT DISTINCT target FROM records WHERE ?1 IS NULL OR task_key = ?1 ORDER BY target",
            (key,),
        )
        return [target for (target,) in found]

    def tasks(self) -> list[TaskEntry]:
        """All tasks, by name."""
        found = self._connection.execute(
            "SELECT key, name, definition FROM tasks ORDER BY name, key"
        )
        return [TaskEntry(*row) for row in found]

    def _select(self, where: str, values: tuple[object, ...]) -> Iterator[Record]:
        for row in self._connection.execute(
            f"SELECT {COLUMNS} FROM records WHERE {where}", values
        ).fetchall():
            try:
                yield from_row(row)
            except ValueError:
                self.unreadable += 1

    def close(self) -> None:
        """Closes the file; may be called twice."""
        self._connection.close()


def _check_key(task: Task, program: Program) -> tuple[str, str, str, str, str]:
    """What a check holds for: the first columns of the table of checks."""
    here = here_and_now(None)
    return task.key, task.target, encode(program), here.host, versions_text(here.versions)
