"""The worker's half, run in this process."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx

from ansor.config import MeasureConfig
from ansor.measure.child.runner import BuiltProgram, Runner
from ansor.measure.child.task_table import TaskTable
from ansor.measure.child.worker import answer
from ansor.measure.child.worker_task import WorkerTask
from ansor.measure.protocol import Build, Compare, Define, Setup, Time, Verify
from ansor.measure.result import ErrorKind, Timing
from ansor.program.program import Program
from ansor.targets.cpu.backend import CPU

CONFIG = MeasureConfig(min_time_s=0.001)


def root(scale: float = 1.0) -> tirx.PrimFunc:
    """The square root, which random inputs in [-1, 1) do not have everywhere."""
    a = te.placeholder((16,), name="A")
    b = te.compute((16,), lambda i: te.sqrt(a[i]) * scale, name="B")
    return te.create_prim_func([a, b])


def lowering(func: Any, program: Program) -> Any:
    return root(2.0) if program.sketch == "double" else func


@pytest.fixture
def runner() -> Runner:
    tasks = {"root": WorkerTask(root(), "llvm", CONFIG)}
    return Runner(TaskTable(CONFIG, replace(CPU, lower=lowering), tasks))


def test_the_reference_avoids_nan(runner: Runner) -> None:
    arrays, results = runner.table.tasks["root"].reference
    assert not np.isnan(results[1]).any()
    assert np.allclose(results[1], np.sqrt(arrays[0]))


def test_verifies(runner: Runner) -> None:
    rounded = answer(runner, Verify("root", Program())).value
    assert 0.0 < rounded < 2**-24  # type: ignore[operator]
    assert answer(runner, Verify("root", Program("double"))).value == pytest.approx(1.0)


def test_what_rounds_to_integers_is_right_in_its_own_dtypes() -> None:
    """Float32 lands on halves where float64 does not: some integers differ by one."""
    a = te.placeholder((1 << 22,), name="A")
    b = te.compute(a.shape, lambda i: te.round(a[i] * 127.0).astype("int8"), name="B")
    task = WorkerTask(te.create_prim_func([a, b]), "llvm", CONFIG)
    runner = Runner(TaskTable(CONFIG, replace(CPU, lower=lambda func, _: func), {"rounds": task}))
    assert (task.reference[1][1] != task.narrow_reference[1][1]).any()
    assert answer(runner, Verify("rounds", Program())).value == 0.0


def test_a_slot_is_timed_once_and_dropped(runner: Runner) -> None:
    assert answer(runner, Build("root", 5, Program())).error is None
    assert answer(runner, Time(5, math.inf)).error is None
    assert runner.slots == {}
    assert answer(runner, Time(5, math.inf)).error is ErrorKind.RUN


def test_arrays_are_let_go_of_where_they_are_many() -> None:
    """Those of the task that was not used for longest first; they come again as they were."""
    config = dataclasses.replace(CONFIG, kept_bytes=8 * 128, repeats=1)
    tasks = {name: WorkerTask(root(), "llvm", config) for name in ("a", "b", "c")}
    runner = Runner(TaskTable(config, replace(CPU, lower=lowering), tasks))
    found = {name: answer(runner, Verify(name, Program())).value for name in tasks}
    held = [task.held_bytes for task in tasks.values()]
    assert held == [3 * 128] * 3  # 16 elements in and out: of a and b there was room
    assert answer(runner, Verify("a", Program())).value == found["a"]
    assert answer(runner, Verify("a", Program())).value == found["a"]
    assert [task.held_bytes for task in tasks.values()] == [3 * 128, 0, 3 * 128]
    assert answer(runner, Verify("b", Program())).value == found["b"]


def test_compared_slots_are_kept_until_the_last_round(runner: Runner) -> None:
    for slot in (1, 2):
        answer(runner, Build("root", slot, Program()))
    for keep, left in ((True, {1, 2}), (True, {1, 2}), (False, set())):
        times = answer(runner, Compare((1, 2), keep)).value
        assert len(times) == 2  # type: ignore[arg-type]
        assert all(0 < timing.latency_s < 1 for timing in times)  # type: ignore[attr-defined]
        assert set(runner.slots) == left


def test_a_comparison_that_fails_leaves_nothing_behind(runner: Runner) -> None:
    answer(runner, Build("root", 1, Program()))
    runner.slots[2] = dataclasses.replace(runner.slots[1], module={})
    assert answer(runner, Compare((1, 2), True)).error is ErrorKind.RUN
    assert runner.slots == {}


def test_what_cannot_be_read_is_an_error(runner: Runner) -> None:
    assert answer(runner, Define("bad", "no json", "llvm")).error is ErrorKind.RUN
    assert answer(runner, Setup(CONFIG, "")).error is ErrorKind.RUN


def table(scale: float) -> tirx.PrimFunc:
    a = te.placeholder((64, 8), name="A")
    return te.create_prim_func([a, te.compute((64, 8), lambda i, j: a[i, j] * scale, name="B")])


def test_a_sample_is_enough_to_see_what_is_wrong() -> None:
    config = MeasureConfig(min_time_s=0.001, verify_iterations=40)
    backend = replace(
        CPU, lower=lambda func, program: table(3.0) if program.sketch == "wrong" else func
    )
    runner = Runner(TaskTable(config, backend, {"table": WorkerTask(table(2.0), "llvm", config)}))
    arrays, results = runner.table.tasks["table"].reference
    made = results[1] != arrays[1]
    assert made.any(axis=1).sum() == 5
    assert np.array_equal(results[1][made], 2 * arrays[0][made])
    assert answer(runner, Verify("table", Program())).value == 0.0
    assert answer(runner, Verify("table", Program("wrong"))).value == pytest.approx(0.5)


def test_elements_that_come_out_as_they_were_are_compared() -> None:
    """The reference leaves inputs alone, and the one output here is what it was before."""
    ones = WorkerTask(table(2.0), "llvm", CONFIG)
    ones.reference = ([np.ones((64, 8)), np.ones((64, 8))],) * 2
    wrong = np.full((64, 8), 3.0)
    assert ones.difference([np.ones((64, 8)), wrong], [0, 1]) == 2.0
    assert ones.difference([wrong, np.ones((64, 8))], [0, 1]) == 2.0


class Recorded:
    """A module whose function notes where its arguments lie."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __getitem__(self, _: str) -> Any:
        return lambda *_: None

    def time_evaluator(self, *_: Any, **__: Any) -> Any:
        def run(*arguments: Any) -> Any:
            self.seen.append(arguments[0].data_ptr())
            return SimpleNamespace(results=[1e-3])

        return run


def recorded(config: MeasureConfig) -> tuple[Runner, list[Recorded]]:
    task = WorkerTask(root(), "llvm", config)
    modules = [Recorded() for _ in range(2)]
    slots = {i: BuiltProgram(task, task.func, module) for i, module in enumerate(modules)}
    table = TaskTable(config, replace(CPU, lower=lowering), {"root": task})
    return Runner(table, slots), modules


def test_every_repeat_is_timed_elsewhere_in_memory() -> None:
    runner, (module, _) = recorded(CONFIG)
    assert answer(runner, Time(0, math.inf)).value == Timing((1e-3,) * 3)
    assert len(set(module.seen)) == CONFIG.repeats


def test_a_round_of_a_comparison_is_in_one_place() -> None:
    runner, modules = recorded(CONFIG)
    for turn in range(3):
        answer(runner, Compare((0, 1), keep=turn < 2))
    seen = [module.seen for module in modules]
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == CONFIG.repeats


def test_large_operators_lie_in_one_place() -> None:
    config = dataclasses.replace(CONFIG, layout_bytes=2 * 16 * 4)
    runner, (module, _) = recorded(config)
    answer(runner, Time(0, math.inf))
    assert len(set(module.seen)) == 1
