"""Removes unnecessary records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields

from ansor.database.checksum import checksum
from ansor.database.database import Database
from ansor.database.record import Record, here_and_now
from ansor.database.schema import transaction, vacuum
from ansor.errors import ArgumentError
from ansor.measure.result import ErrorKind
from ansor.program.codec import encode


@dataclass(frozen=True)
class PruneRequest:
    """The records to remove; at least one kind.

    Attributes:
        best: of each task on each target, all programs except the fastest `best` ones and the
            winner of a function.
        failures: failed measurements. Failed checks of programs with a latency are kept.
        other_versions: records of other versions of this package, of TVM, NumPy or Python.
        other_hosts: records of other machines.
        unreadable: records that are damaged, or that this version cannot read.
    """

    best: int | None = None
    failures: bool = False
    other_versions: bool = False
    other_hosts: bool = False
    unreadable: bool = False


@dataclass(frozen=True)
class PruneCount:
    """Records of a pruned database.

    Attributes:
        removed: removed records; in a dry run, the records to remove.
        kept: the other records.
    """

    removed: int
    kept: int


Programs = set[tuple[str, str, str]]  # task, target, and a short name of the program


@dataclass(frozen=True)
class _Row:
    """The properties that decide about a record."""

    number: int
    program: tuple[str, str, str]
    latency_s: float | None
    is_wrong: bool
    is_foreign: bool


def prune(database: Database, request: PruneRequest, *, dry_run: bool = False) -> PruneCount:
    """Removes records, then checks, elections and tasks without records, and frees their space.

    Args:
        database: to be pruned.
        request: the records to remove.
        dry_run: whether nothing is removed.

    Raises:
        ArgumentError: nothing is requested, or fewer than one program of a task.
        DatabaseError: the file is damaged, or cannot be written.
    """
    _check(request)
    every = {number for (number,) in database.query("SELECT id FROM records")}
    rows = [_row(number, record, request) for number, record in database.numbered()]
    kept = _kept(database, rows, request)
    if not request.unreadable:
        kept |= every - {row.number for row in rows}
    removed = every - kept
    if removed and not dry_run:
        _remove(database, removed)
    return PruneCount(len(removed), len(every) - len(removed))


def _check(request: PruneRequest) -> None:
    if request.best is not None and request.best < 1:
        raise ArgumentError("best", request.best, "keep one program of each task at least")
    if request == PruneRequest():
        names = ", ".join(field.name for field in fields(request))
        raise ArgumentError("request", "nothing", f"choose what is removed: {names}")


def _is_foreign(record: Record, request: PruneRequest) -> bool:
    here = here_and_now(None)
    origin = record.origin
    is_old = request.other_versions and origin.versions != here.versions
    return is_old or (request.other_hosts and origin.host != here.host)


def _row(number: int, record: Record, request: PruneRequest) -> _Row:
    program = (record.task_key, record.target, checksum([encode(record.program)]))
    is_wrong = record.measurement.error is ErrorKind.WRONG
    return _Row(number, program, record.latency_s, is_wrong, _is_foreign(record, request))


def _is_timed(row: _Row) -> bool:
    return row.latency_s is not None and not row.is_foreign


def _kept(database: Database, rows: Sequence[_Row], request: PruneRequest) -> set[int]:
    """The numbers of the readable records that stay."""
    mine = [row for row in rows if not row.is_foreign]
    programs = {row.program for row in rows if _is_timed(row)}
    if request.best is not None:
        wrong = {row.program for row in rows if row.is_wrong}
        programs &= _fastest(mine, wrong, request.best) | _elected(database)
    of_programs = {
        row.number
        for row in rows
        if row.program in programs
        and (row.is_wrong or not (row.is_foreign or row.latency_s is None))
    }
    if request.failures or request.best is not None:
        return of_programs
    return of_programs | {row.number for row in mine if row.latency_s is None}


def _fastest(rows: Sequence[_Row], wrong: Programs, count: int) -> Programs:
    """The programs of `Database.best`, of each task on each target."""
    found: dict[tuple[str, str], Programs] = defaultdict(set)
    timed = [(row.latency_s, row.program) for row in rows if row.latency_s is not None]
    for _, program in sorted(timed, key=lambda pair: pair[0]):
        place = found[program[:2]]
        if program not in wrong and len(place) < count:
            place.add(program)
    return set().union(*found.values())


def _elected(database: Database) -> Programs:
    """The programs that won."""
    rows = database.query("SELECT task_key, target, program FROM elections")
    return {(key, target, checksum([str(program)])) for key, target, program in rows}


_HAS_NONE = """NOT EXISTS (
    SELECT 1 FROM records WHERE records.target = {table}.target
    AND records.task_key = {table}.task_key AND records.program = {table}.program
)"""


def _remove(database: Database, numbers: Collection[int]) -> None:
    connection = database.connection
    with transaction(connection):
        connection.executemany("DELETE FROM records WHERE id = ?", [(n,) for n in numbers])
        for table in ("checks", "elections"):
            connection.execute(f"DELETE FROM {table} WHERE {_HAS_NONE.format(table=table)}")
        connection.execute(
            "DELETE FROM tasks WHERE key NOT IN (SELECT task_key FROM records UNION "
            "SELECT task_key FROM checks UNION SELECT task_key FROM elections)"
        )
    vacuum(connection)
