"""Workers are forks of one process, which tells how they end; with it they end, and begin anew."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import measure_faults
import psutil
import pytest
import tvm
from measure_faults import FAULTY

from ansor.config import MeasureConfig
from ansor.errors import MeasureError
from ansor.measure.local import worker_pool
from ansor.measure.local.fork_server import ForkServer
from ansor.measure.local.worker_pool import Pool, worker_environment
from ansor.measure.local.worker_process import WorkerFailure, WorkerProcess
from ansor.measure.protocol import Build, Define, Setup, Time
from ansor.program.program import Program
from ansor.targets.cpu.backend import CPU

NOTHING: Mapping[str, str] = MappingProxyType({})
Ready = Callable[..., WorkerProcess]


@pytest.fixture
def fork_server() -> Iterator[ForkServer]:
    made = ForkServer(worker_environment({}))
    yield made
    made.kill()


@pytest.fixture
def ready(fork_server: ForkServer) -> Iterator[Ready]:
    """Makes workers that have answered."""
    made: list[WorkerProcess] = []

    def worker(environment: Mapping[str, str] = NOTHING) -> WorkerProcess:
        made.append(WorkerProcess(Setup(MeasureConfig(), FAULTY.home), fork_server, environment))
        made[-1].ready()
        return made[-1]

    yield worker
    for each in made:
        each.kill()


def process(worker: WorkerProcess) -> psutil.Process:
    assert worker._process is not None
    return psutil.Process(worker._fork_server.answer(worker._process))


def build(worker: WorkerProcess, sketch: str) -> str:
    """The message of a failed build."""
    text = str(tvm.ir.save_json(measure_faults.matmul()))
    if "matmul" not in worker.tasks:
        assert worker.ask(Define("matmul", text, "llvm"), 60.0).error is None
        worker.tasks.add("matmul")
    return worker.ask(Build("matmul", 0, Program(sketch)), 60.0).message


def test_workers_are_forks_of_one_process(fork_server: ForkServer, ready: Ready) -> None:
    one, other = ready(), ready()
    parents = {process(worker).ppid() for worker in (one, other)}
    assert parents == {process(one).parent().pid} == {fork_server._process.pid}  # type: ignore[union-attr]
    assert process(one).pid != process(other).pid
    for worker in (one, other):
        pid = process(worker).pid
        assert os.getpgid(pid) == pid
        worker.kill()
        worker.kill()
        assert not psutil.pid_exists(pid)


def test_each_adds_to_the_environment(ready: Ready) -> None:
    one, other = ready({"LANE": "1"}), ready({"LANE": "2"})
    assert build(one, "lane") == "ValueError: lane=1"
    assert build(other, "lane") == "ValueError: lane=2"


def test_it_tells_how_a_worker_ended(ready: Ready) -> None:
    worker = ready()
    assert not worker.has_ended
    os.kill(process(worker).pid, signal.SIGTERM)
    assert worker._process is not None
    while not worker.has_ended:
        pass
    assert worker._process.kill() == -signal.SIGTERM
    assert worker._process.kill() == -signal.SIGTERM


def test_the_compiler_of_a_worker_ends_with_the_fork_server(ready: Ready, tmp_path: Path) -> None:
    file = tmp_path / "compiler"
    worker = ready({"COMPILER": str(file)})
    assert build(worker, "compiler") == ""
    compiler, own = psutil.Process(int(file.read_text())), process(worker).parent()
    assert own is not None
    own.kill()
    assert worker.has_ended
    psutil.wait_procs([compiler], timeout=10.0)
    assert not compiler.is_running() or compiler.status() == psutil.STATUS_ZOMBIE


def test_what_a_worker_leaves_behind_is_killed_with_it(ready: Ready, tmp_path: Path) -> None:
    file = tmp_path / "compiler"
    worker = ready({"COMPILER": str(file)})
    with pytest.raises(WorkerFailure, match="SIGABRT"):
        build(worker, "leave")
    left = psutil.Process(int(file.read_text()))
    psutil.wait_procs([left], timeout=10.0)
    assert not left.is_running() or left.status() == psutil.STATUS_ZOMBIE


def test_an_answer_that_nobody_waited_for_is_passed_over(
    fork_server: ForkServer, ready: Ready
) -> None:
    one, other = ready(), ready()
    fork_server._send({"ended": process(one).pid, "wait": False}, [])  # interrupted
    os.kill(process(other).pid, signal.SIGKILL)
    assert other._process is not None
    assert other._process.kill() == -signal.SIGKILL
    assert not one.has_ended


def test_its_end_is_that_of_its_workers_and_the_next_begins(ready: Ready) -> None:
    first = ready()
    worker, own = process(first), process(first).parent()
    assert own is not None
    own.kill()
    psutil.wait_procs([worker], timeout=10.0)
    assert not worker.is_running()
    assert first.has_ended
    first.kill()
    assert build(ready(), "raise").startswith("ValueError: no such loop")


def test_one_that_cannot_start_says_why() -> None:
    environment = {**worker_environment({}), "PYTHONPATH": "/nowhere", "PYTHONHOME": "/nowhere"}
    fork_server = ForkServer(environment)
    worker = WorkerProcess(Setup(MeasureConfig(), FAULTY.home), fork_server)
    try:
        with pytest.raises(MeasureError, match=r"did not start: it ended;(.|\n)*Python"):
            worker.ready()
    finally:
        worker.kill()
        fork_server.kill()


def test_workers_that_cannot_start_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool.os, "sched_getaffinity", lambda _: {0, 1})
    pool = Pool(1, MeasureConfig(workers=2), replace(CPU, home="no_such_module:BACKEND"))
    try:
        with pytest.raises(MeasureError, match=r"did not start: exit code 1;(.|\n)*no_such_module"):
            pool.spread({0: lambda worker: worker.send(Time(0, math.inf), 10.0)})
    finally:
        pool.close()


def test_all_are_ready_when_they_have_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool.os, "sched_getaffinity", lambda _: {0, 1})
    pool = Pool(1, MeasureConfig(workers=2), CPU)
    try:
        jobs = {i: partial(lambda i, w: w.send(Time(i, math.inf), 10.0), i) for i in range(8)}
        ended = pool.spread(jobs)  # unknown slots are refused at once
        assert {worker for worker, _ in ended.values()} <= set(pool.workers)
        pool.settle()
        assert all(worker.is_ready for worker in pool.workers)
    finally:
        pool.close()
