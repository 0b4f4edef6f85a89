"""What a device says of the programs of a trial, as far as it can be true."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.measure.device import Device
from ansor.measure.result import Measurement, checked
from ansor.program.program import Program
from ansor.run.task_search import TaskSearch


def measured(device: Device, search: TaskSearch, programs: Sequence[Program]) -> list[Measurement]:
    """Measures programs of a task; a time that the machine cannot reach is a failure."""
    found = device.measure(search.task, programs, search.best_s)
    return [checked(measurement, search.least_s) for measurement in found]
