"""Several GPUs: programs are timed on all at once, on each one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import tvm

from ansor.config import MeasureConfig
from ansor.measure.device import ignored
from ansor.measure.local.batch import measure_batch
from ansor.measure.local.drift import Drift
from ansor.measure.local.worker_pool import Pool
from ansor.measure.local.worker_process import Outcome, WorkerFailure
from ansor.measure.protocol import Define, Reply, Time
from ansor.measure.result import ErrorKind, Timing
from ansor.program.program import Program
from ansor.targets.cpu.backend import CPU
from ansor.targets.cuda.detect import gpu_lanes


class Worker:
    """Answers a request when it is waited for; its lane is written down by the pool."""

    def __init__(self, pool: FakePool) -> None:
        self.pool = pool
        self.slot: int | None = None

    def send(self, request: Time, timeout_s: float) -> None:
        assert self.slot is None, "a request is under way"
        self.slot = request.slot
        self.pool.started(self)


class FakePool:
    """Two workers to a lane; notes how many programs are timed at the same time."""

    def __init__(self, lanes: int, broken: frozenset[int] = frozenset()) -> None:
        self.config = MeasureConfig()
        self.drift = Drift(1.25)
        self.broken = broken
        self.lanes = lanes
        self.workers = [Worker(self) for _ in range(2 * lanes)]
        self.slots = 0
        self.most = 0
        self.timed: Counter[int] = Counter()

    def lane_of(self, worker: Worker) -> int:
        return self.workers.index(worker) % self.lanes

    def recycle(self) -> None:
        pass

    def settle(self) -> None:
        pass

    def send_build(self, worker: Worker, task: Define, program: Program) -> int:
        self.slots += 1
        return self.slots - 1

    def spread(
        self, jobs: Mapping[int, Callable[[Worker], None]]
    ) -> dict[int, tuple[Worker, Outcome]]:
        done: dict[int, tuple[Worker, Outcome]] = {}
        for place, (number, job) in enumerate(jobs.items()):
            worker = self.workers[place % len(self.workers)]
            job(worker)
            done[number] = worker, Reply(seconds=1.0)
        return done

    def started(self, worker: Worker) -> None:
        busy = [self.lane_of(w) for w in self.workers if w.slot is not None]
        assert len(busy) == len(set(busy)), "two programs on one GPU"
        self.most = max(self.most, len(busy))
        self.timed[self.lane_of(worker)] += 1

    def wait(self, workers: Sequence[Worker]) -> list[tuple[Worker, Outcome]]:
        worker = workers[-1]
        slot, worker.slot = worker.slot, None
        assert slot is not None
        if slot in self.broken:
            self.replace(worker)
            return [(worker, WorkerFailure(ErrorKind.CRASH, "illegal address"))]
        return [(worker, Reply(value=Timing((1e-3 * (slot + 1),)), seconds=0.1))]

    def replace(self, worker: Worker) -> None:
        self.workers[self.workers.index(worker)] = Worker(self)


def results(pool: FakePool, count: int) -> list[Any]:
    task = Define("task", "", '{"kind":"cuda","arch":"sm_90"}', (), False, None)
    programs = [Program((), {}) for _ in range(count)]
    return measure_batch(pool, task, programs, None, ignored)  # type: ignore[arg-type]


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_every_gpu_times_one_program_at_a_time(lanes: int) -> None:
    pool = FakePool(lanes)
    found = results(pool, 16)
    assert [m.latency_s for m in found] == [1e-3 * (i + 1) for i in range(16)]
    assert pool.most == lanes
    assert set(pool.timed.values()) == {16 // lanes}


def test_what_a_dying_worker_kept_is_built_again() -> None:
    pool = FakePool(2, broken=frozenset({0}))
    found = results(pool, 12)
    assert [m.error for m in found].count(ErrorKind.CRASH) == 1
    assert sum(m.latency_s is not None for m in found) == 11


def devices(names: Sequence[str]) -> Callable[[int], Any]:
    def device(number: int) -> Any:
        there = number < len(names)
        name = names[number] if there else None
        return SimpleNamespace(exist=there, device_name=name, compute_version="9.0")

    return device


@pytest.mark.parametrize(
    ("names", "visible", "expected"),
    [
        ([], None, [None]),
        (["H200"], None, ["0"]),
        (["H200", "T4", "H200"], None, ["0", "2"]),
        (["H200", "H200"], "3,5", ["3", "5"]),
    ],
)
def test_gpus_like_the_first_are_used(
    names: list[str],
    visible: str | None,
    expected: list[str | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tvm.runtime, "cuda", devices(names))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [lane.get("CUDA_VISIBLE_DEVICES") for lane in gpu_lanes()] == expected


@pytest.mark.skipif(tvm.runtime.cuda(0).exist, reason="there is a GPU")
def test_workers_of_a_lane_have_its_variables() -> None:
    execution = replace(CPU.execution, lanes=lambda: [{"A": "0"}, {"A": "1"}])
    pool = Pool(1, MeasureConfig(workers=1), replace(CPU, execution=execution))
    try:
        assert [pool.lane_of(worker) for worker in pool.workers] == [0, 1]
        assert [w._environment["A"] for w in pool.workers] == ["0", "1"]
        pool.replace(pool.workers[1])
        assert pool.workers[1]._environment["A"] == "1"
    finally:
        pool.close()
