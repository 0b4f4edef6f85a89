"""`LocalDevice`: measures on this machine, in worker processes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import ml_dtypes
import tvm

from ansor.closing import Closing
from ansor.config import MeasureConfig
from ansor.dag.contraction import product_dtypes
from ansor.dag.graph import ComputeDAG
from ansor.errors import ArgumentError, MeasureError
from ansor.executor import R
from ansor.measure.call_plan import CallPlan
from ansor.measure.device import OnResult, TaskProgram, ignored
from ansor.measure.local.batch import measure_batch
from ansor.measure.local.comparison import time_in_turns
from ansor.measure.local.in_place import time_in_place
from ansor.measure.local.share_out import share_out
from ansor.measure.local.worker_pool import Outcome, Pool
from ansor.measure.local.worker_process import WorkerFailure, WorkerProcess
from ansor.measure.pickled_schedule import pickled
from ansor.measure.protocol import Define, DefineOriginal, Verify
from ansor.measure.result import ErrorKind, InTurns, Measurement, Verification
from ansor.program.program import Program
from ansor.targets.backend import Backend
from ansor.targets.registry import backend_of
from ansor.task import Task


class LocalDevice(Closing):
    """A `Device` that builds on all cores and times in place: one program at a time, or one on each
    GPU of a kind.

    Args:
        target: text of the TVM target that every task must have.
        threads: of a kernel while it is timed.
        backend: of the target; by default the registered one.

    Attributes:
        replaced: how many workers were replaced after a crash, a time-out, an interrupt, or
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
        self._definitions: dict[str, Define] = {}
        backend = backend or backend_of(target)
        self._rounded = backend.execution.rounded_dtypes(tvm.target.Target(target))
        self._pool = Pool(threads, self._config, backend)

    @property
    def replaced(self) -> int:
        return self._pool.replaced

    def start(self, count: int | None = None) -> None:
        """Starts `count` worker processes, or as many as there may be, and returns at once.

        Each takes seconds; without this they start when they are first needed.
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
            return measure_batch(self._pool, self._define(task), programs, best_s, on_result)

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
        self._pool.define(worker, self._define(task))
        worker.send(Verify(task.key, program), self._config.verify_timeout_s)

    def _judge(self, task: Task, outcome: Outcome) -> Verification:
        if isinstance(outcome, WorkerFailure):
            return Verification(error=outcome.kind, message=outcome.message)
        if outcome.error is not None:
            return Verification(error=outcome.error, message=outcome.message)
        difference = cast(float, outcome.value)
        if difference <= tolerance(task.dag, self._config, self._rounded):
            return Verification(difference)
        text = f"differs from the reference by {difference:.3g} of the largest value"
        return Verification(difference, ErrorKind.WRONG, text)

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        """See `Device.compare`."""
        found = self.compare_turns(task, programs, rounds)
        return [None if turns is None else turns.latency_s for turns in found]

    def compare_turns(
        self, task: Task, programs: Sequence[Program], rounds: int
    ) -> list[InTurns | None]:
        """See `Device.compare_turns`."""
        with self._clean_up():
            in_two_places = self._pool.on_host
            return time_in_turns(self._pool, self._define(task), programs, rounds, in_two_places)

    def rehearse(
        self, plan: CallPlan, candidates: Mapping[str, Sequence[TaskProgram]], seconds: float
    ) -> dict[str, list[float | None]]:
        """See `Device.rehearse`."""
        named = {
            name: [(self._define(task), program) for task, program in own]
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

    def _define(self, task: Task) -> Define:
        if task.target != self.target:
            remedy = f"the device measures for {self.target!r} only"
            raise ArgumentError("task.target", task.target, remedy)
        if task.key not in self._definitions:
            text = str(tvm.ir.save_json(task.func))
            by_hand = None if task.by_hand is None else pickled(task.by_hand)
            self._definitions[task.key] = Define(
                task.key,
                text,
                task.target,
                task.constants,
                task.in_network,
                _original(task),
                by_hand,
            )
        return self._definitions[task.key]

    @contextmanager
    def _clean_up(self) -> Iterator[None]:
        """After an exception, an interrupt above all, no worker has a request under way."""
        if not self._pool.close.alive:
            raise MeasureError("the device is closed; open a new one")
        try:
            yield
        except BaseException:
            self._pool.kill_busy()
            raise

    def close(self) -> None:
        """See `Device.close`."""
        self._pool.close()


def _original(task: Task) -> DefineOriginal | None:
    original = task.original
    if original is None:
        return None
    text = str(tvm.ir.save_json(original.func))
    return DefineOriginal(text, original.converted)


def tolerance(
    dag: ComputeDAG, config: MeasureConfig, rounded_dtypes: Collection[str] = ()
) -> float:
    """Largest difference from the reference, relative to its largest value, that is not an error.

    Grows with the longest reduction, whose rounding errors a program that is right accumulates.
    A result in a short dtype may be the next number of it, where two sums are rounded apart.
    Products of `rounded_dtypes` may have rounded operands. Zero where there are no floats.
    """
    if not any("float" in buffer.dtype for buffer in dag.buffers.values()):
        return 0.0
    products = {product_dtypes(dag, name) for name in dag.order}
    rounded = any((dtype, dtype) in products for dtype in rounded_dtypes)
    allowed = config.verify_tf32_rtol if rounded else config.verify_rtol
    for stage in dag.stages.values():
        dtype = dag.buffers[stage.output].dtype
        if stage.reduce and "float" in dtype:
            additions = math.prod(stage.axes[axis].size for axis in stage.reduce)
            eps = float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]
            worst, random = additions * eps / 2, math.sqrt(additions) * eps / 2
            allowed = max(allowed, config.verify_rounding * worst, config.verify_walk * random)
        elif "float" in dtype:
            allowed = max(allowed, float(ml_dtypes.finfo(dtype).eps))  # type: ignore[no-untyped-call]
    return allowed
