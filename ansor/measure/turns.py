"""Times programs of one task against each other: build on all workers, then time in turns."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import cast

from ansor.measure.batch import Built, build_all
from ansor.measure.pool import Pool
from ansor.measure.process import WorkerFailure, WorkerProcess
from ansor.measure.protocol import Compare, Define
from ansor.program.program import Program


def time_in_turns(
    pool: Pool, task: Define, programs: Sequence[Program], rounds: int
) -> list[float | None]:
    """Median seconds over rounds in which every program is timed once; see `Device.compare`."""
    outcomes = build_all(pool, task, dict(enumerate(programs)))
    built = {i: entry for i, entry in outcomes.items() if isinstance(entry, Built)}
    seconds: dict[int, list[float]] = {i: [] for i in built}
    for turn in range(rounds):
        for worker in list(pool.workers):
            own = [i for i, entry in built.items() if entry.worker is worker]
            slots = tuple(built[i].slot for i in own)
            for i, value in zip(own, _timed(pool, worker, slots, turn + 1 < rounds), strict=False):
                seconds[i].append(value)
    full = {i: statistics.median(values) for i, values in seconds.items() if len(values) == rounds}
    return [full.get(i) for i in range(len(programs))]


def _timed(
    pool: Pool, worker: WorkerProcess, slots: tuple[int, ...], keep: bool
) -> tuple[float, ...]:
    """Seconds of each slot; nothing where one of them fails, and nothing of a dead worker."""
    if not slots:
        return ()
    worker.send(Compare(slots, keep), pool.config.run_timeout_s * len(slots))
    ((_, outcome),) = pool.wait([worker])
    if isinstance(outcome, WorkerFailure) or outcome.error is not None:
        return ()
    return cast("tuple[float, ...]", outcome.value)
