"""A device behind TVM's RPC: servers that die, hang, are slow or join, and clear errors."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from definitions import sketches
from fake_world import make_task

from ansor.annotate.sample import sample
from ansor.config import MeasureConfig
from ansor.dag.from_tir.read import read_dag
from ansor.errors import ArgumentError, MeasureError, UnsupportedError
from ansor.measure.result import ErrorKind, Measurement
from ansor.measure.rpc.queue import Queue
from ansor.measure.rpc.tracker import Tracker
from ansor.measure.rpc_device import RpcDevice
from ansor.program.program import Program
from ansor.task import Task
from benchmarks.rpc_farm import LIMITS, Farm, closed_port, until

NAME, KEY = "matmul_relu", "board"
CONFIG = MeasureConfig(workers=2, min_time_s=0.002, run_timeout_s=1.5)
BOUNDS = replace(LIMITS, upload_s=0.5, connect_s=2.0)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    with Farm(tmp_path_factory.mktemp("farm")) as opened:
        yield opened


@pytest.fixture(scope="module")
def device(shared: Farm) -> Iterator[RpcDevice]:
    """One for all tests: its processes start once."""
    pid = shared.serve(KEY)
    with RpcDevice(shared.host, shared.port, KEY, "llvm", 1, config=CONFIG, limits=BOUNDS) as made:
        made.measure(task_of(made), programs(2), None)
        shared.kill(pid)
        yield made


@pytest.fixture
def farm(shared: Farm) -> Iterator[Farm]:
    """Without servers before and after a test."""
    until(lambda: not shared.tracker.servers(KEY))
    yield shared
    shared.kill_servers()


def task_of(device: RpcDevice) -> Task:
    return replace(make_task(NAME), target=device.target)


def programs(count: int) -> list[Program]:
    drawn = sample(sketches(NAME)[0], count, np.random.default_rng(0))
    return [drawn.program(row) for row in range(count)]


def errors(device: RpcDevice, count: int) -> list[ErrorKind | None]:
    """Measurements of a number of programs, each reported once."""
    told: dict[int, Measurement] = {}
    results = device.measure(task_of(device), programs(count), None, told.setdefault)
    assert [told[number] for number in range(count)] == results
    assert all((result.error is None) == bool(result.latency_s) for result in results)
    return [result.error for result in results]


class Later(threading.Thread):
    """Does something after a while, next to the test."""

    def __init__(self, delay_s: float, act: Callable[[], object]) -> None:
        super().__init__()
        self._delay_s, self._act = delay_s, act
        self.start()

    def run(self) -> None:
        time.sleep(self._delay_s)
        self._act()


def test_a_server_that_dies_costs_its_program_one_retry(farm: Farm, device: RpcDevice) -> None:
    first, _ = (farm.serve(KEY, wait_s=0.3) for _ in range(2))
    killing = Later(0.7, lambda: farm.kill(first))
    assert errors(device, 6) == [None] * 6
    killing.join()
    assert len(farm.tracker.servers(KEY)) == 1


def test_a_server_that_hangs_costs_its_program_one_retry(farm: Farm, device: RpcDevice) -> None:
    first, _ = (farm.serve(KEY, wait_s=0.3) for _ in range(2))
    stopping = Later(0.7, lambda: farm.signal(first, signal.SIGSTOP))
    assert errors(device, 6) == [None] * 6
    stopping.join()


def test_a_check_survives_a_server_that_hangs(farm: Farm, device: RpcDevice) -> None:
    farm.signal(farm.serve(KEY), signal.SIGSTOP)
    farm.serve(KEY)
    checks = device.verify([(task_of(device), program) for program in programs(1)])
    assert [check.error for check in checks] == [None]


def test_a_program_that_loses_two_servers_has_failed(farm: Farm, device: RpcDevice) -> None:
    for _ in range(2):
        farm.serve(KEY, wait_s=30.0)
    (result,) = device.measure(task_of(device), programs(1), None)
    assert result.error is ErrorKind.DEVICE
    assert "2 servers died or did not answer within 2 s" in result.message


def test_a_server_that_joins_takes_part(farm: Farm, device: RpcDevice) -> None:
    farm.serve(KEY, wait_s=0.4)
    joining = Later(0.2, lambda: farm.serve(KEY, wait_s=0.0))
    began_s = time.monotonic()
    assert errors(device, 12) == [None] * 12
    assert time.monotonic() - began_s < 12 * 0.4
    joining.join()


def test_no_server_is_left(farm: Farm) -> None:
    tracker = Tracker(farm.host, farm.port, replace(LIMITS, wait_s=0.3))
    expected = f"no server of the key '{KEY}' .* in 0.3 s: the tracker at {farm.host}:{farm.port}"
    queue = Queue(tracker, KEY)
    queue.ask()
    queue.check()
    queue.waits.end()
    assert queue.take() is None
    with pytest.raises(MeasureError, match=expected):
        queue.check()
    queue.withdraw()


def test_a_server_is_given_back_after_a_call(farm: Farm, device: RpcDevice) -> None:
    farm.serve(KEY)
    assert errors(device, 1) == [None]
    until(lambda: f"{KEY}: 1 servers, 1 free, 0 requests" in farm.tracker.text())


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_leaves_nothing_under_way(farm: Farm, device: RpcDevice) -> None:
    farm.serve(KEY, wait_s=0.5)
    interrupting = Later(0.4, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        errors(device, 8)
    interrupting.join()
    assert errors(device, 1) == [None]


def test_weights_of_a_network_are_cold(farm: Farm, device: RpcDevice) -> None:
    farm.serve(KEY)
    plain = task_of(device)
    task = replace(plain, dag=read_dag(plain.func, constants=(1,)), in_network=True)
    assert task.constants == (1,)
    (result,) = device.measure(task, programs(1), None)
    assert result.error is None
    assert len(result.latencies_s) >= 1


def test_errors_of_the_address_and_the_key(farm: Farm) -> None:
    farm.serve(KEY)
    with pytest.raises(ArgumentError, match=rf"key='rasp4b'.*{KEY}: 1 servers, \d free"):
        RpcDevice(farm.host, farm.port, "rasp4b")
    with closed_port() as port, pytest.raises(MeasureError, match=f"no tracker .*:{port} "):
        RpcDevice(farm.host, port, KEY)
    with pytest.raises(UnsupportedError, match="behind RPC"):
        RpcDevice(farm.host, farm.port, KEY, "cuda -arch=sm_80")
    with pytest.raises(ArgumentError, match="threads"):
        RpcDevice(farm.host, farm.port, KEY, threads=0)


def test_something_that_is_no_tracker_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(MeasureError, match="no tracker"):
            RpcDevice("127.0.0.1", port, KEY, limits=replace(LIMITS, tracker_s=0.2))


def test_a_task_of_another_target_is_refused(farm: Farm, device: RpcDevice) -> None:
    with pytest.raises(ArgumentError, match="the only target of the device"):
        device.measure(make_task(NAME), programs(1), None)


def test_a_closed_device_is_refused(farm: Farm) -> None:
    farm.serve(KEY)
    device = RpcDevice(farm.host, farm.port, KEY, "llvm", 1)
    device.close()
    device.close()
    with pytest.raises(MeasureError, match="closed"):
        errors(device, 1)
