"""A device that keeps its measurements, so that searches can be compared at little cost.

A program that one search measured is not built again for the next. The device gives the same
answer, and the clock advances by the seconds of the first measurement.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ansor.executor import Executor, in_turns
from ansor.measure.call_plan import CallPlan
from ansor.measure.device import Device, OnResult, TaskProgram, ignored
from ansor.measure.result import InTurns, Measurement, Verification
from ansor.program.codec import encode
from ansor.program.program import Program
from ansor.task import Task


@dataclass(frozen=True)
class Trial:
    """One measurement of a search: seconds of a run (None: it failed), and when it was known."""

    program: Program
    latency_s: float | None
    time_s: float


class ReplayDevice(Device):
    """A `Device` that asks another one, at most once per program if it replays.

    Args:
        device: measures unknown programs; its owner closes it.
        replay: whether results are used again.
        clock: seconds of real time.

    Attributes:
        executor: of the device's search.
        trials: every measurement since they were last cleared, in order.
        built: number of programs that the other device measured.
    """

    def __init__(
        self,
        device: Device,
        replay: bool,
        clock: Callable[[], float] = time.monotonic,
        executor: Executor = in_turns,
    ) -> None:
        self.trials: list[Trial] = []
        self.built = 0
        self._device, self._replay, self._clock = device, replay, clock
        self._known: dict[tuple[str, str], tuple[Measurement, float]] = {}
        self._ahead_s = 0.0
        self.executor = executor

    def now(self) -> float:
        """Seconds, with those that replayed measurements would have taken."""
        return self._clock() + self._ahead_s

    def start(self, count: int | None = None) -> None:
        """See `Device.start`."""
        self._device.start(count)

    def measure(
        self,
        task: Task,
        programs: Sequence[Program],
        best_s: float | None,
        on_result: OnResult = ignored,
    ) -> list[Measurement]:
        """See `Device.measure`."""
        if not self._replay:
            self._known.clear()
        keys = [(task.key, encode(program)) for program in programs]
        self._ahead_s += sum(self._known[key][1] for key in keys if key in self._known)
        missing = {k: p for k, p in zip(keys, programs, strict=True) if k not in self._known}
        self._learn(task, missing, best_s)
        results = [self._known[key][0] for key in keys]
        known_s = self.now()
        for program, result in zip(programs, results, strict=True):
            self.trials.append(Trial(program, result.latency_s, known_s))
        for number, result in enumerate(results):
            on_result(number, result)
        return results

    def _learn(
        self, task: Task, missing: dict[tuple[str, str], Program], best_s: float | None
    ) -> None:
        """Measures; each program's cost is its share of the batch's time."""
        if not missing:
            return
        began = self._clock()
        results = self._device.measure(task, list(missing.values()), best_s)
        cost_s = (self._clock() - began) / len(missing)
        self.built += len(missing)
        for key, result in zip(missing, results, strict=True):
            self._known[key] = result, cost_s

    def verify(self, candidates: Sequence[TaskProgram]) -> list[Verification]:
        """See `Device.verify`."""
        return self._device.verify(candidates)

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        """See `Device.compare`."""
        return self._device.compare(task, programs, rounds)

    def compare_turns(
        self, task: Task, programs: Sequence[Program], rounds: int
    ) -> list[InTurns | None]:
        """See `Device.compare_turns`."""
        return self._device.compare_turns(task, programs, rounds)

    def rehearse(
        self, plan: CallPlan, candidates: Mapping[str, Sequence[TaskProgram]], seconds: float
    ) -> dict[str, list[float | None]]:
        """See `Device.rehearse`."""
        return self._device.rehearse(plan, candidates, seconds)

    def close(self) -> None:
        """Keeps the other device open: it is another's."""
