"""Records as rows of the table, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansor.database.record import Origin, Record
from ansor.measure.result import ErrorKind, Measurement, is_time
from ansor.program import codec

COLUMNS = (
    "task_key, target, sketch, program, latency_s, latencies_s, build_s, run_s, error, message, "
    "host, versions, seed, time_s"
)
PLACEHOLDERS = ", ".join("?" * (COLUMNS.count(",") + 1))


def to_row(record: Record) -> tuple[Any, ...]:
    """The values of `COLUMNS`."""
    measurement, origin = record.measurement, record.origin
    return (
        record.task_key,
        record.target,
        record.program.sketch,
        codec.encode(record.program),
        record.latency_s,
        json.dumps(measurement.latencies_s),
        measurement.build_s,
        measurement.run_s,
        measurement.error.value if measurement.error else None,
        measurement.message,
        origin.host,
        versions_text(origin.versions),
        origin.seed,
        origin.time_s,
    )


def versions_text(versions: Mapping[str, str]) -> str:
    """Canonical text of the versions of packages."""
    return json.dumps(dict(versions), sort_keys=True)


def from_row(row: tuple[Any, ...]) -> Record:
    """Inverse of `to_row`.

    Raises:
        ValueError: the row has a program or error kind of another version, or no true time.
    """
    key, target, _, program, _, latencies, build_s, run_s, error, message, *origin = row
    host, versions, seed, time_s = origin
    times = tuple(json.loads(latencies))
    if not all(map(is_time, times)):
        raise ValueError(f"not a time: {latencies}")
    measurement = Measurement(
        times,
        ErrorKind(error) if error else None,
        message,
        build_s,
        run_s,
    )
    where = Origin(host, json.loads(versions), time_s, seed)
    return Record(key, target, codec.decode(program), measurement, where)
