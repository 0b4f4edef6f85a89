"""Opens a file without changing foreign files."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ansor.config import DATABASE
from ansor.database.formats import FORMAT_VERSION, migrate
from ansor.database.integrity import check_integrity, damaged
from ansor.errors import DatabaseError

# Of SQLite; and of Python, where the message about a damaged name is no UTF-8.
_ERRORS = (sqlite3.Error, UnicodeDecodeError)
_ATTEMPTS = 4  # to check a file that changes
_TURNS = 100  # of processes that set the journal of a file
_TURN_S = 0.05  # of them, at most
_MAGIC = b"SQLite format 3\0"


def is_sqlite(path: Path) -> bool:
    """Whether a file is an SQLite database.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        return stream.read(len(_MAGIC)) == _MAGIC


def connect(path: str | os.PathLike[str] | None) -> sqlite3.Connection:
    """Opens a database of this package, or makes one if the file is missing or empty.

    Args:
        path: a file; None for a database in memory.

    Raises:
        DatabaseError: the file cannot be written, is not SQLite, is not ours, or is of a newer
            format. The file does not change.
    """
    if path is None:
        return _prepare(_open(":memory:"))
    file = Path(path)
    try:
        if file.exists() and file.stat().st_size:
            _check(file)
        return _prepare(_open(str(file)))
    except (OSError, *_ERRORS) as error:
        raise DatabaseError(
            f"database={str(file)!r}: {error}", "give a file in a folder that can be written to"
        ) from error


def _open(name: str, uri: bool = False, busy_timeout_s: float = 120.0) -> sqlite3.Connection:
    """Opens a file in which another process may be writing: each statement waits for a time.

    A backup or a stopped process may hold the lock for tens of seconds.
    """
    connection = sqlite3.connect(name, timeout=busy_timeout_s, isolation_level=None, uri=uri)
    # A damaged text is a damaged row; other rows are read.
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    return connection


def _prepare(connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        _make_tables(connection)
    except (*_ERRORS, DatabaseError):
        connection.close()
        raise
    return connection


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    with transaction(connection):
        migrate(connection)
    _write_ahead(connection)  # afterwards, because it changes a file whose tables are refused, too
    connection.execute("PRAGMA synchronous = NORMAL")  # with WAL, safe when the process is killed


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Sets the journal of the file, unless it is set.

    SQLite does not wait if two processes do so, because this would be a deadlock.
    """
    for _ in range(_TURNS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            time.sleep(random.uniform(0, _TURN_S))
    connection.execute("PRAGMA journal_mode = WAL")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction: all writes inside, or none after an exception.

    Raises:
        DatabaseError: it cannot be written.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:  # SQLite may have ended it by itself
                connection.execute("ROLLBACK")
    except _ERRORS as error:
        raise _failure(connection, error) from error


def _failure(connection: sqlite3.Connection, error: Exception) -> DatabaseError:
    """The error for a failed statement."""
    file = file_of(connection)
    if not isinstance(error, sqlite3.OperationalError | sqlite3.IntegrityError):
        return damaged(Path(file), str(error))
    remedy = "see whether its disk is full or another process holds it"
    return DatabaseError(f"database={file!r}: {error}", remedy)


def vacuum(connection: sqlite3.Connection) -> None:
    """Shrinks the file to its contents.

    Raises:
        DatabaseError: it cannot be written, or another process reads it.
    """
    try:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise DatabaseError(
            f"database={file_of(connection)!r}: {error}",
            "its records are removed, but its size is as before: try again when no other "
            "process uses it",
        ) from error


def query(
    connection: sqlite3.Connection, statement: str, values: Sequence[object] = ()
) -> Iterator[tuple[Any, ...]]:
    """The rows of a query.

    Raises:
        DatabaseError: the file is damaged.
    """
    try:
        # `yield from` would close the cursor, which fails after its database is closed.
        for row in connection.execute(statement, values):  # noqa: UP028
            yield row
    except UnicodeEncodeError:
        return  # a text of a damaged row, which no other row can have
    except _ERRORS as error:
        raise _failure(connection, error) from error


def file_of(connection: sqlite3.Connection) -> str:
    """The name of its file; "" for a database in memory."""
    ((_, _, file), *_) = connection.execute("PRAGMA database_list")
    return str(file)


def _check(file: Path) -> None:
    """Raises DatabaseError for a foreign or damaged file. Opens it for reading only.

    A file may look damaged while another process writes to it.
    """
    for _ in range(_ATTEMPTS):
        before = _state(file)
        try:
            return _check_once(file)
        except DatabaseError:
            if _state(file) == before:
                raise
    return _check_once(file)


def _state(file: Path) -> tuple[object, ...]:
    """A state of a file that changes with each write of another process."""
    found = file.stat()
    return found.st_mtime_ns, found.st_size, _is_pending(file)


def _is_pending(file: Path) -> bool:
    """Whether another process has the file open, or ended before it had written all."""
    return any(Path(f"{file}{suffix}").exists() for suffix in ("-wal", "-journal"))


def _check_once(file: Path) -> None:
    if not is_sqlite(file):
        raise DatabaseError(
            f"database={str(file)!r}: not an SQLite file, left as it is", "give another path"
        )
    if not os.access(file, os.W_OK):
        raise DatabaseError(f"database={str(file)!r}: cannot be written", "give a file that can be")
    # A log beside the file must be read, too. Without one, SQLite would create and leave one.
    mode = "mode=ro" if _is_pending(file) else "mode=ro&immutable=1"
    connection = _open(f"{file.absolute().as_uri()}?{mode}", uri=True)
    try:
        _check_meta(file, connection)
        check_integrity(file, connection, DATABASE.checked_bytes)
    except _ERRORS as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        raise damaged(file, str(error)) from error
    finally:
        connection.close()


def _check_meta(file: Path, connection: sqlite3.Connection) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    columns = [row[1] for row in connection.execute("PRAGMA table_info(meta)")]
    if not tables:
        return  # another process is creating it, or was killed before the first transaction
    meta = (
        dict(connection.execute("SELECT name, value FROM meta"))
        if columns == ["name", "value"]
        else {}
    )
    if meta.get("package") != "ansor":
        raise DatabaseError(
            f"database={str(file)!r}: an SQLite file of another program",
            "give another path, it is left as it is",
        )
    version = str(meta.get("format_version"))
    if not version.isdigit() or int(version) > FORMAT_VERSION:
        raise DatabaseError(
            f"database={str(file)!r}: format {version} is newer than this "
            f"package's {FORMAT_VERSION}",
            "update the package or give another path",
        )
