"""Records as lines of JSON, to read, merge and send. Lines are independent of each other."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

from ansor.database.checksum import checksum, verify
from ansor.database.database import Database, TaskEntry
from ansor.database.record import Record
from ansor.database.rows import COLUMNS, check_text, checked_values, from_row, to_row
from ansor.errors import DatabaseError

_NAMES = COLUMNS.split(", ")[:-1]  # the checksum of a line includes its task
_NESTED = ("program", "latencies_s", "versions")  # JSON text in the table, JSON proper in a line
_FORMAT = 2  # version of the lines; a reader refuses a higher one
_WITH_CHECKSUM = 2  # the first version whose lines have one


@dataclass(frozen=True)
class ImportCount:
    """Lines of an imported file.

    Attributes:
        added: new records.
        known: records that were known.
        bad: torn, damaged, foreign or too new.
    """

    added: int
    known: int
    bad: int


def export_jsonl(
    database: Database, path: str | os.PathLike[str], target: str | None = None
) -> int:
    """Writes all records, or those of one target; returns their number.

    Raises:
        DatabaseError: the file cannot be written.
    """
    targets = database.targets() if target is None else [target]
    records = [record for each in targets for record in database.all_records(each)]
    # After the records, because another process may add tasks in between.
    tasks = {entry.key: entry for entry in database.tasks()}
    try:
        with Path(path).open("w", encoding="utf-8") as stream:
            stream.writelines(to_line(_entry(tasks, r.task_key), r) + "\n" for r in records)
    except OSError as error:
        raise DatabaseError(
            f"path={str(path)!r}: {error}", "give a file that can be made"
        ) from error
    return len(records)


def _entry(tasks: Mapping[str, TaskEntry], key: str) -> TaskEntry:
    """A task; only its key if its row is damaged."""
    return tasks.get(key, TaskEntry(key, key, ""))


def import_jsonl(database: Database, path: str | os.PathLike[str]) -> ImportCount:
    """Adds the new records of a file in one transaction.

    Raises:
        DatabaseError: the file cannot be read.
    """
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise DatabaseError(f"path={str(path)!r}: {error}", "give a file that exists") from error
    lines = [line for line in lines if line.strip()]
    read = {line: _from_line(line) for line in lines}
    bad = sum(read[line] is None for line in lines)
    new = [pair for pair in read.values() if pair is not None and not database.has(pair[1])]
    database.add_records([entry for entry, _ in new], [record for _, record in new])
    return ImportCount(added=len(new), known=len(lines) - bad - len(new), bad=bad)


def to_line(entry: TaskEntry, record: Record) -> str:
    """A record and its task as a line of JSON, without its end."""
    fields: dict[str, Any] = dict(zip(_NAMES, to_row(record)[:-1], strict=True))
    for name in _NESTED:
        fields[name] = json.loads(fields[name])
    document = {"format": _FORMAT, "task": asdict(entry), "record": fields}
    return json.dumps({**document, "checksum": checksum(_values(entry, record))})


def _values(entry: TaskEntry, record: Record) -> tuple[object, ...]:
    """The values that the checksum of a line depends on."""
    row = to_row(record)
    return (*astuple(entry), *checked_values(row), row[-1])


def _from_line(line: bytes) -> tuple[TaskEntry, Record] | None:
    """The record of a line; None for other lines."""
    try:
        document = json.loads(line)
        version = document["format"]
        if version > _FORMAT:
            return None
        fields = document["record"]
        fields.setdefault("disturbed", 0)  # the first lines of this version lack it
        for name in _NESTED:
            fields[name] = json.dumps(fields[name])
        record = from_row((*(fields[name] for name in _NAMES), None))
        entry = TaskEntry(**document["task"])
        for text in astuple(entry):
            check_text(text)
        if version >= _WITH_CHECKSUM or "checksum" in document:
            verify(_values(entry, record), str(document["checksum"]))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return None
    return (entry, record) if entry.key == record.task_key else None
