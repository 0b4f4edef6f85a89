"""Timing programs on a server, by the rules of `ansor.measure.child.timing`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ansor.config import MeasureConfig
from ansor.measure.child.quiet_times import Run
from ansor.measure.child.remote.session import RemoteSession
from ansor.measure.child.timing import time_program, time_round
from ansor.measure.child.timing_conditions import Conditions
from ansor.measure.remote_program import Library
from ansor.measure.result import InTurns, Timing
from ansor.measure.turns import counted, joined

# TVM's function that drops all arguments but the first from the caches. The first argument of a
# function in a network is an activation, which the function before has just written.
_COLD = "cache_flush_cpu_non_first_arg"


@dataclass(frozen=True, eq=False)
class RemoteKernel:
    """A loaded program and its arguments on a server.

    Attributes:
        cold: whether all arguments but the first are dropped from the caches before each run.
    """

    session: RemoteSession
    module: Any
    arguments: Sequence[Any]
    cold: bool

    @property
    def others_s(self) -> float:
        """Zero: nothing runs between the runs."""
        return 0.0

    def total(self, number: int) -> float:
        """Seconds of `number` runs; TVM's additional first run does not count."""
        return number * self._mean(number)

    def run(self) -> Run:
        """Returns the mean seconds of some runs."""
        return self._mean

    def conditions(self, first_s: float) -> Conditions:
        """The conditions of the session."""
        return self.session.conditions

    def _mean(self, number: int) -> float:
        if not self.cold:
            return self.session.seconds(self.module, self.arguments, number)[0]
        runs = self.session.seconds(self.module, self.arguments, 1, number, _COLD)
        return statistics.fmean(runs)


def kernel_of(session: RemoteSession, library: Library, cold: bool) -> RemoteKernel:
    """A library, loaded, with arguments."""
    return RemoteKernel(session, session.load(library), session.arguments(library), cold)


def time_there(
    session: RemoteSession, library: Library, best_s: float, cold: bool, config: MeasureConfig
) -> Timing:
    """Times a library; see `time_program`."""
    return time_program(kernel_of(session, library, cold), best_s, config)


def compare_there(
    session: RemoteSession,
    libraries: Sequence[Library],
    rounds: int,
    seconds: float,
    cold: bool,
    config: MeasureConfig,
) -> list[InTurns | None]:
    """Times of libraries that are timed in turns; None for one that fails.

    Args:
        rounds: in which each is timed once.
        seconds: after which no further round begins.

    Raises:
        Exception: the session has ended.
    """
    kernels = [_loaded(session, library, cold) for library in libraries]
    times: list[list[Timing]] = [[] for _ in libraries]
    began_s = time.monotonic()
    for number in range(rounds):
        if number and time.monotonic() - began_s > seconds:
            break
        for i, kernel in enumerate(kernels):
            if kernel is not None and (found := _round(kernel, config)) is not None:
                times[i].append(found)
            else:
                kernels[i] = None
    return [
        None if kernel is None else joined([counted(own)])
        for kernel, own in zip(kernels, times, strict=True)
    ]


def _loaded(session: RemoteSession, library: Library, cold: bool) -> RemoteKernel | None:
    try:
        return kernel_of(session, library, cold)
    except Exception:  # TVM's own, of many kinds: a program that fails has no times
        if not session.is_alive():
            raise
        return None


def _round(kernel: RemoteKernel, config: MeasureConfig) -> Timing | None:
    try:
        return time_round(kernel, config)
    except Exception:  # TVM's own, of many kinds: a program that fails has no times
        if not kernel.session.is_alive():
            raise
        return None
