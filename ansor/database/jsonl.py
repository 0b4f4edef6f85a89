"""Records as lines of JSON: to look at, to merge, to send. Each line stands on its own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ansor.database.database import Database, TaskEntry
from ansor.database.record import Record
from ansor.database.rows import COLUMNS, from_row, to_row
from ansor.errors import DatabaseError

_NAMES = COLUMNS.split(", ")
_NESTED = ("program", "latencies_s", "versions")  # JSON text in the table, JSON proper in a line
_FORMAT = 1  # version of the lines; a reader refuses a higher one
_TEXTS = ("task_key", "target", "message", "host")
_NUMBERS = ("build_s", "run_s", "time_s")
_TYPES: Mapping[str, Any] = MappingProxyType(
    {**dict.fromkeys(_TEXTS, str), **dict.fromkeys(_NUMBERS, Real), "seed": int | None}
)


@dataclass(frozen=True)
class ImportCount:
    """Lines of an imported file: `added`, `known` already, and `bad` (torn, foreign, too new)."""

    added: int
    known: int
    bad: int


def export_jsonl(
    database: Database, path: str | os.PathLike[str], target: str | None = None
) -> int:
    """Writes all records, of one target where given; returns their number.

    Raises:
        DatabaseError: the file cannot be written.
    """
    targets = database.targets() if target is None else [target]
    records = [record for each in targets for record in database.all_records(each)]
    # After the records: another process may add tasks meanwhile.
    tasks = {entry.key: entry for entry in database.tasks()}
    try:
        with Path(path).open("w", encoding="utf-8") as stream:
            stream.writelines(to_line(tasks[r.task_key], r) + "\n" for r in records)
    except OSError as error:
        raise DatabaseError(f"path={str(path)!r}: {error}; give a file that can be made") from error
    return len(records)


def import_jsonl(database: Database, path: str | os.PathLike[str]) -> ImportCount:
    """Adds the records of a file in one transaction; what is known already is not added again.

    Raises:
        DatabaseError: the file cannot be read.
    """
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise DatabaseError(f"path={str(path)!r}: {error}; give a file that exists") from error
    lines = [line for line in lines if line.strip()]
    read = {line: _from_line(line) for line in lines}
    bad = sum(read[line] is None for line in lines)
    new = [pair for pair in read.values() if pair is not None and not database.has(pair[1])]
    database.add_records([entry for entry, _ in new], [record for _, record in new])
    return ImportCount(added=len(new), known=len(lines) - bad - len(new), bad=bad)


def to_line(entry: TaskEntry, record: Record) -> str:
    """A record and its task as a line of JSON, without its end."""
    fields: dict[str, Any] = dict(zip(_NAMES, to_row(record), strict=True))
    for name in _NESTED:
        fields[name] = json.loads(fields[name])
    return json.dumps({"format": _FORMAT, "task": asdict(entry), "record": fields})


def _from_line(line: bytes) -> tuple[TaskEntry, Record] | None:
    """None for a line that holds no record of ours."""
    try:
        document = json.loads(line)
        if document["format"] > _FORMAT:
            return None
        fields = document["record"]
        if not _has_types(fields):
            return None
        for name in _NESTED:
            fields[name] = json.dumps(fields[name])
        record = from_row(tuple(fields[name] for name in _NAMES))
        entry = TaskEntry(**document["task"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return (entry, record) if entry.key == record.task_key else None


def _has_types(fields: Mapping[str, Any]) -> bool:
    """Whether the table can hold the fields of a record, and they mean something there."""
    numbers = all(isinstance(value, Real) for value in fields["latencies_s"])
    texts = all(isinstance(value, str) for value in fields["versions"].values())
    scalars = all(isinstance(fields[name], kind) for name, kind in _TYPES.items())
    return numbers and texts and scalars
