"""`doctor`: examines this machine and the installation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ansor.diagnosis.finding import DoctorReport, Finding
from ansor.diagnosis.folders import folder_findings
from ansor.diagnosis.instructions import instruction_findings
from ansor.diagnosis.occupation import load_finding, memory_finding, observed_load
from ansor.diagnosis.processor import clock_findings, core_findings, read_cores
from ansor.diagnosis.speed import measure_speed, speed_findings
from ansor.diagnosis.tools import tool_findings
from ansor.diagnosis.versions import version_findings
from ansor.errors import ArgumentError
from ansor.targets.target import resolve_target


def doctor(
    *,
    threads: int | None = None,
    database: str | os.PathLike[str] | None = None,
    measure: bool = True,
) -> DoctorReport:
    """Examines this machine and the installation: what is right, what is not, and what to do.

    Args:
        threads: that programs run on; all cores by default.
        database: file of records whose folder is examined; by default the current folder.
        measure: whether the speed of the machine is measured, in ten to twenty seconds.

    Returns:
        the findings; as text, each has a line and its remedy.

    Raises:
        ArgumentError: the number of threads is below one.
    """
    if threads is not None and threads < 1:
        raise ArgumentError("threads", threads, "must be at least 1")
    path = None if database is None else Path(database)
    return DoctorReport(tuple(_findings(threads, path, measure)))


def _findings(threads: int | None, database: Path | None, measure: bool) -> Iterator[Finding]:
    target, cores = resolve_target("native"), read_cores(threads)
    yield from version_findings()
    yield from tool_findings()
    yield from core_findings(cores)
    yield from clock_findings()
    yield from instruction_findings(target)
    yield load_finding(observed_load(), cores)
    yield memory_finding()
    if measure:
        yield from speed_findings(measure_speed(target, cores.threads))
    yield from folder_findings(database)
