"""Prefetches of an operand's rows one tile ahead, and of a large result during a long reduction."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from definitions import HARDWARE
from fetching import addresses, fetched
from test_lower import assert_close, run

from ansor.annotate.complete import complete
from ansor.annotate.sample import sample
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.lowering.lower import lower
from ansor.program.program import Program
from ansor.program.sketch import Sketch
from ansor.program.steps import CacheRead, FuseConsumer, PrefetchConsumer, PrefetchOperands
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.workloads import Workload, build

CONFIG = SketchConfig(unroll_steps=(0,))
ROWS, COLUMNS, DEPTH, LINE = 20, 32, 512, 16
TILE = 4  # rows
TILES = {"C.i": (1, ROWS // TILE, 1, TILE), "C.j": (2, 1, 1, COLUMNS // 2), "C.k": (DEPTH // 2, 2)}


@cache
def definition() -> Workload:
    return build("matmul", rows=ROWS, columns=COLUMNS, depth=DEPTH)


@cache
def sketch() -> Sketch:
    """The result is written tile by tile; nothing is packed."""
    states = generate(read_dag(definition().func), HARDWARE, CPU_RULES, CONFIG)
    made = (complete(state, HARDWARE, CONFIG) for state in states)
    fused = (s for s in made if any(isinstance(x, FuseConsumer) and x.level == 2 for x in s.steps))
    return next(s for s in fused if not any(isinstance(x, CacheRead) for x in s.steps))


def program(**values: tuple[int, ...]) -> Program:
    """In tiles of four rows and half of the columns, unless other values are given."""
    drawn = sample(sketch(), 1, np.random.default_rng(0)).program(0)
    dotted = {name.replace("_", "."): value for name, value in values.items()}
    tiled = {**TILES, "C.parallel": (0,), **dotted}
    return replace(drawn, values={**drawn.values, **tiled})


def in_small_caches(program: Program) -> Program:
    """As for a machine on which these matrices are large: its second cache has two KiB."""
    far_bytes = 1 << 11
    steps = (
        replace(step, far_bytes=far_bytes) if isinstance(step, PrefetchConsumer) else step
        for step in program.steps
    )
    operands = PrefetchOperands("C", ("A", "B"), 1 << 15, far_bytes, 64)
    return replace(program, steps=(*steps, operands))


def asked(func: Any, number: int, tile: int, to_write: bool = False) -> set[int]:
    """Of a parameter, while the first columns of a tile of rows are computed."""
    return addresses(func, {"j_0": 0, "i_1": tile}, func.params[number], to_write)


def test_each_tile_asks_for_the_rows_of_the_next() -> None:
    func = lower(definition().func, in_small_caches(program()))
    last = ROWS // TILE - 1
    for tile in range(last + 1):
        first = min(tile + 1, last) * TILE * DEPTH
        assert asked(func, 0, tile) == set(range(first, first + TILE * DEPTH, LINE))


def test_tiles_that_do_not_divide_end_with_the_last_row() -> None:
    func = lower(definition().func, in_small_caches(program(C_i=(1, 4, 1, 6))))
    for tile, row in enumerate([6, 12, ROWS - 6, ROWS - 6]):
        assert asked(func, 0, tile) == set(range(row * DEPTH, (row + 6) * DEPTH, LINE))


def test_a_long_reduction_asks_for_its_results_lines_as_it_goes_on() -> None:
    func = lower(definition().func, in_small_caches(program()))
    assert {(loops[-1], buffer) for *loops, buffer in fetched_inside(func)} == {
        ("k_0_0_0", "C"),
        ("k_0_0_1", "A"),
    }
    for tile in range(ROWS // TILE):
        rows = range(tile * TILE, (tile + 1) * TILE)
        assert asked(func, 2, tile, to_write=True) == {row * COLUMNS for row in rows}


def fetched_inside(func: Any) -> set[tuple[str, ...]]:
    """Names of the loops around each prefetch, and of its buffer."""
    found: set[tuple[str, ...]] = set()

    def walk(node: Any, loops: tuple[str, ...]) -> None:
        if hasattr(node, "block"):
            walk(node.block.body, loops)
        elif hasattr(node, "loop_var"):
            walk(node.body, (*loops, node.loop_var.name))
        elif hasattr(node, "seq"):
            for child in node.seq:
                walk(child, loops)
        elif hasattr(node, "attr_key"):
            walk(node.body, loops)
        elif "ansor_fetch" in str(node):
            found.add((*loops, str(node).split("address_of(")[1][0]))

    walk(func.body, ())
    return found


def test_small_matrices_stay_in_the_caches() -> None:
    func = lower(definition().func, program())
    assert not any(buffer.same_as(func.params[0]) for buffer in fetched(func))
    assert not any(loop.startswith("k") for *loops, _ in fetched_inside(func) for loop in loops)


@pytest.mark.parametrize(
    "values",
    [
        {"C_k": (4, DEPTH // 4)},
        {"C_i": (1, 1, 1, ROWS)},
        {"C_i": (ROWS // TILE, 1, 1, TILE), "C_j": (2, 2, 1, COLUMNS // 4)},
        {"C_i": (2, 1, 1, ROWS // 2)},
    ],
    ids=["short loop", "one tile", "the same rows again", "a short way"],
)
def test_what_is_not_worth_it_is_left_alone(values: dict[str, tuple[int, ...]]) -> None:
    func = lower(definition().func, in_small_caches(program(**values)))
    assert not any(buffer.same_as(func.params[0]) for buffer in fetched(func))


@pytest.mark.parametrize("rows", [(1, 5, 1, 4), (1, 4, 1, 6), (2, 5, 1, 2)])
def test_results_stay_right(rows: tuple[int, ...]) -> None:
    workload, rng = definition(), np.random.default_rng(0)
    inputs = workload.inputs(rng)
    func = lower(workload.func, program(C_i=rows))
    assert fetched(func)
    expected = workload.reference(*inputs)
    assert_close(run(func, inputs, expected.shape), expected)
