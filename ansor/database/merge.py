"""Merges databases."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ansor.database.checksum import checksum, verify
from ansor.database.database import Database
from ansor.database.rows import COLUMNS, PLACEHOLDERS, from_row
from ansor.database.schema import transaction

_ADD_TASK = "INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?)"
_ADD_RECORD = f"INSERT INTO records ({COLUMNS}) VALUES ({PLACEHOLDERS})"
_ADD_CHECK = "INSERT OR IGNORE INTO checks VALUES (?, ?, ?, ?, ?, ?, ?)"
_ADD_ELECTION = """
INSERT INTO elections VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (function, target, host) DO UPDATE
SET task_key = excluded.task_key, program = excluded.program, time_s = excluded.time_s,
    checksum = excluded.checksum
WHERE excluded.time_s > time_s
"""
_TASKS = "SELECT key, name, definition, checksum FROM tasks"
_CHECKS = "SELECT task_key, target, program, host, versions, difference, checksum FROM checks"
_ELECTIONS = "SELECT function, target, host, task_key, program, time_s, checksum FROM elections"


@dataclass(frozen=True)
class MergeCount:
    """Records of merged databases.

    Attributes:
        added: records that were new to the result.
        known: records that it had.
        damaged: records that are left out, because they cannot be written to a file.
    """

    added: int
    known: int
    damaged: int


def merge(database: Database, sources: Sequence[Database]) -> MergeCount:
    """Adds the contents of other databases, in one transaction for each.

    Records are equal if all their columns are equal. Records of other versions of this package are
    added without a change. Checks and elections name their machine, and are added, too. Of two
    elections of a function, the later one counts. Runs are not added, because they are resumed from
    their own file.

    Args:
        database: gets the records.
        sources: do not change.

    Raises:
        DatabaseError: a file is damaged, or the database cannot be written.
    """
    known = {_digest(row) for row in database.query(f"SELECT {COLUMNS} FROM records")}
    added = repeated = damaged = 0
    for source in sources:
        with transaction(database.connection):
            database.connection.executemany(_ADD_TASK, _whole(source, _TASKS))
            keys = {key for (key,) in database.query("SELECT key FROM tasks")}
            for row in source.query(f"SELECT {COLUMNS} FROM records ORDER BY id"):
                digest = _digest(row)
                if digest in known:
                    repeated += 1
                elif _add(database.connection, row, keys):
                    known.add(digest)
                    added += 1
                else:
                    damaged += 1
            checks = [row for row in _whole(source, _CHECKS) if row[0] in keys]
            database.connection.executemany(_ADD_CHECK, checks)
            elections = [row for row in _whole(source, _ELECTIONS) if row[3] in keys]
            database.connection.executemany(_ADD_ELECTION, elections)
    return MergeCount(added, repeated, damaged)


def _add(connection: sqlite3.Connection, row: Sequence[Any], keys: set[str]) -> bool:
    """Adds a record; False if a file cannot contain it.

    Args:
        connection: to the database.
        row: the columns of the record.
        keys: of the tasks in the database. The task of the record is added if it is missing,
            because its row is damaged.
    """
    key, is_known = row[0], row[0] in keys
    if not _is_writable(row) or not (is_known or _is_readable(row)):
        return False
    try:
        if not is_known:
            connection.execute(_ADD_TASK, (key, key, "", checksum((key, key, ""))))
            keys.add(key)
        connection.execute(_ADD_RECORD, row)
    except sqlite3.IntegrityError:  # a damaged row without a necessary value
        return False
    return True


def _digest(row: Sequence[object]) -> bytes:
    """A short hash of a row, so that the hashes of a large database need little memory."""
    text = repr(tuple(row)).encode(errors="surrogateescape")
    return hashlib.blake2b(text, digest_size=16).digest()


def _is_writable(row: Sequence[object]) -> bool:
    """Whether all texts are UTF-8."""
    try:
        "".join(text for text in row if isinstance(text, str)).encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_readable(row: Sequence[object]) -> bool:
    """Whether this version can read a record."""
    try:
        from_row(row)
    except ValueError:
        return False
    return True


def _whole(source: Database, query: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a query that are not damaged; their last value is the checksum."""
    for row in source.query(query):
        try:
            verify(row[:-1], row[-1])
        except ValueError:
            continue
        if _is_writable(row) and None not in row[:-1]:
            yield row
