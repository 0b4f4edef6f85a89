"""Argument sets for timing with cold weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx

from ansor.config import MeasureConfig
from ansor.measure.child.cold_weights import ColdMemory
from ansor.measure.child.runner import Runner
from ansor.measure.child.task_table import TaskTable
from ansor.measure.child.worker import answer
from ansor.measure.child.worker_task import WorkerTask
from ansor.measure.protocol import Build, Time, Verify
from ansor.measure.result import Timing
from ansor.program.program import Program
from ansor.program.steps import LayoutRewrite
from ansor.targets.cpu.backend import CPU

CONFIG = MeasureConfig(min_time_s=0.001, cold_pool_bytes=1 << 20)
WEIGHT_BYTES = 64 * 32 * 4


def dense() -> tirx.PrimFunc:
    x, w = te.placeholder((8, 64), name="x"), te.placeholder((64, 32), name="w")
    k = te.reduce_axis((0, 64), name="k")
    y = te.compute((8, 32), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="y")
    return te.create_prim_func([x, w, y])


def weights() -> list[Any]:
    return [dense().params[1]]


def addresses(sets: list[list[Any]]) -> list[int]:
    return [int(np.from_dlpack(tensors[0]).ctypes.data) for tensors in sets]


def test_copies_lie_apart_and_aligned() -> None:
    places = addresses(ColdMemory(1 << 20, 64).sets(weights()))
    assert len(places) == 64
    assert all(place % 64 == 0 for place in places)
    assert min(np.diff(sorted(places))) >= WEIGHT_BYTES


@pytest.mark.parametrize(("most", "count"), [(1, 1), (64, 64), (1000, 128)])
def test_as_many_copies_as_there_is_room_for(most: int, count: int) -> None:
    assert (1 << 20) // WEIGHT_BYTES == 128
    assert len(ColdMemory(1 << 20, most).sets(weights())) == count


def test_weights_larger_than_the_block_get_memory_of_their_own() -> None:
    ((tensor,),) = ColdMemory(64, 64).sets(weights())
    assert tensor.shape == (64, 32)


def task() -> WorkerTask:
    return WorkerTask(dense(), "llvm", CONFIG, constants=(1,), in_network=True)


@pytest.mark.parametrize("width", [0, 16])
def test_programs_are_timed_and_checked_with_their_own_layout(width: int) -> None:
    runner = Runner(TaskTable(CONFIG, CPU, {"dense": task()}))
    program = Program("packed", (LayoutRewrite("y", "w", "width"),), {"width": (width,)})
    assert answer(runner, Build("dense", 1, program)).error is None
    timed = runner._timed(runner.slots[1])
    sets = timed.sets
    assert len(sets) == 128
    expected = (64, 32) if width == 0 else (2, 64, 16)
    assert {tuple(arguments[1].shape) for arguments in sets} == {expected}
    assert len({id(arguments[0]) for arguments in sets}) == 1
    before = [np.from_dlpack(sets[0][i]).copy() for i in (0, 2)]
    assert timed.others is not None
    timed.others()
    for i, array in zip((0, 2), before, strict=True):
        assert np.array_equal(np.from_dlpack(sets[0][i]), array), "rewritten as it was"
    timing = answer(runner, Time(1, math.inf)).value
    assert isinstance(timing, Timing)
    assert len(timing.latencies_s) == CONFIG.repeats
    assert answer(runner, Verify("dense", program)).value < 1e-6  # type: ignore[operator]
