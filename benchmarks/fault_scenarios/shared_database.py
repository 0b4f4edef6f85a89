"""Several processes that tune into one database."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

from benchmarks.fault_scenarios.row import Case, Row, Scale
from benchmarks.fault_scenarios.small_run import Files, error_of, running

_PROCESSES = 4
_BUDGETS: Mapping[Scale, tuple[str, str]] = MappingProxyType(
    {Scale.QUICK: ("--trials", "16"), Scale.FULL: ("--minutes", "2")}
)


def run(scale: Scale) -> list[Row]:
    """Runs with different seeds at the same time."""
    budget = _BUDGETS[scale]
    case = Case("runs at once", f"{_PROCESSES} processes with {' '.join(budget).strip('-')}")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        files = [Files.of(Path(folder), f"run{number}") for number in range(_PROCESSES)]
        started = [
            stack.enter_context(running(own, *budget, "--seed", str(seed)))
            for seed, own in enumerate(files)
        ]
        errors = [error for process in started if (error := error_of(process))]
        lines = sum(own.lines() for own in files)
        lost = sum(own.lost() for own in files)
        count, sound = files[0].count(), files[0].is_sound()
    text = f"{lost} of {lines} lost, {count} in the database" + ("" if sound else ", damaged")
    failed = f"{len(errors)} errors {' '.join(errors[:1])}".strip()
    return [
        case.row("no run fails", failed, not errors),
        case.row("no record is lost", text, bool(lines) and not lost and count == lines and sound),
    ]
