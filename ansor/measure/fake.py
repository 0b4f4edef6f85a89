"""A device that computes its answers by a formula, for tests of this and other packages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ansor.measure.call_plan import CallPlan
from ansor.measure.device import Device, OnResult, TaskProgram, ignored
from ansor.measure.result import (
    ErrorKind,
    InTurns,
    Measurement,
    Verification,
    successful_measurement,
)
from ansor.program.program import Program

if TYPE_CHECKING:
    from ansor.task import Task


def never(task: Task, program: Program) -> ErrorKind | None:
    """The fault function of a device without failures."""
    return None


def steady(number: int) -> float:
    """The speed of an undisturbed machine."""
    return 1.0


class FakeDevice(Device):
    """A deterministic `Device` that compiles nothing.

    Args:
        latency_of: seconds of one run of a program.
        fail: how a program fails, or None; WRONG fails `verify` only.
        interrupt_at: raise KeyboardInterrupt instead of this measurement, counted from 1.
        speed: of the machine at a measurement, counted from 1, as a share of its best. Below 1
            programs take longer, and the measurement is disturbed.

    Attributes:
        trace: task key and program of every measurement, in order.
        verified: the same of every verification.
    """

    def __init__(
        self,
        latency_of: Callable[[Task, Program], float],
        fail: Callable[[Task, Program], ErrorKind | None] = never,
        interrupt_at: int | None = None,
        speed: Callable[[int], float] = steady,
    ) -> None:
        self.trace: list[tuple[str, Program]] = []
        self.verified: list[tuple[str, Program]] = []
        self.closed = False
        self._latency_of = latency_of
        self._fail = fail
        self._interrupt_at = interrupt_at
        self._speed = speed

    @property
    def count(self) -> int:
        """Number of measurements so far."""
        return len(self.trace)

    def measure(
        self,
        task: Task,
        programs: Sequence[Program],
        best_s: float | None,
        on_result: OnResult = ignored,
    ) -> list[Measurement]:
        """See `Device.measure`.

        Raises:
            KeyboardInterrupt: at the measurement that the constructor named.
        """
        results = []
        for number, program in enumerate(programs):
            results.append(self._measure_one(task, program))
            on_result(number, results[-1])
        return results

    def _measure_one(self, task: Task, program: Program) -> Measurement:
        if self.count + 1 == self._interrupt_at:
            self._interrupt_at = None
            raise KeyboardInterrupt
        self.trace.append((task.key, program))
        kind = self._fail(task, program)
        if kind in (None, ErrorKind.WRONG):
            speed = self._speed(self.count)
            found = successful_measurement((self._latency_of(task, program) / speed,), 0.0, 0.0)
            return replace(found, disturbed=speed < 1, speed=speed)
        return Measurement(error=kind, message="injected fault")

    def verify(self, candidates: Sequence[TaskProgram]) -> list[Verification]:
        """See `Device.verify`."""
        return [self._verify_one(task, program) for task, program in candidates]

    def _verify_one(self, task: Task, program: Program) -> Verification:
        self.verified.append((task.key, program))
        kind = self._fail(task, program)
        if kind is None:
            return Verification(0.0)
        difference = 1.0 if kind is ErrorKind.WRONG else None
        return Verification(difference, kind, "injected fault")

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        """See `Device.compare`; not counted as measurements."""
        return [
            self._latency_of(task, p) if self._fail(task, p) in (None, ErrorKind.WRONG) else None
            for p in programs
        ]

    def compare_turns(
        self, task: Task, programs: Sequence[Program], rounds: int
    ) -> list[InTurns | None]:
        """See `Device.compare_turns`."""
        times = self.compare(task, programs, rounds)
        return [None if seconds is None else InTurns(seconds) for seconds in times]

    def rehearse(
        self, plan: CallPlan, candidates: Mapping[str, Sequence[TaskProgram]], seconds: float
    ) -> dict[str, list[float | None]]:
        """See `Device.rehearse`; not counted as measurements."""
        calls = Counter(call.function for call in plan.calls)
        return {
            name: [calls[name] * self._latency_of(task, program) for task, program in own]
            for name, own in candidates.items()
        }

    def close(self) -> None:
        """See `Device.close`."""
        self.closed = True
