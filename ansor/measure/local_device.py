"""`LocalDevice`: measures on this machine, in worker processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from ansor.config import MeasureConfig
from ansor.errors import ArgumentError, MeasureError
from ansor.executor import R
from ansor.measure.call_plan import CallPlan
from ansor.measure.definitions import Definitions
from ansor.measure.device import Device, OnResult, TaskProgram, ignored
from ansor.measure.local.batch import measure_batch
from ansor.measure.local.comparison import time_in_turns
from ansor.measure.local.in_place import time_in_place
from ansor.measure.local.share_out import share_out
from ansor.measure.local.worker_pool import Pool
from ansor.measure.local.worker_process import Outcome, WorkerFailure, WorkerProcess
from ansor.measure.protocol import Define, Verify
from ansor.measure.result import InTurns, Measurement, Verification
from ansor.measure.tolerance import judged
from ansor.program.program import Program
from ansor.targets.backend import Backend
from ansor.targets.registry import backend_of
from ansor.task import Task


class LocalDevice(Device):
    """A `Device` that builds on all cores and times in place: one program at a time, or one on each
    GPU of a kind.

    Args:
        target: text of the TVM target that every task must have.
        threads: of a kernel while it is timed.
        backend: of the target; by default the registered one.

    Attributes:
        replaced: number of workers replaced after a crash, a time-out, an interrupt, or
            `recycle_after` builds.

    Raises:
        ArgumentError: `threads` is not positive.
        MeasureError: from any method: a worker cannot be started.
    """

    def __init__(
        self,
        target: str,
        threads: int,
        config: MeasureConfig | None = None,
        backend: Backend[Any] | None = None,
    ) -> None:
        if threads < 1:
            raise ArgumentError("threads", threads, "must be at least 1")
        self.target = target
        self._config = config or MeasureConfig()
        self._definitions = Definitions(target)
        self._backend = backend or backend_of(target)
        self._pool = Pool(threads, self._config, self._backend)

    @property
    def replaced(self) -> int:
        return self._pool.replaced

    def start(self, count: int | None = None) -> None:
        """Starts `count` worker processes, at most the limit, and returns at once.

        Each takes seconds. Without this call, they start at their first use.
        """
        self._pool.start(count)

    def measure(
        self,
        task: Task,
        programs: Sequence[Program],
        best_s: float | None,
        on_result: OnResult = ignored,
    ) -> list[Measurement]:
        """See `Device.measure`."""
        with self._clean_up():
            define = self._definitions.of(task)
            return measure_batch(self._pool, define, programs, best_s, on_result)

    def share(self, function: Callable[..., R], arguments: Sequence[tuple[Any, ...]]) -> list[R]:
        """See `ansor.executor.Executor`."""
        with self._clean_up():
            return share_out(self._pool, function, arguments)

    def verify(self, candidates: Sequence[TaskProgram]) -> list[Verification]:
        """See `Device.verify`."""
        with self._clean_up():
            jobs = {i: partial(self._start_check, *own) for i, own in enumerate(candidates)}
            ended = self._pool.spread(jobs)
        return [self._judge(task, ended[i][1]) for i, (task, _) in enumerate(candidates)]

    def _start_check(self, task: Task, program: Program, worker: WorkerProcess) -> None:
        self._pool.define(worker, self._definitions.of(task))
        worker.send(Verify(task.key, program), self._config.verify_timeout_s)

    def _judge(self, task: Task, outcome: Outcome) -> Verification:
        if isinstance(outcome, WorkerFailure):
            return Verification(error=outcome.kind, message=outcome.message)
        if outcome.error is not None:
            return Verification(error=outcome.error, message=outcome.message)
        return judged(task, cast(float, outcome.value), self._config, self._backend)

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        """See `Device.compare`."""
        found = self.compare_turns(task, programs, rounds)
        return [None if turns is None else turns.latency_s for turns in found]

    def compare_turns(
        self, task: Task, programs: Sequence[Program], rounds: int
    ) -> list[InTurns | None]:
        """See `Device.compare_turns`."""
        with self._clean_up():
            define, in_two_places = self._definitions.of(task), self._pool.on_host
            return time_in_turns(self._pool, define, programs, rounds, in_two_places)

    def rehearse(
        self, plan: CallPlan, candidates: Mapping[str, Sequence[TaskProgram]], seconds: float
    ) -> dict[str, list[float | None]]:
        """See `Device.rehearse`."""
        named = {
            name: [(self._definitions.of(task), program) for task, program in own]
            for name, own in candidates.items()
        }
        with self._clean_up():
            if self._pool.on_host:
                return time_in_place(self._pool, plan, named, seconds)
            calls = Counter(call.function for call in plan.calls)
            return {name: self._all_calls(own, calls[name]) for name, own in named.items()}

    def _all_calls(self, own: Sequence[tuple[Define, Program]], calls: int) -> list[float | None]:
        """Seconds of the programs of a function, in turns: on a device nothing but empty
        caches distinguishes a network from a loop."""
        found: dict[int, float | None] = {}
        for task in dict.fromkeys(task for task, _ in own):
            numbers = [i for i, (other, _) in enumerate(own) if other is task]
            programs = [own[i][1] for i in numbers]
            turns = time_in_turns(self._pool, task, programs, self._config.network_rounds)
            times = [None if each is None else each.latency_s for each in turns]
            found |= dict(zip(numbers, times, strict=True))
        return [None if (t := found[i]) is None else t * calls for i in range(len(own))]

    @contextmanager
    def _clean_up(self) -> Iterator[None]:
        """Kills busy workers after an exception, such as an interrupt."""
        if not self._pool.close.alive:
            raise MeasureError("the device is closed", "open a new one")
        try:
            yield
        except BaseException:
            self._pool.kill_busy()
            raise

    def close(self) -> None:
        """See `Device.close`."""
        self._pool.close()
