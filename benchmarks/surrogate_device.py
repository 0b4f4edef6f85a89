"""`SurrogateDevice`: answers from trees that were fitted to real measurements.

A search on it costs seconds. The same is done for neural architecture search by NAS-Bench-301
(Siems et al., arXiv 2008.09777).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ansor.config import FULL, MeasureConfig
from ansor.errors import ArgumentError
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
from ansor.program.sketch import Population, Sketch
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.task import Task
from benchmarks.surrogate_fitting import runs_s
from benchmarks.surrogate_model import Prediction, Surrogate


class SurrogateDevice(Device):
    """A deterministic `Device` that builds nothing and runs nothing.

    Args:
        surrogates: of the operators that it knows.
        hardware: of the machine whose sketches are searched.
        workers: that would build at the same time.
        clock: seconds of the search.

    Attributes:
        count: number of measurements so far.
    """

    def __init__(
        self,
        surrogates: Sequence[Surrogate],
        hardware: Hardware,
        workers: int,
        config: MeasureConfig = FULL.measure,
        clock: Callable[[], float] = time.process_time,
    ) -> None:
        self.count = 0
        self._known = {surrogate.key: surrogate for surrogate in surrogates}
        self._hardware, self._workers, self._config = hardware, workers, config
        self._clock, self._ahead_s = clock, 0.0
        self._sketches: dict[str, dict[str, Sketch]] = {}

    def now(self) -> float:
        """Seconds of the search, with those that the measurements would have taken. The time of
        this device itself does not count."""
        return self._clock() + self._ahead_s

    def start(self, count: int | None = None) -> None:
        """See `Device.start`; trees need no preparation."""

    def measure(
        self,
        task: Task,
        programs: Sequence[Program],
        best_s: float | None,
        on_result: OnResult = ignored,
    ) -> list[Measurement]:
        """See `Device.measure`.

        Raises:
            ArgumentError: there is no surrogate of the task.
        """
        began_s = self._clock()
        results = self._results(task, programs, best_s)
        self.count += len(programs)
        build_s, run_s = (sum(getattr(r, n) for r in results) for n in ("build_s", "run_s"))
        self._ahead_s += build_s / self._workers + run_s - (self._clock() - began_s)
        for number, result in enumerate(results):
            on_result(number, result)
        return results

    def _results(
        self, task: Task, programs: Sequence[Program], best_s: float | None
    ) -> list[Measurement]:
        surrogate = self._surrogate(task)
        results: dict[int, Measurement] = {}
        for name in dict.fromkeys(program.sketch for program in programs):
            numbers = [i for i, program in enumerate(programs) if program.sketch == name]
            sketch = self._sketches_of(task).get(name)
            rows = [None if sketch is None else sketch.row_of(programs[i]) for i in numbers]
            known = [(i, row) for i, row in zip(numbers, rows, strict=True) if row is not None]
            if sketch is not None and known:
                found = surrogate.predict(Population(sketch, np.stack([row for _, row in known])))
                for place, (i, _) in enumerate(known):
                    results[i] = self._measurement(surrogate, found, place, best_s)
        unknown = Measurement(error=ErrorKind.LOWER, message="the surrogate has no such sketch")
        return [results.get(i, unknown) for i in range(len(programs))]

    def _measurement(
        self, surrogate: Surrogate, found: Prediction, row: int, best_s: float | None
    ) -> Measurement:
        """One measurement with the seconds that it would have taken."""
        build_s, latency_s = float(found.build_s[row]), float(found.latency_s[row])
        if found.fails[row]:
            kind = surrogate.failure_kind
            run_s = surrogate.timeout_s if kind is ErrorKind.TIMEOUT else 0.0
            text = "predicted to fail"
            return Measurement(error=kind, message=text, build_s=build_s, run_s=run_s)
        run_s = runs_s(latency_s, best_s, self._config) + surrogate.overhead_s
        return successful_measurement((latency_s,), build_s, run_s)

    def _surrogate(self, task: Task) -> Surrogate:
        found = self._known.get(task.key)
        if found is None:
            known = ", ".join(surrogate.op for surrogate in self._known.values())
            raise ArgumentError("task", task.name, f"give one of {known}")
        return found

    def _sketches_of(self, task: Task) -> dict[str, Sketch]:
        if task.key not in self._sketches:
            found = CPU_SEARCH.sketches(task.dag, self._hardware, FULL.sketch)
            self._sketches[task.key] = {sketch.name: sketch for sketch in found}
        return self._sketches[task.key]

    def verify(self, candidates: Sequence[TaskProgram]) -> list[Verification]:
        """See `Device.verify`; every program counts as right."""
        return [Verification(0.0) for _ in candidates]

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        """See `Device.compare`; not counted as measurements."""
        return [result.latency_s for result in self._results(task, programs, None)]

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
        found: dict[str, list[float | None]] = {}
        for name, own in candidates.items():
            times = [self.compare(task, [program], 1)[0] for task, program in own]
            found[name] = [None if t is None else calls[name] * t for t in times]
        return found

    def close(self) -> None:
        """See `Device.close`; the device stays usable."""
