"""The real device: what works, what fails, and that failures stay where they are."""

from __future__ import annotations

import dataclasses
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import measure_faults
import numpy as np
import psutil
import pytest
from measure_faults import FAULTY

from ansor.config import MeasureConfig
from ansor.dag.from_tir.read import read_dag
from ansor.errors import ArgumentError, MeasureError
from ansor.measure.call_plan import CallPlan, PlannedCall
from ansor.measure.local import worker_pool
from ansor.measure.local.worker_pool import worker_memory_bytes
from ansor.measure.local_device import LocalDevice
from ansor.measure.result import ErrorKind
from ansor.program.program import Program
from ansor.targets.cpu.backend import CPU
from ansor.task import Converted, Original, Task

THREADS = 2
CONFIG = MeasureConfig(
    build_timeout_s=4.0,
    run_timeout_s=4.0,
    min_time_s=0.002,
    recycle_after=1000,
    # No repeat is disturbed, so that they can be counted on any machine.
    quiet_factor=1e9,
    far_factor=1e9,
    delayed_share=1e9,
)
ONE = dataclasses.replace(CONFIG, workers=1)  # a worker takes 2 s to import TVM
GOOD = Program()
SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
import test_local_device as t
device = t.open_device(t.ONE)
print([m.latency_s is not None for m in device.measure(t.make_task(), [t.GOOD], None)])
print(*[p.pid for p in t.children()], flush=True)
{then}
"""


def make_task() -> Task:
    func = measure_faults.matmul()
    return Task("matmul", func, read_dag(func), "llvm")


def open_device(config: MeasureConfig = CONFIG) -> LocalDevice:
    return LocalDevice("llvm", THREADS, config, backend=FAULTY)


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def workers_besides(known: set[int]) -> list[psutil.Process]:
    """Children of children: those forked by a device's fork server."""
    return [p for p in children() if p.pid not in known and p.ppid() != os.getpid()]


def sketches(*names: str) -> list[Program]:
    return [Program(name) for name in names]


def gone(pids: list[int], within_s: float = 5.0) -> bool:
    """Whether all of the processes have ended (a zombie has)."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if not any(map(_alive, pids)):
            return True
        time.sleep(0.02)
    return False


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="module")
def device() -> Iterator[LocalDevice]:
    with open_device() as device:
        yield device


@pytest.fixture(scope="module")
def task() -> Task:
    return make_task()


def test_times_a_program(device: LocalDevice, task: Task) -> None:
    (found,) = device.measure(task, [GOOD], None)
    assert found.error is None
    assert len(found.latencies_s) == CONFIG.repeats
    assert found.latency_s is not None
    assert 1e-7 < found.latency_s < 1e-2
    assert found.build_s > 0
    assert found.run_s > 0


def test_the_default_lowering_times_a_program_without_steps(task: Task) -> None:
    with LocalDevice("llvm", 1, ONE) as device:
        (found,) = device.measure(task, [GOOD], None)
    assert found.error is None


def test_workers_start_when_they_are_asked_for_or_needed(task: Task) -> None:
    before = {p.pid for p in children()}
    with open_device() as device:
        assert {p.pid for p in children()} == before
        device.start(1)
        (fork_server,) = {p.pid for p in children()} - before
        assert device.verify([(task, GOOD)])[0].error is None
        assert len(workers_besides(before)) == 1, "one program needs one worker"
        assert {p.ppid() for p in workers_besides(before)} == {fork_server}


def test_workers_do_without_pytorch(task: Task) -> None:
    pytest.importorskip("torch")
    before = {p.pid for p in children()}
    with open_device(ONE) as device:
        device.measure(task, [GOOD], None)
        (worker,) = workers_besides(before)
        assert not any("libtorch" in entry.path for entry in worker.memory_maps())


def test_no_programs_no_measurements(device: LocalDevice, task: Task) -> None:
    assert device.measure(task, [], None) == []


def test_failures_keep_their_place_and_kind(device: LocalDevice, task: Task) -> None:
    names = ["fine", "raise", "abort", "fine", "unbuildable", "exit", "segfault", "fine"]
    found = device.measure(task, sketches(*names), None)
    assert [m.error for m in found] == [
        None,
        ErrorKind.LOWER,
        ErrorKind.CRASH,
        None,
        ErrorKind.BUILD,
        ErrorKind.CRASH,
        ErrorKind.CRASH,
        None,
    ]
    assert found[1].message == "ValueError: no such loop\nsecond line"
    assert "SIGABRT" in found[2].message
    assert "last words" in found[2].message
    assert "exit code 3" in found[5].message
    assert all(m.latency_s is None for m in found if m.error)


def test_a_hang_is_killed_and_the_rest_goes_on(device: LocalDevice, task: Task) -> None:
    before = device.replaced
    found = device.measure(task, sketches("sleep", "endless", "fine", "fine"), None)
    assert [m.error for m in found] == [ErrorKind.TIMEOUT, ErrorKind.TIMEOUT, None, None]
    assert device.replaced == before + 2


def test_a_slow_program_is_timed_once(device: LocalDevice, task: Task) -> None:
    (slow,) = device.measure(task, sketches("slow"), 1e-6)
    assert len(slow.latencies_s) == 1
    (alone,) = device.measure(task, sketches("slow"), None)
    assert len(alone.latencies_s) == CONFIG.repeats


def test_noise_on_stdout_does_not_corrupt_the_channel(device: LocalDevice, task: Task) -> None:
    found = device.measure(task, sketches("noise", "noise", "fine"), None)
    assert [m.error for m in found] == [None] * 3


def test_memory_and_output_of_a_candidate_are_limited(task: Task) -> None:
    limited = replace(ONE, memory_share=0.0, build_timeout_s=60.0)
    with LocalDevice("llvm", THREADS, limited, backend=FAULTY) as device:
        names = ["hoard", "fine", "chatter", "page", "page", "fine"]
        # A call for each, because an idle worker gets an empty log with the next request.
        found = [device.measure(task, sketches(name), None)[0] for name in names]
        assert device.replaced == 0
    assert [m.error for m in found] == [ErrorKind.LOWER, None, ErrorKind.LOWER, None, None, None]
    assert "MemoryError" in found[0].message
    assert "File too large" in found[2].message


@pytest.mark.skipif(sys.platform != "linux", reason="a file of Linux")
def test_the_kernel_ends_a_worker_first_when_memory_ends(device: LocalDevice, task: Task) -> None:
    (found,) = device.measure(task, sketches("pid"), None)
    pid = found.message.split("pid=")[1].split()[0]
    assert Path(f"/proc/{pid}/oom_score_adj").read_text().strip() == "1000"


def test_a_worker_has_a_share_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    config = MeasureConfig(memory_share=0.5, least_memory_bytes=2 << 30)
    for available, expected in ((30 << 30, 15 << 30), (1 << 30, 2 << 30)):
        monkeypatch.setattr(worker_pool, "available_bytes", lambda available=available: available)
        assert worker_memory_bytes(config) == expected


def test_threads_reach_the_worker(device: LocalDevice, task: Task) -> None:
    (found,) = device.measure(task, sketches("pid"), None)
    assert found.message.endswith(f"threads={THREADS}")


def test_verifies_against_the_definition(device: LocalDevice, task: Task) -> None:
    right, wrong = device.verify([(task, p) for p in sketches("fine", "wrong")])
    assert right.error is None
    assert right.difference is not None
    assert 0.0 < right.difference < 1e-6, "rounding, seen against float64"
    assert wrong.error is ErrorKind.WRONG
    assert wrong.difference == pytest.approx(0.01, rel=1e-3)
    assert device.verify([(task, Program("raise"))])[0].error is ErrorKind.LOWER
    assert device.verify([(task, Program("exit"))])[0].error is ErrorKind.CRASH


def test_compares_in_turns(device: LocalDevice, task: Task) -> None:
    slow, fine, failed = device.compare(task, sketches("slow", "fine", "raise"), 3)
    assert slow is not None
    assert fine is not None
    assert slow > 10 * fine
    assert failed is None


def test_a_crash_takes_only_the_programs_of_its_worker(task: Task) -> None:
    two = dataclasses.replace(CONFIG, workers=2, build_timeout_s=20.0, run_timeout_s=20.0)
    with open_device(two) as device:
        device.start()
        device._pool.settle()
        programs = sketches("fine", "segfault", "fine", "fine")
        times = device.compare(task, programs, 3)
        assert times[1] is None
        assert any(time is not None for time in times), times
        assert device.replaced == 1
        assert device.compare(task, sketches("fine"), 1)[0] is not None


def test_workers_are_recycled(task: Task) -> None:
    with open_device(dataclasses.replace(ONE, recycle_after=2)) as device:
        pids = [device.measure(task, sketches("pid", "pid"), None)[0].message for _ in range(2)]
        assert device.replaced == 1
    assert pids[0] != pids[1]


@pytest.mark.parametrize("known", [True, False])
def test_a_worker_that_died_idle_is_replaced(task: Task, known: bool) -> None:
    """What it is asked next may be a new task's definition, or a program of a task it knew."""
    with open_device(ONE) as device:
        before = {p.pid for p in children()}
        (first,) = device.measure(task, [GOOD], None)
        assert first.error is None
        (worker,) = workers_besides(before)
        os.kill(worker.pid, signal.SIGKILL)
        assert gone([worker.pid])
        time.sleep(0.2)  # until all of its threads are
        doubled = measure_faults.matmul(factor=2.0)
        another = Task("another", doubled, read_dag(doubled), "llvm")
        (found,) = device.measure(task if known else another, [GOOD], None)
        assert found.error is None
        assert device.replaced == 1


def test_a_worker_that_dies_of_what_came_before_hands_its_job_on(task: Task) -> None:
    """It is still there when it is asked; the definition is the first thing that it reads."""
    with open_device(ONE) as device:
        before = {p.pid for p in children()}
        device.measure(task, [GOOD], None)
        (worker,) = workers_besides(before)
        timer = threading.Timer(0.2, os.kill, (worker.pid, signal.SIGKILL))
        worker.suspend()
        timer.start()
        doubled = measure_faults.matmul(factor=2.0)
        another = Task("another", doubled, read_dag(doubled), "llvm")
        (found,) = device.measure(another, [GOOD], None)
        assert found.error is None
        assert device.replaced == 1


def test_nothing_is_left_running_after_close(task: Task) -> None:
    before = {p.pid for p in children()}
    device = open_device(ONE)
    device.measure(task, [GOOD], None)
    mine = [p.pid for p in children() if p.pid not in before]
    assert mine
    device.close()
    device.close()
    assert gone(mine)
    with pytest.raises(MeasureError, match="closed"):
        device.measure(task, [GOOD], None)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_cleans_up_and_the_device_goes_on(device: LocalDevice, task: Task) -> None:
    device.measure(task, [GOOD, GOOD], None)
    assert not [w for w in device._pool.workers if w.is_starting], "where programs are timed"
    before = {p.pid for p in children()}
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        device.measure(task, sketches("sleep"), None)
    killed = before - {p.pid for p in children()}
    assert len(killed) == 1
    assert gone(list(killed))
    assert device.measure(task, [GOOD], None)[0].error is None


@pytest.mark.parametrize("then", ["os.kill(os.getpid(), 9)", "pass"])
def test_workers_die_with_a_parent_that_does_not_close(then: str) -> None:
    tests = str(Path(__file__).parent)
    script = SCRIPT.format(tests=tests, then=f"import os; {then}")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    works, pids = done.stdout.splitlines()
    assert works == "[True]"
    assert pids
    assert gone([int(pid) for pid in pids.split()])


def test_wrong_arguments_are_refused(device: LocalDevice, task: Task) -> None:
    with pytest.raises(ArgumentError, match="threads=0"):
        LocalDevice("llvm", 0)
    other = Task(task.name, task.func, task.dag, "llvm -of -elsewhere")
    with pytest.raises(ArgumentError, match="elsewhere"):
        device.measure(other, [GOOD], None)


def test_a_worker_that_cannot_start_is_an_error(task: Task) -> None:
    with (
        LocalDevice("llvm", 1, ONE, backend=replace(CPU, home="no_such_module:BACKEND")) as device,
        pytest.raises(MeasureError, match="no_such_module"),
    ):
        device.measure(task, [GOOD], None)


# --- in the run of a network ------------------------------------------------------------------

TWICE = CallPlan(
    (
        PlannedCall("f", (0, None, 1)),
        PlannedCall("g", (1, None, 0)),
        PlannedCall("f", (0, None, 1)),
    ),
    (4096, 4096),
)


def test_candidates_are_timed_in_the_run_of_a_network(device: LocalDevice, task: Task) -> None:
    f, g = sketches("fine", "slow"), sketches("raise", "fine")
    candidates = {"f": [(task, p) for p in f], "g": [(task, p) for p in g]}
    found = device.rehearse(TWICE, candidates, seconds=0.05)
    assert found["g"][0] is None
    fine, slow, other = (t or 0.0 for t in (*found["f"], found["g"][1]))
    assert slow > 20 * fine > 0
    assert abs(other) < slow, "what the next call takes less than usual is subtracted"


@pytest.mark.parametrize("bad", ["segfault", "exit"])
def test_a_network_that_crashes_has_no_times(device: LocalDevice, task: Task, bad: str) -> None:
    candidates = {
        "f": [(task, p) for p in sketches("fine", bad)],
        "g": [(task, p) for p in sketches("fine")],
    }
    assert device.rehearse(TWICE, candidates, seconds=0.05) == {"f": [None, None], "g": [None]}
    (after,) = device.measure(task, [GOOD], None)
    assert after.error is None


def test_a_variant_is_compared_with_its_original(task: Task) -> None:
    """The variant takes its second operand doubled, and halves the product."""
    original = Original(
        "matmul", "halved", task.func, Converted(1, functools.partial(np.multiply, 2))
    )
    func = measure_faults.matmul(factor=0.5)
    right = Task("variant", func, read_dag(func), "llvm", original=original)
    plain = measure_faults.matmul(factor=0.505)
    wrong = Task("wrong", plain, read_dag(plain), "llvm", original=original)
    assert (right.group, right.kind) == ("matmul", "halved")
    assert (task.group, task.kind) == ("matmul", "direct")
    with LocalDevice("llvm", 1, ONE) as device:
        good, bad = device.verify([(right, GOOD), (wrong, GOOD)])
    assert good.error is None
    assert bad.error is ErrorKind.WRONG
    assert bad.difference == pytest.approx(0.01, rel=0.05)
