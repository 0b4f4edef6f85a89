"""Statistics of a database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ansor.database.database import Database
from ansor.database.integrity import check_integrity


@dataclass(frozen=True)
class Statistics:
    """Counts of a database, and of its records by their properties.

    Attributes:
        records: that this version can read.
        unreadable: records that are damaged, or that another version wrote.
        tasks: definitions that have records.
        checks: programs that passed their checks.
        elections: functions with a recorded winner.
        size_bytes: of the file; None for a database in memory.
        targets: records by target.
        hosts: records by the name of the machine.
        versions: records by the version of this package.
        failures: failed measurements by the kind of their error.
    """

    records: int
    unreadable: int
    tasks: int
    checks: int
    elections: int
    size_bytes: int | None
    targets: Mapping[str, int]
    hosts: Mapping[str, int]
    versions: Mapping[str, int]
    failures: Mapping[str, int]


def statistics(database: Database) -> Statistics:
    """Reads and checks every record of a database.

    Raises:
        DatabaseError: the file is damaged.
    """
    file = database.file
    if file is not None:
        check_integrity(file, database.connection, None)
    targets, hosts, versions, failures = (Counter[str]() for _ in range(4))
    tasks = set()
    before = database.unreadable
    for _, record in database.numbered():
        targets[record.target] += 1
        hosts[record.origin.host] += 1
        versions[record.origin.versions.get("ansor", "unknown")] += 1
        tasks.add(record.task_key)
        if record.measurement.error is not None:
            failures[record.measurement.error.value] += 1
    return Statistics(
        records=targets.total(),
        unreadable=database.unreadable - before,
        tasks=len(tasks),
        checks=_rows(database, "checks"),
        elections=_rows(database, "elections"),
        size_bytes=None if file is None else file.stat().st_size,
        targets=dict(targets),
        hosts=dict(hosts),
        versions=dict(versions),
        failures=dict(failures),
    )


def _rows(database: Database, table: str) -> int:
    ((count,),) = database.query(f"SELECT COUNT(*) FROM {table}")
    return int(count)
