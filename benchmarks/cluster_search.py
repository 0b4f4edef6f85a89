"""A search whose nodes wait instead of measuring, so that several fit on one machine."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ansor.callbacks import Callback, Finish
from ansor.cluster.device import ClusterDevice
from ansor.cluster.nodes import Assignment
from ansor.config import CLUSTER, CostModelConfig, EvolutionConfig, MeasureConfig, TuneConfig
from ansor.database.database import Database
from ansor.database.journal import Journal
from ansor.measure.device import Device, OnResult, ignored
from ansor.measure.fake import FakeDevice
from ansor.measure.result import Measurement
from ansor.program.codec import encode
from ansor.program.program import Program
from ansor.run.prepare import prepare_network
from ansor.run.search.budget import Budget
from ansor.run.search.task_limits import TaskLimits
from ansor.run.search.tuner import Tuner
from ansor.targets.registry import backend_of
from ansor.targets.target import resolve_target, target_text
from ansor.task import Task
from ansor.workloads import build

# Small populations: the processor of the driver is also that of the nodes. Each task proposes by
# its records alone, so the order in which tasks are measured changes no proposal.
CONFIG = TuneConfig(
    evolution=EvolutionConfig(initial=128, population=48, promise=64, generations=2, siblings=0),
    cost_model=CostModelConfig(use_gbdt=False),
)
# Nodes that share cores disturb each other.
CALM = replace(CLUSTER, slower_than_best=math.inf, slower_than_group=math.inf)


def latency_of(task: Task, program: Program) -> float:
    """Between one and two milliseconds, by a hash of the program."""
    digest = hashlib.sha256(encode(program).encode()).digest()
    return 1e-3 + 1e-3 * int.from_bytes(digest[:4], "big") / 2**32


class WaitingDevice(FakeDevice):
    """A `FakeDevice` that takes its time.

    Args:
        program_s: seconds for each program of a batch.
    """

    def __init__(self, program_s: float) -> None:
        super().__init__(latency_of)
        self._program_s = program_s

    def measure(
        self,
        task: Task,
        programs: Sequence[Program],
        best_s: float | None,
        on_result: OnResult = ignored,
    ) -> list[Measurement]:
        """See `Device.measure`."""
        time.sleep(self._program_s * len(programs))
        return super().measure(task, programs, best_s, on_result)


def assignment() -> Assignment:
    """What the nodes of a local cluster are for."""
    return Assignment(target_here(), 1, MeasureConfig(), CALM)


def target_here() -> str:
    """Text of this machine's target with one thread."""
    return target_text(resolve_target("native"), 1)


def waiting_cluster(address: str, program_s: float, tell: Callable[[str], None]) -> ClusterDevice:
    """A device on the Ray cluster at an address, whose nodes wait."""
    # Ray is optional.
    from ansor.cluster.ray_nodes import RayNodes, pooled

    given = assignment()
    return pooled(RayNodes(address, given, partial(_waiting, program_s)), given, tell)


def _waiting(program_s: float, given: Assignment) -> Device:
    return WaitingDevice(program_s)


def products(count: int) -> list[Task]:
    """Products of matrices of different sizes."""
    target = resolve_target("native")
    found: list[Task] = []
    for number in range(count):
        tensors = build("matmul", rows=32 + 8 * number, columns=40, depth=36).tensors
        (task,) = prepare_network(list(tensors), target, target_here(), kinds=()).tasks
        found.append(replace(task, name=f"matmul{number}"))
    return found


@dataclass(frozen=True)
class Searched:
    """The end of a search.

    Attributes:
        finish: its event.
        best_s: seconds of the best program of each task.
        records: number of records.
        programs: number of distinct programs among them.
        seconds: that the search took.
    """

    finish: Finish
    best_s: tuple[float | None, ...]
    records: int
    programs: int
    seconds: float


def tuner_of(
    tasks: Sequence[Task],
    device: Device,
    database: Database,
    config: TuneConfig = CONFIG,
    callbacks: Sequence[Callback] = (),
) -> Tuner:
    """A tuner of tasks for this machine, whose speed is not measured."""
    target = resolve_target("native")
    backend = backend_of(target)
    machine, journal = backend.machine.read(target, 1), Journal(database)
    return Tuner(tasks, machine, backend.search, device, journal, config, callbacks=callbacks)


def searched(
    tasks: Sequence[Task], device: Device, trials_each: int, callbacks: Sequence[Callback] = ()
) -> Searched:
    """Searches tasks until each has `trials_each` trials."""
    with Database() as database:
        tuner = tuner_of(tasks, device, database, callbacks=callbacks)
        began_s = time.monotonic()
        finish = tuner.run(Budget(per_task=TaskLimits(trials=trials_each)))
        seconds = time.monotonic() - began_s
        records = [(task.key, r) for task in tasks for r in database.records(task.key, task.target)]
        distinct = {(key, encode(record.program)) for key, record in records}
        best_s = tuple(search.best_s for search in tuner.searches)
        return Searched(finish, best_s, len(records), len(distinct), seconds)
