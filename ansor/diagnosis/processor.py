"""Findings about the cores that programs may use, and their clocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from ansor.diagnosis.finding import Finding, State
from ansor.targets.host.quota import quota_cores
from ansor.targets.host.threads import allowed_cores, available_cores

_ROOT = Path("/")
_CPU = "sys/devices/system/cpu"
# Drivers whose "powersave" raises the clock under load (Linux, admin-guide/pm).
_SCALING_DRIVERS = ("intel_pstate", "amd-pstate-epp")


@dataclass(frozen=True)
class Cores:
    """The cores of a machine, as far as a process may use them.

    Attributes:
        physical: cores of the machine.
        logical: hyper-threads of the machine.
        allowed: hyper-threads that the affinity of the process allows.
        quota: whole cores of the container's share of time; None without a limit.
        threads: that programs run on.
    """

    physical: int
    logical: int
    allowed: int
    quota: int | None
    threads: int


def read_cores(threads: int | None) -> Cores:
    """The cores of this machine.

    Args:
        threads: that programs run on; by default all available cores.
    """
    logical = psutil.cpu_count() or 1
    return Cores(
        psutil.cpu_count(logical=False) or logical,
        logical,
        len(allowed_cores()),
        quota_cores(),
        threads or available_cores(),
    )


def core_findings(cores: Cores) -> Iterator[Finding]:
    """Threads, affinity, quota and hyper-threads."""
    usable = min(cores.physical, cores.allowed, cores.quota or cores.physical)
    text = f"{cores.threads} for programs, {cores.physical} cores"
    if cores.threads > usable:
        remedy = f"use at most {usable}; more threads wait for one another"
        yield Finding("threads", text, State.WRONG, remedy)
    else:
        yield Finding("threads", text)
    if cores.allowed < cores.logical:
        remedy = "start without taskset or a CPU set to use all"
        text = f"{cores.allowed} of {cores.logical} processors"
        yield Finding("affinity", text, State.NOTE, remedy)
    else:
        yield Finding("affinity", f"all {cores.logical} processors")
    if cores.quota is None:
        yield Finding("CPU quota", "none")
    else:
        remedy = "raise the container's limit, or give it whole cores"
        yield Finding("CPU quota", f"{cores.quota} cores", State.NOTE, remedy)
    smt = "on; a core runs one thread" if cores.logical > cores.physical else "off"
    yield Finding("SMT", smt)


def clock_findings(root: Path = _ROOT) -> Iterator[Finding]:
    """The governor of the clock and turbo, where the system tells them.

    Args:
        root: of the file system; another one for tests.
    """
    folder = root / _CPU
    governor = _read(folder / "cpu0/cpufreq/scaling_governor")
    driver = _read(folder / "cpu0/cpufreq/scaling_driver")
    yield _governor(governor, driver)
    yield _turbo(_read(folder / "cpufreq/boost"), _read(folder / "intel_pstate/no_turbo"))


def highest_clock_hz(root: Path = _ROOT) -> float | None:
    """The highest clock of the processor, or its nominal one; None if the system does not tell."""
    most_khz = _read(root / _CPU / "cpu0/cpufreq/cpuinfo_max_freq")
    if most_khz.isdecimal():
        return float(most_khz) * 1e3
    nominal = psutil.cpu_freq()
    return None if nominal is None else max(nominal.max, nominal.current) * 1e6 or None


def _governor(governor: str, driver: str) -> Finding:
    if not governor:
        return Finding("governor", "the system does not tell", State.NOTE)
    text = f"{governor} ({driver or 'unknown driver'})"
    if governor == "powersave" and driver not in _SCALING_DRIVERS:
        remedy = "cpupower frequency-set --governor performance"
        return Finding("governor", text, State.WRONG, remedy)
    return Finding("governor", text)


def _turbo(boost: str, no_turbo: str) -> Finding:
    if not (boost or no_turbo):
        return Finding("turbo", "the system does not tell", State.NOTE)
    if boost == "0" or no_turbo == "1":
        return Finding("turbo", "off; programs are slower and steadier", State.NOTE)
    return Finding("turbo", "on")


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:  # a virtual machine has none of these files
        return ""
