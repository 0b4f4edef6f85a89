"""`Reader`: the rows of a database; damaged ones are counted and left out."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansor.closing import Closing
from ansor.database.record import Record
from ansor.database.rows import COLUMNS, from_row
from ansor.database.schema import file_of, query


class Reader(Closing):
    """Reads an open database.

    Args:
        connection: to the database; closed with the reader.

    Attributes:
        connection: for other modules of this package.
        unreadable: number of rows so far that are damaged or from an unsupported version; they are
            left out of every answer.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.unreadable = 0

    @property
    def file(self) -> Path | None:
        """The database's file; None for a database in memory."""
        name = file_of(self.connection)
        return Path(name) if name else None

    def query(self, statement: str, values: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query.

        Raises:
            DatabaseError: the file is damaged.
        """
        return query(self.connection, statement, values)

    def select(self, where: str, values: Sequence[object] = ()) -> Iterator[Record]:
        """The records for which an SQL condition holds."""
        return (record for _, record in self._numbered(f"WHERE {where}", values))

    def numbered(self) -> Iterator[tuple[int, Record]]:
        """All records with their numbers, oldest first."""
        return self._numbered("ORDER BY id", ())

    def _numbered(self, clauses: str, values: Sequence[object]) -> Iterator[tuple[int, Record]]:
        for number, *row in self.query(f"SELECT id, {COLUMNS} FROM records {clauses}", values):
            try:
                yield number, from_row(row)
            except ValueError:
                self.unreadable += 1

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Counts a row that cannot be read, and continues."""
        try:
            yield
        except ValueError:
            self.unreadable += 1

    def close(self) -> None:
        """Closes the file; may be called twice."""
        self.connection.close()
