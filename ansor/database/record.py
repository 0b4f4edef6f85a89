"""The record of one measurement."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass

from ansor.measure.result import Measurement
from ansor.program.program import Program

_PACKAGES = ("ansor", "apache-tvm", "numpy")


@dataclass(frozen=True)
class Origin:
    """The machine and the time of a measurement.

    Attributes:
        time_s: seconds since 1970.
        seed: of the search that proposed the program; None when unknown.
    """

    host: str
    versions: Mapping[str, str]
    time_s: float
    seed: int | None = None


@dataclass(frozen=True)
class Record:
    """One measured program of a task on a target (canonical text)."""

    task_key: str
    target: str
    program: Program
    measurement: Measurement
    origin: Origin

    @property
    def latency_s(self) -> float | None:
        """Median seconds of one run; None when it failed."""
        return self.measurement.latency_s


def here_and_now(seed: int | None, host: str | None = None) -> Origin:
    """The origin of a measurement that was just made, on this machine unless a host is given."""
    return Origin(host or platform.node(), _versions(), time.time(), seed)


@functools.cache
def _versions() -> Mapping[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
