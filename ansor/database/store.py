"""Records outside of this package's files: the exchangeable part of a database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ansor.database.database import Database, TaskEntry
from ansor.database.record import Record
from ansor.database.runs import RunProgress


@runtime_checkable
class RecordStore(Protocol):
    """A place for records, such as a table of a server.

    It keeps records alone. Checks and elections of winners hold for one run: later runs compare
    the leaders again.
    """

    def load(self) -> tuple[Sequence[TaskEntry], Sequence[Record]]:
        """All tasks and records, oldest first."""

    def append(self, tasks: Sequence[TaskEntry], records: Sequence[Record]) -> None:
        """Stores new records, all of them or none; their tasks may be known.

        Raises:
            DatabaseError: they cannot be stored. The search ends, and its best programs are used.
        """

    def close(self) -> None:
        """Frees the store's resources; may be called twice."""


class StoredDatabase(Database):
    """A database in memory that reads its records from a store and writes them there.

    Args:
        store: its records; closed with the database.

    Raises:
        DatabaseError: the records cannot be read.
    """

    def __init__(self, store: RecordStore) -> None:
        super().__init__()
        self._store = store
        super().add_records(*store.load())

    def add_records(
        self, tasks: Sequence[TaskEntry], records: Sequence[Record], run: RunProgress | None = None
    ) -> None:
        """See `Database`."""
        self._store.append(tasks, records)
        super().add_records(tasks, records, run)

    def close(self) -> None:
        """See `Database`."""
        self._store.close()
        super().close()
