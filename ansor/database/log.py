"""Logs: measurements as lines of JSON, written while a search runs, and read as a database."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ansor.closing import Closing
from ansor.database.database import Database, TaskEntry
from ansor.database.jsonl import import_jsonl, to_line
from ansor.database.record import Record
from ansor.database.schema import is_sqlite
from ansor.errors import ArgumentError, DatabaseError


class RecordLog(Closing):
    """A file that gets one line for each measurement, in the format of `export_jsonl`.

    A line is written completely before the search continues. Lines of an existing file are kept.

    Args:
        path: of the file, which is made if it does not exist.

    Raises:
        DatabaseError: the file cannot be written, or is a database.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        if self._path.is_file() and is_sqlite(self._path):
            raise DatabaseError(f"log={str(path)!r}: is a database", "give another file")
        try:
            is_torn = _is_torn(self._path)
            # Without a buffer, `close` does not repeat a write that a full disk refused.
            self._stream = self._path.open("ab", buffering=0)
            if is_torn:  # a run was killed while it wrote
                self._append(b"\n")
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def write(self, tasks: Sequence[TaskEntry], records: Sequence[Record]) -> None:
        """Adds a line for each record.

        Args:
            tasks: of the records.
            records: new measurements.

        Raises:
            DatabaseError: the file cannot be written.
        """
        entries = {entry.key: entry for entry in tasks}
        lines = [to_line(entries[record.task_key], record) + "\n" for record in records]
        try:
            self._append("".join(lines).encode())
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def _append(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._stream.write(left) :]

    def close(self) -> None:
        """Closes the file; may be called twice."""
        self._stream.close()


@contextmanager
def logged(database: Database, path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Writes records that are added to a database inside the context also to a log.

    Args:
        database: gets the records.
        path: of the log; None for no log.

    Raises:
        DatabaseError: the log cannot be written.
    """
    if path is None:
        yield
        return
    with RecordLog(path) as log, database.observed(log.write):
        yield


@contextmanager
def opened_records(argument: str, source: object) -> Iterator[Database]:
    """The records of a log, of a database's file, or of a database, which stays open.

    Args:
        argument: name of the argument, for errors.
        source: a path or a `Database`.

    Raises:
        ArgumentError: neither a path nor a database, or no such file.
        DatabaseError: the file contains no record of this package.
    """
    if isinstance(source, Database):
        yield source
        return
    if not isinstance(source, str | os.PathLike):
        raise ArgumentError(argument, source, "give the path of a log or database, or a Database")
    path = Path(source)
    if not path.is_file():
        raise ArgumentError(argument, str(path), "no such file; give a log or a database")
    if is_sqlite(path):
        with Database(path) as database:
            yield database
        return
    with Database() as memory:
        count = import_jsonl(memory, path)
        if count.bad and not count.added:
            reason = f"none of its {count.bad} lines is a record that this version can read"
            raise DatabaseError(
                f"{argument}={str(path)!r}: {reason}", "give a database or a log of ansor"
            )
        yield memory


def _is_torn(path: Path) -> bool:
    """Whether the last line of a file does not end."""
    if not path.exists() or not path.stat().st_size:
        return False
    with path.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read() != b"\n"


def _unwritable(path: Path, error: OSError) -> DatabaseError:
    return DatabaseError(f"log={str(path)!r}: {error}", "give a file that can be written")
