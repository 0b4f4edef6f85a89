"""`ClusterDevice`: measures several batches at the same time, each on one node of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansor.cluster.job import Job
from ansor.cluster.node_pool import NodePool
from ansor.config import MeasureConfig
from ansor.measure.batches import Batch, MeasuredBatch
from ansor.measure.call_plan import CallPlan
from ansor.measure.device import Device, OnResult, TaskProgram, ignored
from ansor.measure.result import ErrorKind, InTurns, Measurement, Verification
from ansor.program.program import Program
from ansor.task import Task


class ClusterDevice(Device):
    """A `Device` and a `BatchQueue` on the nodes of a pool.

    Args:
        pool: of nodes of one kind.
        config: of the measurements, for their time limits.

    Raises:
        MeasureError: from any method: there has been no node for too long.
    """

    def __init__(self, pool: NodePool, config: MeasureConfig) -> None:
        self._pool, self._config = pool, config

    @property
    def places(self) -> int:
        """See `BatchQueue.places`."""
        return max(1, self._pool.size)

    def submit(self, batch: Batch) -> None:
        """See `BatchQueue.submit`."""
        self._pool.submit(self._measurement(batch.task, batch.programs, batch.best_s, batch))

    def collect(self) -> MeasuredBatch:
        """See `BatchQueue.collect`."""
        job = self._pool.wait()
        assert isinstance(job.label, Batch)
        return MeasuredBatch(job.label, _measured(job), job.host)

    def abandon(self) -> None:
        """See `BatchQueue.abandon`."""
        self._pool.forget_jobs()

    def start(self, count: int | None = None) -> None:
        """See `Device.start`; nodes get ready when they join."""

    def measure(
        self,
        task: Task,
        programs: Sequence[Program],
        best_s: float | None,
        on_result: OnResult = ignored,
    ) -> list[Measurement]:
        """See `Device.measure`; on one node, whose results come together."""
        job = self._measurement(task, programs, best_s)
        self._ask([job])
        return _measured(job)

    def _measurement(
        self, task: Task, programs: Sequence[Program], best_s: float | None, label: object = None
    ) -> Job:
        def failed(reason: str) -> list[Measurement]:
            return [Measurement(error=ErrorKind.CRASH, message=reason) for _ in programs]

        each_s = self._config.build_timeout_s + self._config.run_timeout_s
        arguments = (task.key, list(programs), best_s)
        return Job("measure", (task,), arguments, each_s * len(programs), failed, label)

    def verify(self, candidates: Sequence[TaskProgram]) -> list[Verification]:
        """See `Device.verify`; on all nodes."""
        size = -(-len(candidates) // self.places) if candidates else 1
        parts = [candidates[i : i + size] for i in range(0, len(candidates), size)]
        return [check for part in self._ask(list(map(self._check, parts))) for check in part]

    def _check(self, candidates: Sequence[TaskProgram]) -> Job:
        def failed(reason: str) -> list[Verification]:
            return [Verification(error=ErrorKind.CRASH, message=reason) for _ in candidates]

        limit_s = self._config.verify_timeout_s * len(candidates)
        return Job("verify", _tasks(candidates), (_keyed(candidates),), limit_s, failed)

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        """See `Device.compare`; on one node."""
        found = self.compare_turns(task, programs, rounds)
        return [None if each is None else each.latency_s for each in found]

    def compare_turns(
        self, task: Task, programs: Sequence[Program], rounds: int
    ) -> list[InTurns | None]:
        """See `Device.compare_turns`; on one node."""

        def failed(reason: str) -> list[InTurns | None]:
            return [None for _ in programs]

        each_s = self._config.build_timeout_s + rounds * self._config.run_timeout_s
        arguments = (task.key, list(programs), rounds)
        job = Job("compare_turns", (task,), arguments, each_s * len(programs), failed)
        found: list[InTurns | None] = self._ask([job])[0]
        return found

    def rehearse(
        self, plan: CallPlan, candidates: Mapping[str, Sequence[TaskProgram]], seconds: float
    ) -> dict[str, list[float | None]]:
        """See `Device.rehearse`; on one node."""

        def failed(reason: str) -> dict[str, list[float | None]]:
            return {name: [None for _ in own] for name, own in candidates.items()}

        every = [pair for own in candidates.values() for pair in own]
        named = {name: _keyed(own) for name, own in candidates.items()}
        limit_s = seconds + self._config.verify_timeout_s
        limit_s += self._config.build_timeout_s * len(every)
        job = Job("rehearse", _tasks(every), (plan, named, seconds), limit_s, failed)
        found: dict[str, list[float | None]] = self._ask([job])[0]
        return found

    def _ask(self, jobs: Sequence[Job]) -> list[Any]:
        """The values of jobs while there are no others."""
        for job in jobs:
            self._pool.submit(job)
        try:
            for _ in jobs:
                self._pool.wait()
        except BaseException:
            self._pool.forget_jobs()
            raise
        return [job.value for job in jobs]

    def close(self) -> None:
        """See `Device.close`."""
        self._pool.close()


def _measured(job: Job) -> list[Measurement]:
    """The measurements of a job; those of a slow node are disturbed."""
    if not job.was_slow:
        return list(job.value)
    return [replace(each, disturbed=True) for each in job.value]


def _keyed(candidates: Sequence[TaskProgram]) -> list[tuple[str, Program]]:
    return [(task.key, program) for task, program in candidates]


def _tasks(candidates: Sequence[TaskProgram]) -> tuple[Task, ...]:
    return tuple({task.key: task for task, _ in candidates}.values())
