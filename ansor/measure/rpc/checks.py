"""Runs programs on servers and compares them with references, which are computed here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from ansor.measure.local.worker_pool import Pool
from ansor.measure.local.worker_process import Outcome, WorkerFailure, WorkerProcess
from ansor.measure.protocol import Define, Prepare, VerifyThere
from ansor.measure.result import ErrorKind
from ansor.measure.rpc.farm import Farm
from ansor.program.program import Program

Candidates = Mapping[int, tuple[Define, Program]]


def check_all(
    pool: Pool, farm: Farm, candidates: Sequence[tuple[Define, Program]]
) -> list[Outcome]:
    """The outcome of each check: a reply with the difference, or a failure.

    Raises:
        MeasureError: no server opens a session in time, or there is no tracker.
    """
    left = dict(enumerate(candidates))
    lost: Counter[int] = Counter()
    done: dict[int, Outcome] = {}
    while left:
        wave = dict(list(left.items())[: len(pool.workers)])
        for number, outcome in _check_wave(pool, farm, wave).items():
            if _is_lost(outcome):
                lost[number] += 1
            if not _is_lost(outcome) or lost[number] > farm.limits.retries:
                done[number] = _said(outcome, lost[number])
                del left[number]
    return [done[number] for number in range(len(candidates))]


def _check_wave(pool: Pool, farm: Farm, wave: Candidates) -> dict[int, Outcome]:
    """Outcomes of a check for each worker. A check has none if it did not begin, because its worker
    died in another check, or because no server opened a session."""
    slots = {number: pool.new_slot() for number in wave}
    jobs = {
        number: partial(_prepare, pool, farm, *each, slots[number]) for number, each in wave.items()
    }
    ended = pool.spread(jobs)
    done = {n: outcome for n, (_, outcome) in ended.items() if _has_failed(outcome)}
    waiting = {n: worker for n, (worker, outcome) in ended.items() if n not in done}
    under_way: dict[WorkerProcess, tuple[int, bool]] = {}  # the number, and whether it runs there
    while waiting or under_way:
        for number, worker in list(waiting.items()):
            if worker not in pool.workers:
                del waiting[number]
            elif worker not in under_way:
                del waiting[number]
                under_way[worker] = (number, False)
                request = farm.connect_request(farm.next_server(), watched=False)
                worker.send(request, farm.limits.connect_s)
        for worker, outcome in pool.wait(list(under_way)) if under_way else ():
            number, runs = under_way.pop(worker)
            if runs:
                done[number] = _of_server(outcome)
            elif not _has_failed(outcome):
                under_way[worker] = (number, True)
                timeout_s = farm.limits.upload_s + pool.config.verify_timeout_s
                worker.send(VerifyThere(slots[number]), timeout_s)
    return done


def _prepare(
    pool: Pool, farm: Farm, task: Define, program: Program, slot: int, worker: WorkerProcess
) -> None:
    request = Prepare(task.key, slot, program, farm.linker)
    pool.send_job(worker, task, request, pool.config.verify_timeout_s)


def _has_failed(outcome: Outcome) -> bool:
    return isinstance(outcome, WorkerFailure) or outcome.error is not None


def _of_server(outcome: Outcome) -> Outcome:
    """The outcome of a run on a server. The loss of the server blocks or ends the worker."""
    if isinstance(outcome, WorkerFailure):
        return WorkerFailure(ErrorKind.DEVICE, outcome.message)
    return outcome


def _is_lost(outcome: Outcome) -> bool:
    kind = outcome.kind if isinstance(outcome, WorkerFailure) else outcome.error
    return kind is ErrorKind.DEVICE


def _said(outcome: Outcome, lost: int) -> Outcome:
    if not _is_lost(outcome):
        return outcome
    return WorkerFailure(ErrorKind.DEVICE, f"{lost} servers died: {outcome.message}")
