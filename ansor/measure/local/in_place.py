"""Times programs in the run of a network; one worker builds and keeps all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from ansor.measure.call_plan import CallPlan
from ansor.measure.local.worker_pool import Pool
from ansor.measure.local.worker_process import Outcome, WorkerFailure, WorkerProcess
from ansor.measure.protocol import Define, Rehearse, Request
from ansor.program.program import Program

Candidates = Mapping[str, Sequence[tuple[Define, Program]]]


def time_in_place(
    pool: Pool, plan: CallPlan, candidates: Candidates, seconds: float
) -> dict[str, list[float | None]]:
    """Seconds that each candidate costs in a run of the network; see `Device.rehearse`."""
    pool.recycle()
    worker = pool.workers[0]
    slots = {
        name: [_built(pool, worker, task, program) for task, program in programs]
        for name, programs in candidates.items()
    }
    pool.settle()
    kept = {
        name: tuple(s for s in kept_slots if s is not None) for name, kept_slots in slots.items()
    }
    found: dict[int, float] = {}
    if worker in pool.workers:
        request = Rehearse(
            plan, {n: kept_slots for n, kept_slots in kept.items() if kept_slots}, seconds
        )
        outcome = _ask(pool, worker, request, seconds + pool.config.verify_timeout_s)
        if not isinstance(outcome, WorkerFailure) and outcome.error is None:
            found = cast("dict[int, float]", outcome.value)
    return {
        name: [None if slot is None else found.get(slot) for slot in kept_slots]
        for name, kept_slots in slots.items()
    }


def _built(pool: Pool, worker: WorkerProcess, task: Define, program: Program) -> int | None:
    """The slot of a program; None if it cannot be built or the worker has died."""
    if worker not in pool.workers:
        return None
    try:
        slot = pool.send_build(worker, task, program)
    except WorkerFailure:
        pool.replace(worker)
        return None
    ((_, outcome),) = pool.wait([worker])
    return None if isinstance(outcome, WorkerFailure) or outcome.error is not None else slot


def _ask(pool: Pool, worker: WorkerProcess, request: Request, timeout_s: float) -> Outcome:
    worker.send(request, timeout_s)
    ((_, outcome),) = pool.wait([worker])
    return outcome
