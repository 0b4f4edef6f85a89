"""What measuring on a GPU does differently, as far as a machine without one can tell."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tvm
from definitions import workload
from gpu import TARGET, gpu_sketches, legal_sample

from ansor.config import MeasureConfig
from ansor.measure.child.runner import Runner
from ansor.measure.child.task_table import TaskTable
from ansor.measure.child.timing import Timed, time_program
from ansor.measure.device import ignored
from ansor.measure.local.batch import measure_batch
from ansor.measure.local.drift import Drift
from ansor.measure.protocol import Build, Define, Reply, Time
from ansor.measure.result import ErrorKind, Timing
from ansor.program.program import Program
from ansor.targets.build import compile_function
from ansor.targets.cuda import compiler as nvcc
from ansor.targets.cuda.backend import CUDA
from ansor.targets.cuda.compiler import compiler_variables
from ansor.targets.registry import host_text


@dataclass(eq=False)
class Worker:
    """Builds everything; `bad` programs fail while they run."""

    sent: list[object] = field(default_factory=list)


@dataclass
class Devices:
    """Stands for `Pool`: one worker, and what became of it."""

    bad: set[str]
    on_host: bool
    config: MeasureConfig = field(default_factory=MeasureConfig)
    drift: Drift = field(default_factory=lambda: Drift(1.25))
    workers: list[Any] = field(default_factory=lambda: [Worker()])
    replaced: list[Any] = field(default_factory=list)
    built: dict[int, str] = field(default_factory=dict)

    def recycle(self) -> None:
        """Nothing to do."""

    def lane_of(self, worker: Worker) -> int:
        return 0

    def send_build(self, worker: Worker, task: Define, program: Program) -> int:
        slot = len(self.built)
        self.built[slot] = program.sketch
        worker.sent.append(Build(task.key, slot, program))
        return slot

    def settle(self) -> None:
        pass

    def spread(self, jobs: dict[int, Any]) -> dict[int, tuple[Any, Reply]]:
        (worker,) = self.workers
        for job in jobs.values():
            job(worker)
        return {number: (worker, Reply()) for number in jobs}

    def wait(self, workers: list[Any]) -> list[tuple[Any, Reply]]:
        (worker,) = workers
        request = worker.sent[-1]
        assert isinstance(request, Time)
        if self.built[request.slot] in self.bad:
            return [(worker, Reply(error=ErrorKind.RUN, message="illegal memory access"))]
        return [(worker, Reply(value=Timing((1e-3,))))]

    def replace(self, worker: Worker) -> None:
        self.replaced.append(worker)
        self.workers[self.workers.index(worker)] = Worker()


@pytest.fixture(autouse=True)
def _requests_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Worker, "send", lambda self, request, _: self.sent.append(request), raising=False
    )


@pytest.mark.parametrize(("on_host", "replaced"), [(False, 1), (True, 0)])
def test_an_error_on_a_gpu_costs_its_worker_and_nothing_else(on_host: bool, replaced: int) -> None:
    pool: Any = Devices(bad={"b"}, on_host=on_host)
    programs = [Program(sketch=name) for name in "abc"]
    results = measure_batch(pool, Define("key", "", TARGET), programs, None, ignored)
    assert [result.error for result in results] == [None, ErrorKind.RUN, None]
    assert results[1].message == "illegal memory access"
    assert len(pool.replaced) == replaced


def test_runs_with_empty_caches_are_timed_one_by_one() -> None:
    asked: list[SimpleNamespace] = []

    def time_evaluator(_: str, __: Any, **options: Any) -> Any:
        asked.append(SimpleNamespace(**options))
        return lambda *_: SimpleNamespace(results=[2e-3] * options["repeat"])

    timed = Timed(_Indexed(time_evaluator), tvm.cpu(), [[]], flush_bytes=1 << 20)
    config = MeasureConfig(repeats=3)
    assert time_program(timed, math.inf, config).latencies_s == pytest.approx((2e-3,) * 3)
    assert {(a.number, a.cache_flush_bytes) for a in asked} == {(1, 1 << 20)}


@dataclass
class _Indexed:
    """A module with one function, which does nothing."""

    time_evaluator: Any

    def __getitem__(self, _: str) -> Any:
        return lambda *_: None


def test_flushing_is_understood_by_tvm() -> None:
    found = workload("matmul")
    module = compile_function(found.func, "llvm")
    arrays = [tvm.runtime.tensor(a) for a in found.inputs(np.random.default_rng(0))]
    out = tvm.runtime.tensor(np.zeros((32, 48), dtype=np.float32))
    timed = Timed(module, tvm.cpu(), [[*arrays, out]], flush_bytes=1 << 20)
    assert all(
        seconds > 0 for seconds in time_program(timed, math.inf, MeasureConfig()).latencies_s
    )


def test_the_reference_of_a_gpu_task_is_computed_on_the_host() -> None:
    assert host_text(TARGET) == "llvm"
    assert host_text('{"kind":"llvm","mcpu":"haswell"}') == '{"kind":"llvm","mcpu":"haswell"}'
    found = workload("matmul_relu")
    runner = Runner(TaskTable(MeasureConfig(), CUDA))
    text = str(tvm.ir.save_json(found.func))
    runner.define(Define("key", text, TARGET))
    arrays, results = runner.table.tasks["key"].reference
    assert np.allclose(results[-1], found.reference(*arrays[:-1]), atol=1e-5)


def test_a_worker_builds_for_a_gpu_without_one() -> None:
    found = workload("matmul_relu")
    runner = Runner(TaskTable(MeasureConfig(), CUDA))
    runner.define(Define("key", str(tvm.ir.save_json(found.func)), TARGET))
    program = legal_sample(gpu_sketches("matmul_relu")[-1], 1).program(0)
    runner.build("key", 0, program)
    assert "__shared__" in runner.slots[0].module.imports[0].inspect_source()


def test_the_compiler_is_found_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TVM_CUDA_COMPILE_MODE", raising=False)
    monkeypatch.setattr(nvcc, "_has_nvrtc", lambda: False)
    found = compiler_variables()
    assert found["TVM_CUDA_COMPILE_MODE"] == "nvcc"
    monkeypatch.setattr(nvcc, "_has_nvrtc", lambda: True)
    assert compiler_variables() == {}
    monkeypatch.setenv("TVM_CUDA_COMPILE_MODE", "nvcc")
    monkeypatch.setattr(nvcc, "_has_nvrtc", lambda: False)
    assert compiler_variables() == {}
