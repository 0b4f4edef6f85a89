"""Checks the structure of an SQLite file: its pages, not the values in them.

`checksum` detects damaged values.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ansor.errors import DatabaseError


def check_integrity(file: Path, connection: sqlite3.Connection, most_bytes: int | None) -> None:
    """Reads the structure of a file.

    Args:
        file: for messages.
        connection: to the file.
        most_bytes: a larger file is not read; None for no limit.

    Raises:
        DatabaseError: the structure is damaged.
        sqlite3.DatabaseError: likewise.
    """
    if most_bytes is not None and file.stat().st_size > most_bytes:
        return
    ((found,),) = connection.execute("PRAGMA quick_check(1)")
    if found != "ok":
        raise damaged(file, " ".join(str(found).split()))


def damaged(file: Path, reason: str) -> DatabaseError:
    """The error for a damaged file."""
    remedy = "left as it is; give a copy from before, or read what is left with `sqlite3 .recover`"
    return DatabaseError(f"database={str(file)!r}: damaged ({reason})", remedy)
