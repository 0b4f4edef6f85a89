"""Opening a file without harming one that is not ours."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ansor.database.formats import FORMAT_VERSION, migrate
from ansor.errors import DatabaseError

_MAGIC = b"SQLite format 3\0"


def is_sqlite(path: Path) -> bool:
    """Whether a file is an SQLite database.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        return stream.read(len(_MAGIC)) == _MAGIC


def connect(path: str | os.PathLike[str] | None) -> sqlite3.Connection:
    """Opens our database, or makes one where there is no file or an empty one.

    Args:
        path: a file; None for a database in memory.

    Raises:
        DatabaseError: the file cannot be written, is not SQLite, is not ours, or is of a newer
            format; it is left as it was.
    """
    if path is None:
        return _prepare(_open(":memory:"))
    file = Path(path)
    try:
        if file.exists() and file.stat().st_size:
            _check(file)
        return _prepare(_open(str(file)))
    except (OSError, sqlite3.Error) as error:
        raise DatabaseError(
            f"database={str(file)!r}: {error}; give a file in a folder that can be written to"
        ) from error


def _open(name: str, uri: bool = False, busy_timeout_s: float = 120.0) -> sqlite3.Connection:
    """Opens a file, in which another process may be writing: each statement waits so long.

    A backup, or a process that is stopped for a while, holds the lock for tens of seconds.
    """
    return sqlite3.connect(name, timeout=busy_timeout_s, isolation_level=None, uri=uri)


def _prepare(connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        _make_tables(connection)
    except (sqlite3.Error, DatabaseError):
        connection.close()
        raise
    return connection


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")  # with WAL, safe when the process is killed
    connection.execute("PRAGMA foreign_keys = ON")
    with transaction(connection):
        migrate(connection)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is written inside counts or, after an exception, nothing.

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
    except sqlite3.Error as error:
        ((_, _, file), *_) = connection.execute("PRAGMA database_list")
        raise DatabaseError(
            f"database={file!r}: {error}; see whether its disk is full or another process holds it"
        ) from error


def _check(file: Path) -> None:
    """Raises DatabaseError for a file that is not ours. Opens it for reading only."""
    if not is_sqlite(file):
        raise DatabaseError(
            f"database={str(file)!r}: not an SQLite file, left as it is; give another path"
        )
    if not os.access(file, os.W_OK):
        raise DatabaseError(f"database={str(file)!r}: cannot be written; give a file that can be")
    # A log beside the file must be read too; without one, SQLite would make one and leave it there.
    pending = any(Path(f"{file}{suffix}").exists() for suffix in ("-wal", "-journal"))
    mode = "mode=ro" if pending else "mode=ro&immutable=1"
    connection = _open(f"{file.absolute().as_uri()}?{mode}", uri=True)
    try:
        _check_meta(file, connection)
    finally:
        connection.close()


def _check_meta(file: Path, connection: sqlite3.Connection) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    columns = [row[1] for row in connection.execute("PRAGMA table_info(meta)")]
    if not tables:
        return  # another process is making it, or a kill came before its first transaction
    meta = (
        dict(connection.execute("SELECT name, value FROM meta"))
        if columns == ["name", "value"]
        else {}
    )
    if meta.get("package") != "ansor":
        raise DatabaseError(
            f"database={str(file)!r}: an SQLite file of another program; give another path, it is "
            "left as it is"
        )
    version = str(meta.get("format_version"))
    if not version.isdigit() or int(version) > FORMAT_VERSION:
        raise DatabaseError(
            f"database={str(file)!r}: format {version} is newer than this package's "
            f"{FORMAT_VERSION}; update the package or give another path"
        )
