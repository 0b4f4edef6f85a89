"""One kernel that is measured again and again beside work that comes and goes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

import ansor
from ansor.database.database import Database
from ansor.frontend.variants import KINDS
from ansor.measure.local_device import LocalDevice
from ansor.program.program import Program
from ansor.targets.host.threads import available_cores
from ansor.task import Task
from benchmarks.fault_scenarios.row import Case, Row, Scale
from benchmarks.operator_case import workload_of
from benchmarks.spaces import task_of

_OPERATOR = "GMM.2"
_MOST_SPREAD = 0.05
_TURN_S = 1.0  # of work and of rest in turns
_PAUSE_S = 0.37  # between measurements, which thus begin at any moment of a turn
_WORK = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
turn_s = float(sys.argv[2])
while True:
    end = time.monotonic() + turn_s
    while time.monotonic() < end:
        pass
    time.sleep(turn_s)
"""


@dataclass(frozen=True)
class _Size:
    """Programs of the search for a fast kernel, and measurements of this kernel."""

    trials: int
    measurements: int


_SIZES: Mapping[Scale, _Size] = MappingProxyType(
    {Scale.QUICK: _Size(4, 4), Scale.FULL: _Size(64, 30)}
)


def run(scale: Scale) -> list[Row]:
    """Finds a fast kernel on the quiet machine and measures it beside the work."""
    size, threads = _SIZES[scale], available_cores()
    task = task_of(_OPERATOR, threads)
    program = _fast_program(task, size.trials)
    turns = f"a busy loop on one core, {_TURN_S:.0f} s of every {2 * _TURN_S:.0f} s"
    case = Case(_OPERATOR, turns)
    with LocalDevice(task.target, threads) as device:
        device.measure(task, [program], None)  # starts the workers
        alone = _Spread.of(_measured(device, task, program, size.measurements))
        with _work_in_turns():
            beside = _Spread.of(_measured(device, task, program, size.measurements))
    return [
        case.row(
            f"the quartiles of the latencies are at most {_MOST_SPREAD:.0%} of the median apart",
            f"{beside} of {size.measurements} measurements; without the loop {alone}",
            beside.quartiles <= _MOST_SPREAD and beside.count == size.measurements,
        )
    ]


@dataclass(frozen=True)
class _Spread:
    """Distances of the quartiles and of the extremes of latencies, as shares of their median."""

    median_s: float
    quartiles: float
    extremes: float
    count: int

    @staticmethod
    def of(latencies_s: Sequence[float]) -> _Spread:
        lower, median_s, upper = statistics.quantiles(latencies_s, n=4, method="inclusive")
        extremes = max(latencies_s) - min(latencies_s)
        return _Spread(median_s, (upper - lower) / median_s, extremes / median_s, len(latencies_s))

    def __str__(self) -> str:
        return (
            f"{self.quartiles:.1%} of {self.median_s * 1e6:.1f} µs, extremes {self.extremes:.1%}, "
            f"in {self.count}"
        )


def _fast_program(task: Task, trials: int) -> Program:
    """The fastest program of a short search."""
    database = Database()
    tensors = list(workload_of(_OPERATOR).tensors)
    ansor.auto_schedule(tensors, trials=trials, database=database, forbid=tuple(KINDS))
    (best,) = database.best(task.key, task.target)
    database.close()
    return best.program


def _measured(device: LocalDevice, task: Task, program: Program, count: int) -> Sequence[float]:
    """Seconds of the program, of each measurement that succeeded."""
    found: list[float] = []
    for _ in range(count):
        (measurement,) = device.measure(task, [program], None)
        if measurement.latency_s is not None:
            found.append(measurement.latency_s)
        time.sleep(_PAUSE_S)
    return found


@contextmanager
def _work_in_turns() -> Iterator[None]:
    """A process that computes on one core for half of the time meanwhile."""
    core = max(os.sched_getaffinity(0))
    work = subprocess.Popen([sys.executable, "-c", _WORK, str(core), str(_TURN_S)])
    try:
        yield
    finally:
        work.kill()
        work.wait()
