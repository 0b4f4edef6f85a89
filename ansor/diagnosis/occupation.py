"""Findings about other work on this machine, and the memory that it leaves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import psutil

from ansor.config import DOCTOR, DoctorConfig
from ansor.diagnosis.finding import Finding, State
from ansor.diagnosis.processor import Cores
from ansor.targets.host.quota import available_bytes

_MOST_NAMES = 3
_LEAST_SHARE = 0.05  # of a core, that a process with a name takes


@dataclass(frozen=True)
class Load:
    """Other work on a machine.

    Attributes:
        cores: that it takes, steal of a hypervisor included.
        names: of its processes, the busiest first.
    """

    cores: float
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """The work of a machine so far.

    Attributes:
        time_s: of the snapshot.
        busy_s: seconds that all processors have worked, or were withheld.
        processes_s: seconds that each process has worked, by number.
    """

    time_s: float
    busy_s: float
    processes_s: Mapping[int, float]


def observed_load(seconds: float = DOCTOR.load_s) -> Load:
    """The work of other processes in the next seconds."""
    before = _snapshot()
    time.sleep(seconds)
    return load_between(before, _snapshot(), os.getpid(), _name)


def load_between(
    before: Snapshot, after: Snapshot, own: int, name_of: Callable[[int], str]
) -> Load:
    """The work of other processes between two snapshots.

    Args:
        before: the first snapshot.
        after: the second one.
        own: number of the process that does not count.
        name_of: the name of a process by its number; "" if it has ended.
    """
    taken_s = after.time_s - before.time_s
    spent_s = {pid: s - before.processes_s.get(pid, 0.0) for pid, s in after.processes_s.items()}
    own_s = spent_s.pop(own, 0.0)
    busiest = sorted(spent_s, key=lambda pid: -spent_s[pid])[:_MOST_NAMES]
    names = [name_of(pid) for pid in busiest if spent_s[pid] > _LEAST_SHARE * taken_s]
    cores = max(0.0, after.busy_s - before.busy_s - own_s) / taken_s
    return Load(cores, tuple(filter(None, names)))


def load_finding(load: Load, cores: Cores, config: DoctorConfig = DOCTOR) -> Finding:
    """Other work, beside the cores that programs leave free."""
    text = f"{load.cores:.1f} cores"
    if load.names:
        text += f": {', '.join(load.names)}"
    free = max(0, cores.physical - cores.threads)
    if load.cores - free <= config.most_load:
        return Finding("other work", text)
    remedy = "end it, or leave cores to it with fewer threads; latencies are too long until then"
    return Finding("other work", text, State.WRONG, remedy)


def memory_finding(available: int | None = None, config: DoctorConfig = DOCTOR) -> Finding:
    """Memory that processes can get.

    Args:
        available: bytes; by default those of this machine.
        config: has the least.
    """
    found = available_bytes() if available is None else available
    text = f"{found / 2**30:.1f} GiB free"
    if found >= config.least_memory_bytes:
        return Finding("memory", text)
    remedy = f"free {config.least_memory_bytes / 2**30:.0f} GiB; workers are killed without it"
    return Finding("memory", text, State.WRONG, remedy)


def _snapshot() -> Snapshot:
    return Snapshot(time.monotonic(), _busy_seconds(), _process_seconds())


def _busy_seconds() -> float:
    """Seconds that all processors have worked since the system began, or were withheld."""
    times = psutil.cpu_times()
    # Linux counts guests as users, too. Waiting for a disk takes no core.
    idle = times.idle + getattr(times, "iowait", 0.0)
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return float(sum(times) - idle - guests)


def _process_seconds() -> dict[int, float]:
    """Seconds that each process has worked, by number."""
    found: dict[int, float] = {}
    for process in psutil.process_iter(["cpu_times"]):
        times = process.info["cpu_times"]
        if times is not None:  # of a process that may be looked at
            found[process.pid] = times.user + times.system
    return found


def _name(pid: int) -> str:
    """The name of a process; "" if it has ended."""
    try:
        return str(psutil.Process(pid).name())
    except psutil.NoSuchProcess:
        return ""
