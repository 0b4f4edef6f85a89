"""Builds programs on this machine and times them on servers at the same time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from ansor.measure.device import OnResult
from ansor.measure.local.drift import Drift
from ansor.measure.local.spread import Spread
from ansor.measure.local.worker_pool import Pool
from ansor.measure.local.worker_process import Outcome, WorkerFailure, WorkerProcess
from ansor.measure.protocol import CompareThere, Define, Export, TimeThere
from ansor.measure.remote_program import Library
from ansor.measure.result import InTurns, Measurement, Timing, successful_measurement
from ansor.measure.rpc.farm import Farm
from ansor.measure.rpc.farm_run import FarmRun, Job
from ansor.measure.rpc.wait import for_workers
from ansor.program.program import Program


def measure_batch(
    pool: Pool,
    farm: Farm,
    task: Define,
    programs: Sequence[Program],
    best_s: float | None,
    on_result: OnResult,
) -> list[Measurement]:
    """Builds and times programs; see `Device.measure`."""
    limit_s = math.inf if best_s is None else best_s
    batch = _Batch(farm, pool.drift, is_cold(task), limit_s, on_result)
    builds = Spread(pool, _exports(pool, farm, dict(enumerate((task, p) for p in programs))))
    with farm.run() as run:
        while builds.is_open or run.is_open:
            builds.give()
            run.give()
            (for_workers(builds.waited) | run.waits).end()
            for number, (_, outcome) in builds.take().items():
                batch.take_build(run, number, outcome)
            for number, outcome in run.take().items():
                batch.take_time(number, outcome)
    return [batch.results[number] for number in range(len(programs))]


def compare(
    pool: Pool, farm: Farm, groups: Sequence[Sequence[tuple[Define, Program]]], rounds: int
) -> list[list[InTurns | None]]:
    """Times of programs in turns; the programs of a group run on the same server.

    Raises:
        MeasureError: no server opens a session in time, or there is no tracker.
    """
    numbered = {(g, i): each for g, group in enumerate(groups) for i, each in enumerate(group)}
    places = list(numbered)
    built = pool.spread(_exports(pool, farm, dict(enumerate(numbered.values()))))
    libraries = {places[n]: lib for n, (_, o) in built.items() if (lib := library_of(o))}
    kept = {
        g: [i for i in range(len(group)) if (g, i) in libraries] for g, group in enumerate(groups)
    }
    jobs = {
        g: _comparison(farm, [libraries[g, i] for i in own], rounds, is_cold(groups[g][0][0]))
        for g, own in kept.items()
        if own
    }
    found = farm.run_all(jobs)
    times: list[list[InTurns | None]] = [[None] * len(group) for group in groups]
    for g, outcome in found.items():
        if isinstance(outcome, WorkerFailure) or outcome.error is not None:
            continue
        for i, turns in zip(kept[g], cast("list[InTurns | None]", outcome.value), strict=True):
            times[g][i] = turns
    return times


def _comparison(farm: Farm, libraries: Sequence[Library], rounds: int, cold: bool) -> Job:
    seconds = farm.config.run_timeout_s * len(libraries)
    request = CompareThere(tuple(libraries), rounds, seconds, cold)
    return Job(lambda: request, 2 * seconds + farm.limits.upload_s)


def is_cold(task: Define) -> bool:
    """Whether the weights of a task's programs are in no cache."""
    return task.in_network and bool(task.constants)


def _exports(
    pool: Pool, farm: Farm, programs: Mapping[int, tuple[Define, Program]]
) -> dict[int, partial[None]]:
    """Jobs for workers, one for each program: a library of it."""
    return {number: partial(_send, pool, farm, *each) for number, each in programs.items()}


def _send(pool: Pool, farm: Farm, task: Define, program: Program, worker: WorkerProcess) -> None:
    pool.send_job(worker, task, Export(task.key, program, farm.linker), pool.config.build_timeout_s)


def library_of(outcome: Outcome) -> Library | None:
    """The built library, if the build succeeded."""
    if isinstance(outcome, WorkerFailure) or outcome.error is not None:
        return None
    return cast(Library, outcome.value)


@dataclass
class _Batch:
    """Programs of one call, known by their numbers."""

    farm: Farm
    drift: Drift
    cold: bool
    best_s: float
    on_result: OnResult
    results: dict[int, Measurement] = field(default_factory=dict)
    build_s: dict[int, float] = field(default_factory=dict)

    def take_build(self, run: FarmRun, number: int, outcome: Outcome) -> None:
        """Adds the job of a program that was built."""
        if isinstance(outcome, WorkerFailure) or outcome.error is not None:
            self._fail(number, outcome)
            return
        self.build_s[number] = outcome.seconds
        library = cast(Library, outcome.value)
        timeout_s = self.farm.config.run_timeout_s + self.farm.limits.upload_s
        run.add(number, Job(lambda: TimeThere(library, self.best_s, self.cold), timeout_s))

    def take_time(self, number: int, outcome: Outcome) -> None:
        """Registers the outcome of timing a program."""
        if isinstance(outcome, WorkerFailure) or outcome.error is not None:
            self._fail(number, outcome)
            return
        timing = cast(Timing, outcome.value)
        build_s = self.build_s[number]
        found = successful_measurement(timing.latencies_s, build_s, outcome.seconds)
        self.best_s = min(self.best_s, found.latency_s or math.inf)
        self._note(number, self.drift.noted(found, timing))

    def _fail(self, number: int, outcome: Outcome) -> None:
        kind = outcome.kind if isinstance(outcome, WorkerFailure) else outcome.error
        build_s = self.build_s.get(number, 0.0)
        failed = Measurement(error=kind, message=outcome.message, build_s=build_s)
        self._note(number, failed)

    def _note(self, number: int, result: Measurement) -> None:
        self.results[number] = result
        self.on_result(number, result)
