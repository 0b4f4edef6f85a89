"""What every device keeps to: this machine, TVM's RPC, the fake one, a surrogate, one of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from definitions import HARDWARE, sketches
from fake_world import latency_of, make_task
from formula_device import FormulaDevice, seconds
from nodes_here import cluster_here

import ansor
from ansor.annotate.sample import sample
from ansor.config import MeasureConfig
from ansor.database.record import Record, here_and_now
from ansor.measure.call_plan import CallPlan, PlannedCall
from ansor.measure.device import Device
from ansor.measure.fake import FakeDevice
from ansor.measure.local_device import LocalDevice
from ansor.measure.result import Measurement
from ansor.measure.rpc_device import RpcDevice
from ansor.program.program import Program
from ansor.task import Task
from ansor.workloads import build
from benchmarks.rpc_farm import KEY, LIMITS, Farm
from benchmarks.surrogate_device import SurrogateDevice
from benchmarks.surrogate_fitting import fitted, sample_of

NAME = "matmul_relu"
CONFIG = MeasureConfig(workers=1, min_time_s=0.002)
ANSWERING: Mapping[str, Callable[[], Device]] = {
    "fake": lambda: FakeDevice(latency_of),
    "formula": FormulaDevice,
    "surrogate": lambda: surrogate(),
    "cluster": lambda: cluster_here(2, lambda _: FakeDevice(latency_of)),
}


def surrogate() -> SurrogateDevice:
    """Of 40 programs that take from one to two milliseconds."""
    origin, made = here_and_now(None), make_task(NAME)
    records = [
        Record(made.key, "llvm", p, Measurement((seconds(p),), build_s=0.1, run_s=0.1), origin)
        for p in programs(40)
    ]
    fit = fitted(NAME, made, sample_of(sketches(NAME), records), {})
    return SurrogateDevice([fit], HARDWARE, workers=1)


@pytest.fixture(scope="module", params=["local", "rpc", *ANSWERING])
def device(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Device]:
    with ExitStack() as stack:
        if request.param == "local":
            yield stack.enter_context(LocalDevice("llvm", 1, CONFIG))
        elif request.param == "rpc":
            farm = stack.enter_context(Farm(tmp_path_factory.mktemp("farm")))
            farm.serve()
            made = RpcDevice(farm.host, farm.port, KEY, "llvm", 1, config=CONFIG, limits=LIMITS)
            yield stack.enter_context(made)
        else:
            yield stack.enter_context(ANSWERING[request.param]())


@pytest.fixture
def task(device: Device) -> Task:
    target = device.target if isinstance(device, RpcDevice) else "llvm"
    return replace(make_task(NAME), target=target)


def programs(count: int) -> list[Program]:
    drawn = sample(sketches(NAME)[0], count, np.random.default_rng(0))
    return [drawn.program(row) for row in range(count)]


def test_each_program_has_a_measurement_in_order(device: Device, task: Task) -> None:
    device.start(1)
    results = device.measure(task, programs(3), None)
    assert [result.error for result in results] == [None] * 3
    assert all(result.latency_s and result.latency_s > 0 for result in results)
    assert device.measure(task, [], None) == []


def test_a_measurement_is_told_once_at_most_and_as_it_is_returned(
    device: Device, task: Task
) -> None:
    told: list[tuple[int, Measurement]] = []
    results = device.measure(task, programs(3), None, lambda *result: told.append(result))
    assert len(dict(told)) == len(told)
    assert all(results[number] == result for number, result in told)


def test_right_programs_are_verified(device: Device, task: Task) -> None:
    checks = device.verify([(task, program) for program in programs(2)])
    assert [check.error for check in checks] == [None, None]
    assert all(check.difference is not None and check.difference < 1e-4 for check in checks)


def test_programs_are_compared_in_order(device: Device, task: Task) -> None:
    times = device.compare(task, programs(2), 3)
    assert len(times) == 2
    assert all(seconds and seconds > 0 for seconds in times)


def test_turns_have_a_time_and_may_have_a_spread(device: Device, task: Task) -> None:
    found = device.compare_turns(task, programs(2), 3)
    assert len(found) == 2
    for turns in found:
        assert turns is not None
        assert turns.latency_s > 0
        assert turns.spread is None or turns.spread >= 0


def test_a_rehearsal_answers_for_every_candidate(device: Device, task: Task) -> None:
    plan = CallPlan((PlannedCall(NAME, (0, None, 1)),), (32 * 36 * 4, 32 * 40 * 4))
    costs = device.rehearse(plan, {NAME: [(task, program) for program in programs(2)]}, 0.05)
    assert {name: len(row) for name, row in costs.items()} == {NAME: 2}


def test_it_may_be_closed_twice() -> None:
    for made in (FakeDevice(latency_of), FormulaDevice()):
        made.close()
        made.close()


def test_a_network_is_tuned_on_another_device() -> None:
    device = FormulaDevice()
    definition = build("matmul", rows=32, columns=40, depth=36)
    tuned = ansor.auto_schedule(list(definition.tensors), trials=12, device=device)
    assert (device.count, device.is_closed) == (12, True)
    assert [result.trials for result in tuned.tasks] == [12]
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in ((32, 36), (36, 40))]
    np.testing.assert_allclose(tuned(*inputs), definition.reference(*inputs), rtol=1e-4, atol=1e-4)
