"""`Database`: measurements by task and target."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from ansor.database.checksum import checksum, verify
from ansor.database.known import CONDITION, EVERYTHING, Known
from ansor.database.reader import Reader
from ansor.database.record import Record, here_and_now
from ansor.database.rows import (
    COLUMNS,
    PLACEHOLDERS,
    check_text,
    from_row,
    nonnegative,
    to_row,
    versions_text,
)
from ansor.database.runs import RunProgress, write_progress
from ansor.database.schema import connect, transaction
from ansor.measure.result import ErrorKind, Measurement
from ansor.program.codec import decode, encode
from ansor.program.program import Program

if TYPE_CHECKING:  # a task imports TVM
    from ansor.task import Task

_INSERT = f"INSERT INTO records ({COLUMNS}, run) VALUES ({PLACEHOLDERS}, ?)"
_INSERT_TASK = """
INSERT INTO tasks VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key) DO UPDATE
SET name = ?2, definition = ?3, checksum = ?4
WHERE (name, definition, checksum) IS NOT (?2, ?3, ?4)
"""
_PROGRAM = COLUMNS.split(", ").index("program")
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
    """The final program of a function: the key of its variant, the program, seconds since 1970."""

    task_key: str
    program: Program
    time_s: float


class Database(Reader):
    """Records in one SQLite file; several processes may use it at once, one thread per object.

    Args:
        path: a file, made when it does not exist; None for a database in memory.

    Raises:
        DatabaseError: the file cannot be opened, is damaged or not ours, or is of a newer format.
            Every method raises it for a file that is damaged later.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        super().__init__(connect(path))
        self._observers: list[Observer] = []

    @contextmanager
    def observed(self, observer: Observer) -> Iterator[None]:
        """Calls an observer with each batch of records that is added inside the context."""
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
        with transaction(self.connection):
            for entry in tasks:
                self._add_task(entry.key, entry.name, entry.definition)
            if run is not None:
                write_progress(self.connection, run)
            number = None if run is None else run.run
            self.connection.executemany(_INSERT, [(*to_row(r), number) for r in records])
        for observer in self._observers:
            observer(tasks, records)

    def add_check(self, task: Task, program: Program, difference: float) -> None:
        """Records that a program passed its check on this machine with the installed packages.

        Args:
            difference: largest error of its results relative to the reference's largest value.
        """
        with transaction(self.connection):
            self._add_task(task.key, task.name, task.dag.text)
            values = (*_check_key(task, program), float(difference))
            self.connection.execute(
                "INSERT OR REPLACE INTO checks VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*values, checksum(values)),
            )

    def checked(self, task: Task, program: Program) -> float | None:
        """The difference in a program's check; None without a check on this machine with the
        installed packages."""
        key = _check_key(task, program)
        for difference, digits in self.query(
            "SELECT difference, checksum FROM checks WHERE task_key = ? AND target = ? "
            "AND program = ? AND host = ? AND versions = ?",
            key,
        ):
            with self.reading():
                verify((*key, difference), digits)
                return nonnegative(difference)
        return None

    def elect(self, function: str, task: Task, program: Program) -> None:
        """Records the final program of a function on this machine after a comparison of its
        leaders.

        Args:
            function: key of its first variant.
            task: the variant that won.
        """
        here = here_and_now(None)
        values = (function, task.target, here.host, task.key, encode(program), here.time_s)
        with transaction(self.connection):
            self._add_task(task.key, task.name, task.dag.text)
            self.connection.execute(
                "INSERT OR REPLACE INTO elections VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*values, checksum(values)),
            )

    def elected(self, function: str, target: str) -> Election | None:
        """The last election on this machine; None if this version can read none."""
        key = (function, target, here_and_now(None).host)
        for task_key, program, time_s, digits in self.query(
            "SELECT task_key, program, time_s, checksum FROM elections "
            "WHERE function = ? AND target = ? AND host = ?",
            key,
        ):
            with self.reading():
                verify((*key, task_key, program, time_s), digits)
                return Election(task_key, decode(program), nonnegative(time_s))
        return None

    def best(self, key: str, target: str, n: int = 1) -> list[Record]:
        """The fastest record of each of the `n` fastest distinct programs, fastest first.

        Programs with a failed check are left out.
        """
        return [record for _, record in self._ranked(key, target, n)]

    def winners(self, target: str, besides: str, known: Known = EVERYTHING) -> list[Record]:
        """The fastest known record of every other task, the newest first."""
        keys = self.query(
            "SELECT DISTINCT task_key FROM records WHERE target = ? AND task_key <> ?",
            (target, besides),
        )
        found = [pair for (key,) in keys for pair in self._ranked(key, target, 1, known)]
        return [record for _, record in sorted(found, key=lambda pair: pair[0], reverse=True)]

    def _ranked(
        self, key: str, target: str, n: int, known: Known = EVERYTHING
    ) -> list[tuple[int, Record]]:
        """The known records of `best`, with their numbers."""
        found: list[tuple[int, Record]] = []
        programs = set()
        values = (*astuple(known), target, key)
        for number, *row in self.query(
            f"SELECT id, {COLUMNS} FROM records WHERE {CONDITION} AND target = ? AND task_key = ? "
            f"AND latency_s IS NOT NULL AND program NOT IN (SELECT program FROM records WHERE "
            f"{CONDITION} AND target = ? AND task_key = ? AND error = ?) ORDER BY latency_s, id",
            (*values, *values, _WRONG),
        ):
            if len(found) == n:
                break
            if row[_PROGRAM] not in programs:
                with self.reading():
                    found.append((number, from_row(row)))
                    programs.add(row[_PROGRAM])
        return found

    def records(self, key: str, target: str, known: Known = EVERYTHING) -> list[Record]:
        """All known records of a task on a target, oldest first."""
        condition = f"{CONDITION} AND target = ? AND task_key = ? ORDER BY id"
        return list(self.select(condition, (*astuple(known), target, key)))

    def all_records(self, target: str) -> list[Record]:
        """All records on a target, oldest first."""
        return list(self.select("target = ? ORDER BY id", (target,)))

    def has(self, record: Record) -> bool:
        """Whether the same measurement (task, target, program, time) is recorded already."""
        time_s, program = float(record.origin.time_s), encode(record.program)
        found = self.query(
            "SELECT 1 FROM records WHERE target = ? AND task_key = ? AND time_s = ? "
            "AND program = ?",
            (record.target, record.task_key, time_s, program),
        )
        return any(found)

    def count(self, key: str | None = None, target: str | None = None) -> int:
        """Number of records, of all or of one task or target."""
        ((count,),) = self.query(
            "SELECT COUNT(*) FROM records "
            "WHERE (?1 IS NULL OR task_key = ?1) AND (?2 IS NULL OR target = ?2)",
            (key, target),
        )
        return int(count)

    def targets(self, key: str | None = None) -> list[str]:
        """Targets with records, of all tasks or of one."""
        found = self.query(
            "SELECT DISTINCT target FROM records WHERE ?1 IS NULL OR task_key = ?1 ORDER BY target",
            (key,),
        )
        return [target for (target,) in found]

    def tasks(self) -> list[TaskEntry]:
        """All tasks, by name."""
        found = []
        for *values, digits in self.query(
            "SELECT key, name, definition, checksum FROM tasks ORDER BY name, key"
        ):
            with self.reading():
                verify(values, digits)
                for text in values:
                    check_text(text)
                found.append(TaskEntry(*values))
        return found

    def _add_task(self, *values: str) -> None:
        """Adds the key, the name and the definition of a task, or replaces damaged ones."""
        self.connection.execute(_INSERT_TASK, (*values, checksum(values)))


def _check_key(task: Task, program: Program) -> tuple[str, str, str, str, str]:
    """The scope of a check: the first columns of the table of checks."""
    here = here_and_now(None)
    return task.key, task.target, encode(program), here.host, versions_text(here.versions)
