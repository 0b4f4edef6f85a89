"""Prefetched tiles of what consumers read and write: all of it, before it is needed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from definitions import HARDWARE
from fetching import addresses, fetched
from test_lower import assert_close, run
from tvm import te

from ansor.annotate.complete import complete
from ansor.annotate.sample import sample
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.lowering.lower import lower
from ansor.program.program import Program
from ansor.program.sketch import Sketch
from ansor.program.steps import FuseConsumer, PrefetchConsumer
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES

CONFIG = SketchConfig(unroll_steps=(0,))
ROWS, COLUMNS, DEPTH = 24, 64, 40
SIZE = ROWS * COLUMNS
LINE = 16  # elements


@cache
def definition() -> Any:
    """out = a b + bias + shortcut."""
    a = te.placeholder((ROWS, DEPTH), name="a")
    b = te.placeholder((DEPTH, COLUMNS), name="b")
    bias = te.placeholder((COLUMNS,), name="bias")
    shortcut = te.placeholder((ROWS, COLUMNS), name="shortcut")
    k = te.reduce_axis((0, DEPTH), "k")
    c = te.compute((ROWS, COLUMNS), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    out = te.compute((ROWS, COLUMNS), lambda i, j: c[i, j] + bias[j] + shortcut[i, j], name="out")
    return te.create_prim_func([a, b, bias, shortcut, out])


@cache
def sketches() -> tuple[Sketch, ...]:
    """Those where the sum of the shortcut is fused into the tiles of the product."""
    states = generate(read_dag(definition()), HARDWARE, CPU_RULES, CONFIG)
    made = (complete(state, HARDWARE, CONFIG) for state in states)
    return tuple(s for s in made if any(isinstance(x, FuseConsumer) for x in s.steps))


def programs(count: int) -> list[Program]:
    """Random ones of all those sketches."""
    rng = np.random.default_rng(0)
    drawn = [sample(sketch, count, rng) for sketch in sketches()]
    return [population.program(row) for population in drawn for row in range(count)]


def test_every_line_is_asked_for_if_any_is() -> None:
    """The shortcut's to read, the output's to write; a line from its beginning, or a part of it."""
    fetching = 0
    for program in programs(40):
        func = lower(definition(), program)
        *_, shortcut, out = func.params
        if not fetched(func):
            continue
        fetching += 1
        for buffer, to_write in ((shortcut, False), (out, True)):
            starts = addresses(func, {}, buffer, to_write)
            assert {start // LINE for start in starts} == set(range(SIZE // LINE))
    assert fetching > 10


def in_tiles() -> Any:
    """Scheduled in three tiles of eight rows."""
    (sketch, *_) = sketches()
    tiled = {"c.i": (3, 1, 2, 4), "c.j": (1, 1, 1, COLUMNS), "c.k": (1, DEPTH), "c.parallel": (0,)}
    drawn = sample(sketch, 1, np.random.default_rng(0)).program(0)
    return lower(definition(), replace(drawn, values={**drawn.values, **tiled}))


def test_each_tile_asks_for_its_own_lines() -> None:
    func = in_tiles()
    for buffer, to_write in ((func.params[3], False), (func.params[4], True)):
        for tile in range(3):
            lines = set(range(8 * tile * COLUMNS, 8 * (tile + 1) * COLUMNS, LINE))
            assert addresses(func, {"i_0": tile}, buffer, to_write) == lines


def test_what_is_shared_by_rows_is_left_alone() -> None:
    func = in_tiles()
    assert fetched(func)
    assert not any(b.same_as(x) for b in fetched(func) for x in func.params[:3])


def with_tiles(program: Program, tile_bytes: int) -> Program:
    """The program that prefetches tiles up to `tile_bytes` only."""
    steps = (
        replace(step, tile_bytes=tile_bytes) if isinstance(step, PrefetchConsumer) else step
        for step in program.steps
    )
    return replace(program, steps=tuple(steps))


def test_large_tiles_are_left_alone() -> None:
    for program in (with_tiles(program, 4) for program in programs(20)):
        assert not fetched(lower(definition(), program)) or program.values["c.j"][-1] == 1


def test_results_stay_right() -> None:
    rng = np.random.default_rng(0)
    shapes = [(ROWS, DEPTH), (DEPTH, COLUMNS), (COLUMNS,), (ROWS, COLUMNS)]
    inputs = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    expected = inputs[0] @ inputs[1] + inputs[2] + inputs[3]
    checked = 0
    for program in programs(4):
        func = lower(definition(), program)
        if fetched(func):
            assert_close(run(func, inputs, expected.shape), expected)
            checked += 1
    assert checked
