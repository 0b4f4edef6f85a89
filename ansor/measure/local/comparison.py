"""Times programs of one task against each other: build on all workers, then time in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from ansor.measure.local.batch import RemoteProgram, build_all
from ansor.measure.local.worker_pool import Pool
from ansor.measure.local.worker_process import WorkerFailure, WorkerProcess
from ansor.measure.protocol import Compare, Define
from ansor.measure.result import InTurns, Timing
from ansor.measure.turns import counted, joined
from ansor.program.program import Program


def time_in_turns(
    pool: Pool,
    task: Define,
    programs: Sequence[Program],
    rounds: int,
    in_two_places: bool = False,
) -> list[InTurns | None]:
    """Times of each program over rounds; a round times every program once. See `Device.compare`.

    Args:
        in_two_places: whether programs are built twice, mostly by two workers, for half of the
            rounds each. The memory of a worker favours its programs by a few per cent. A program
            that fails in one half has no time. After a failure in the first half, there is no
            second attempt.
    """
    left = dict(enumerate(programs))
    two = in_two_places and len(pool.workers) > 1 and rounds > 1
    halves = (rounds - rounds // 2, rounds // 2) if two else (rounds,)
    found: dict[int, list[list[float]]] = {i: [] for i in left}
    for count in halves:
        seconds = _rounds(pool, task, left, count)
        for i, values in seconds.items():
            found[i].append(values)
        left = {i: left[i] for i in sorted(seconds, key=lambda i: i ^ 1)}  # neighbours swap places
    return [joined(each) if len(each) == len(halves) else None for each in found.values()]


def _rounds(
    pool: Pool, task: Define, programs: Mapping[int, Program], rounds: int
) -> dict[int, list[float]]:
    """Seconds of each program that ran in all rounds, under the same numbers."""
    outcomes = build_all(pool, task, programs)
    built = {i: entry for i, entry in outcomes.items() if isinstance(entry, RemoteProgram)}
    timings: dict[int, list[Timing]] = {i: [] for i in built}
    for turn in range(rounds):
        for worker in list(pool.workers):
            numbers = [i for i, entry in built.items() if entry.worker is worker]
            slots = tuple(built[i].slot for i in numbers)
            for i, value in zip(
                numbers, _timed(pool, worker, slots, turn + 1 < rounds), strict=False
            ):
                timings[i].append(value)
    return {i: counted(each) for i, each in timings.items() if len(each) == rounds}


def _timed(
    pool: Pool, worker: WorkerProcess, slots: tuple[int, ...], keep: bool
) -> tuple[Timing, ...]:
    """Timings of the slots; none if a slot fails or the worker dies."""
    if not slots:
        return ()
    worker.send(Compare(slots, keep), pool.config.run_timeout_s * len(slots))
    ((_, outcome),) = pool.wait([worker])
    if isinstance(outcome, WorkerFailure) or outcome.error is not None:
        return ()
    return cast("tuple[Timing, ...]", outcome.value)
