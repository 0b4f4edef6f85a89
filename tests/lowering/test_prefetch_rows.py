"""Prefetches of packed rows: each row is prefetched once, at a distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from definitions import HARDWARE
from fetching import addresses, fetched
from test_lower import assert_close, run
from tvm import tirx

from ansor.annotate.complete import complete
from ansor.annotate.sample import sample
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.lowering.lower import lower
from ansor.program.program import Program
from ansor.program.steps import CacheRead, PrefetchOperands
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.workloads import Workload, build

PACKING = SketchConfig(unroll_steps=(0,), min_pack_reuse=1, min_pack_bytes=1)
ROWS, COLUMNS, DEPTH = 16, 512, 256


def product(columns: int = COLUMNS, depth: int = DEPTH) -> Workload:
    return build("matmul", rows=ROWS, columns=columns, depth=depth)


def panels(workload: Workload, width: int) -> Program:
    """A program that packs the second matrix into panels of a number of columns, one after the
    other."""
    dag = read_dag(workload.func)
    made = (complete(s, HARDWARE, PACKING) for s in generate(dag, HARDWARE, CPU_RULES, PACKING))
    (sketch, *_) = (s for s in made if any(d.name.endswith(".pack.location") for d in s.decisions))
    depth, columns = (int(n) for n in workload.tensors[1].shape)
    values: Mapping[str, tuple[int, ...]] = {
        "C.i": (1, ROWS, 1, 1),
        "C.j": (columns // width, 1, 1, width),
        "C.k": (1, depth),
        "C.parallel": (2,),
        "C.B.pack.location": (2,),
    }
    drawn = sample(sketch, 1, np.random.default_rng(0)).program(0)
    return replace(drawn, values={**drawn.values, **values})


@pytest.mark.parametrize("width", [16, 32, 128])
def test_each_row_asks_for_one_that_comes_later(width: int) -> None:
    workload = product()
    func = lower(workload.func, panels(workload, width))
    ahead = 8192 // (4 * width)
    later = {min(row + ahead, DEPTH - 1) for row in range(DEPTH)}
    for panel in (0, 1, COLUMNS // width - 1):
        lines = range(panel * width, (panel + 1) * width, 16)
        expected = {row * COLUMNS + line for row in later for line in lines}
        assert addresses(func, {"i_0_j_0_fused": panel}, func.params[1]) == expected


def test_only_what_is_packed_is_asked_for() -> None:
    func = lower(product().func, panels(product(), 32))
    assert fetched(func)
    assert all(buffer.same_as(func.params[1]) for buffer in fetched(func))


@pytest.mark.parametrize(
    ("columns", "depth", "width"),
    [(128, 512, 64), (512, 16, 64), (512, 256, 4)],
    ids=["rows are near", "few rows", "rows are short"],
)
def test_what_hardware_finds_by_itself_is_left_alone(columns: int, depth: int, width: int) -> None:
    workload = product(columns, depth)
    assert not fetched(lower(workload.func, panels(workload, width)))


def test_the_function_stays_as_it_was() -> None:
    workload = product()
    before = workload.func.script()
    scheduled = lower(workload.func, panels(workload, 32))
    assert isinstance(scheduled, tirx.PrimFunc)
    assert workload.func.script() == before


@pytest.mark.parametrize("width", [32, 64])
def test_results_stay_right(width: int) -> None:
    workload = product()
    inputs = workload.inputs(np.random.default_rng(0))
    expected = workload.reference(*inputs)
    found = run(lower(workload.func, panels(workload, width)), inputs, expected.shape)
    assert_close(found, expected)


def unpacked(workload: Workload, width: int, depth: tuple[int, int]) -> Program:
    """A program with tiles of four rows and a number of columns, from matrices without packing."""
    dag = read_dag(workload.func)
    config = SketchConfig(unroll_steps=(0,))
    made = (complete(s, HARDWARE, config) for s in generate(dag, HARDWARE, CPU_RULES, config))
    sketch = next(s for s in made if not any(isinstance(x, CacheRead) for x in s.steps))
    values: Mapping[str, tuple[int, ...]] = {
        "C.i": (ROWS // 4, 1, 1, 4),
        "C.j": (COLUMNS // width, 1, 1, width),
        "C.k": depth,
        "C.parallel": (2,),
    }
    drawn = sample(sketch, 1, np.random.default_rng(0)).program(0)
    return replace(drawn, values={**drawn.values, **values})


def in_small_cache(program: Program) -> Program:
    """As for a machine on which the second matrix is large."""
    operands = PrefetchOperands("C", ("B",), 1 << 15, 4 * COLUMNS * DEPTH, 64)
    return replace(program, steps=(*program.steps, operands))


@pytest.mark.parametrize("width", [16, 32, 64])
def test_rows_that_are_summed_up_ask_for_later_ones(width: int) -> None:
    workload = product()
    func = lower(workload.func, in_small_cache(unpacked(workload, width, (1, DEPTH))))
    assert all(buffer.same_as(func.params[1]) for buffer in fetched(func))
    later = {min(row + 4096 // (4 * width), DEPTH - 1) for row in range(DEPTH)}
    for panel in (0, 1, COLUMNS // width - 1):
        lines = range(panel * width, (panel + 1) * width, 16)
        expected = {row * COLUMNS + line for row in later for line in lines}
        assert addresses(func, {"i_0_j_0_fused": panel}, func.params[1]) == expected


def test_sums_of_few_rows_are_left_alone() -> None:
    workload = product()
    assert not fetched(
        lower(workload.func, in_small_cache(unpacked(workload, 32, (DEPTH // 2, 2))))
    )


def test_rows_that_stay_in_the_caches_are_left_alone() -> None:
    workload = product()
    assert not fetched(lower(workload.func, unpacked(workload, 32, (1, DEPTH))))


def test_sums_stay_right() -> None:
    workload, rng = product(), np.random.default_rng(0)
    inputs = workload.inputs(rng)
    func = lower(workload.func, in_small_cache(unpacked(workload, 32, (1, DEPTH))))
    assert fetched(func)
    expected = workload.reference(*inputs)
    assert_close(run(func, inputs, expected.shape), expected)
