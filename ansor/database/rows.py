"""Records as rows of the table, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ansor.database.checksum import checksum, verify
from ansor.database.record import Origin, Record
from ansor.measure.result import ErrorKind, Measurement
from ansor.program import codec

COLUMNS = (
    "task_key, target, sketch, program, latency_s, latencies_s, build_s, run_s, error, message, "
    "host, versions, seed, time_s, disturbed, checksum"
)
PLACEHOLDERS = ", ".join("?" * (COLUMNS.count(",") + 1))
_LAST_S = 253_402_300_799.0  # of the year 9999, the last that `datetime` knows


def to_row(record: Record) -> tuple[Any, ...]:
    """The values of `COLUMNS`."""
    measurement, origin = record.measurement, record.origin
    values = (
        record.task_key,
        record.target,
        record.program.sketch,
        codec.encode(record.program),
        None if record.latency_s is None else float(record.latency_s),
        json.dumps(measurement.latencies_s),
        float(measurement.build_s),
        float(measurement.run_s),
        measurement.error.value if measurement.error else None,
        measurement.message,
        origin.host,
        versions_text(origin.versions),
        origin.seed,
        float(origin.time_s),
    )
    row = (*values, int(measurement.disturbed), "")
    return (*row[:-1], checksum(checked_values(row)))


def checked_values(row: Sequence[Any]) -> tuple[Any, ...]:
    """The values of a row that its checksum depends on.

    The mark of a disturbed measurement is included only if it is set, so that rows of format 3
    keep their checksums.
    """
    *values, disturbed, _ = row
    return (*values, disturbed) if disturbed else tuple(values)


def versions_text(versions: Mapping[str, str]) -> str:
    """Canonical text of the versions of packages."""
    return json.dumps(dict(versions), sort_keys=True)


def from_row(row: Sequence[Any]) -> Record:
    """Inverse of `to_row`.

    Raises:
        ValueError: the row is damaged, or has a program or an error kind of another version.
    """
    *values, digits = row
    verify(checked_values(row), digits)
    try:
        return _record(*values)
    except (TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"not a row of this version: {error!r}") from error


def _record(
    key: str,
    target: str,
    sketch: str,
    program_text: str,
    latency_s: float | None,
    latencies: str,
    build_s: float,
    run_s: float,
    error: str | None,
    message: str,
    host: str,
    versions: str,
    seed: int | None,
    time_s: float,
    disturbed: int,
) -> Record:
    for text in (key, target, sketch, message, host):
        check_text(text)
    build_s, run_s, time_s = map(nonnegative, (build_s, run_s, time_s))
    _check(time_s <= _LAST_S, "a time")
    _check(seed is None or type(seed) is int, "a seed")
    _check(type(disturbed) is int and disturbed in (0, 1), "a mark")
    program = codec.decode(program_text)
    _check(program.sketch == sketch, "a program of its sketch")
    kind = None if error is None else ErrorKind(error)
    times, is_disturbed = _latencies(latencies), bool(disturbed)
    measurement = Measurement(times, kind, message, build_s, run_s, is_disturbed)
    _check(measurement.latency_s == latency_s, "the median of its latencies")
    _check(latency_s is None or error is None, "a latency or an error")
    return Record(
        key, target, program, measurement, Origin(host, _versions(versions), time_s, seed)
    )


def _latencies(text: str) -> tuple[float, ...]:
    found = tuple(map(nonnegative, _read(list, text)))
    _check(all(found), "a list of latencies")
    return found


def _versions(text: str) -> Mapping[str, str]:
    found: dict[str, str] = _read(dict, text)
    _check(all(isinstance(value, str) for value in found.values()), "versions of packages")
    return found


def _read(kind: type[Any], text: str) -> Any:
    """The value of a JSON text, of a given type."""
    found = json.loads(text)
    _check(isinstance(found, kind), f"a {kind.__name__}")
    return found


def check_text(value: Any) -> None:
    """Raises a ValueError for a value that is no text, or that a file cannot contain."""
    _check(isinstance(value, str), "a text")
    value.encode()


def nonnegative(value: Any) -> float:
    """A number of a row.

    Raises:
        ValueError: it is no number, negative, or not finite.
    """
    _check(type(value) in (int, float) and math.isfinite(value) and value >= 0, "a number")
    return value  # type: ignore[no-any-return]


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"not {what}")
