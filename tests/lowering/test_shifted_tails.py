"""Splits that do not divide: tables, guards gone, and right results on every shape."""

from __future__ import annotations

import numpy as np
import tvm
from definitions import HARDWARE, dag, sketches, workload
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import sample

from ansor.annotate.complete import complete
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.lowering.lower import lower, schedule
from ansor.program.decision import Decision, factorisations, tailed
from ansor.program.loop_structure import lane_table
from ansor.program.program import Program
from ansor.program.sketch import Population, Sketch
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.sketch.tables import loose_axes
from ansor.workloads import build


@given(st.integers(1, 300), st.sets(st.integers(1, 64), min_size=1), st.floats(0, 0.5))
def test_tiles_cover_the_axis_and_the_last_one_overlaps(
    extent: int, tiles: set[int], waste: float
) -> None:
    table = tailed(extent, 4, sorted(tiles), waste)
    assert set(table[:, 3].tolist()) <= tiles
    assert (table[:, 2] == 1).all()
    over = table.prod(axis=1) - extent
    assert (over > 0).all()
    assert (over < table[:, 3]).all()
    possible = [t for t in tiles if t < extent and extent % t]
    assert bool(len(table)) == bool(possible)
    if possible:
        least = min(-(-extent // t) * t for t in possible)
        assert (table.prod(axis=1) <= max(extent * (1 + waste), least)).all()


@given(st.integers(1, 400))
def test_vectors_fill_a_register_where_divisors_do_not(extent: int) -> None:
    plain, loose = (int(lane_table(64, register, extent)[extent]) for register in (0, 16))
    assert extent % plain == 0
    if plain >= 16 or extent <= 16:
        assert loose == plain
    else:
        assert loose % 16 == 0
        assert loose <= extent
        assert -(-extent // loose) * loose - extent < 16


def loosely(rows: int, columns: int, depth: int) -> tuple[tvm.tirx.PrimFunc, Sketch]:
    """The sketch of a product with a fused ReLU whose tiles need not divide."""
    func = build("matmul", rows=rows, columns=columns, depth=depth, relu=1).func
    states = generate(read_dag(func), HARDWARE, CPU_RULES, SketchConfig())
    return func, complete(states[1], HARDWARE, SketchConfig())


def program_of(sketch: Sketch, **tiles: tuple[int, ...]) -> Program:
    """The first choice of every decision except the given tiles of the axes of C."""
    row = np.zeros((1, len(sketch.decisions)), dtype=np.int32)
    for axis, factors in tiles.items():
        column = sketch.column[f"C.{axis}"]
        choice = sketch.decisions[column].find(factors)
        assert choice is not None, factors
        row[0, column] = choice
    return Population(sketch, row).program(0)


def multiply(func: tvm.tirx.PrimFunc, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    out = tvm.runtime.tensor(np.full((len(x), y.shape[1]), np.nan, dtype=np.float32))
    tvm.compile(module, "llvm")["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(y), out)
    return out.numpy()


@settings(max_examples=12, deadline=None)
@given(st.integers(29, 80), st.integers(17, 90), st.integers(1, 9), st.data())
def test_moved_tiles_compute_the_right_answer(
    rows: int, columns: int, depth: int, data: st.DataObject
) -> None:
    func, sketch = loosely(rows, columns, depth)
    chosen = {}
    for axis, extent in (("i", rows), ("j", columns)):
        table = sketch.decisions[sketch.column[f"C.{axis}"]].table
        tails = [tuple(row) for row in table.tolist() if np.prod(row) != extent]
        if tails:
            chosen[axis] = data.draw(st.sampled_from(tails))
    found = lower(func, program_of(sketch, **chosen))
    assert "T.where" not in found.script()
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, depth), dtype=np.float32)
    y = rng.standard_normal((depth, columns), dtype=np.float32)
    expected = np.maximum(x @ y, 0)
    assert np.abs(multiply(found, x, y) - expected).max() <= 1e-5 * np.abs(x @ y).max()


def test_the_guard_was_there_before() -> None:
    """What `lower` takes away: the schedule itself holds the condition."""
    func, sketch = loosely(37, 53, 4)
    program = program_of(sketch, i=(1, 5, 1, 8), j=(2, 2, 1, 16))
    assert "T.where" in schedule(func, program).sch.mod["main"].script()
    assert "T.where" not in lower(func, program).script()


def test_only_awkward_axes_are_loose() -> None:
    config = SketchConfig()
    much, little = config.max_tail_waste, config.spare_tail_waste

    def loose(rows: int, columns: int) -> dict[str, float]:
        graph = read_dag(build("matmul", rows=rows, columns=columns, depth=8, relu=1).func)
        consumer = graph.consumers("C")[0]
        found = loose_axes(graph, "C", consumer, HARDWARE, config)
        return {graph.stages["C"].axes[axis].name: waste for axis, waste in found.items()}

    assert loose(197, 101) == {"i": much, "j": much}
    assert loose(197, 64) == {"i": much}
    assert loose(196, 1000) == {"i": little, "j": much}
    assert loose(49, 128) == {"i": little}
    assert loose(7, 12) == {}  # no register to fill, a whole tile of rows
    graph = dag("conv2d")  # what a convolution reads along a row is computed at its loops
    assert not loose_axes(graph, "conv", None, HARDWARE, SketchConfig())


def test_a_larger_tile_of_rows_may_waste_a_little() -> None:
    """1024 rows in tiles of 6, 12 and 14, whose last ones repeat 2, 8 and 12 rows; 56 in tiles of
    6 would repeat 4, which is too much."""

    def tails(rows: int) -> set[int]:
        sketch = loosely(rows, 64, 8)[1]
        table = sketch.decisions[sketch.column["C.i"]].table
        return set(table[table.prod(axis=1) > rows][:, -1].tolist())

    assert tails(1024) == {6, 12, 14}
    assert tails(56) == set()
    assert 6 in tails(53)


def test_nothing_is_computed_where_a_moved_vector_would_miss_it() -> None:
    """Stages inside an untiled host stay outside the loop whose vectors are moved back."""
    for name, tails in (("softmax", False), ("softmax_prime", True)):
        for sketch in sketches(name):
            host = next(s for s in sketch.steps if type(s).__name__ == "StripMine")
            last = len(sketch.dag.stages[host.stage].spatial)
            for decision in sketch.decisions:
                if decision.name.endswith(".location"):
                    assert int(decision.table.max()) == last - tails


def test_reductions_are_never_computed_twice() -> None:
    for name in ("softmax_prime", "norm", "row_sum"):
        for sketch in sketches(name):
            for step in sketch.steps:
                if type(step).__name__ == "Vectorize" and sketch.dag.stages[step.stage].reduce:
                    assert step.register == 0


def test_neighbours_reach_other_products() -> None:
    table = np.concatenate([factorisations(37, 4), tailed(37, 4, (4, 8, 12), 0.2)])
    decision = Decision("x", "s", table)
    products = table.prod(axis=1)
    for row, near in enumerate(decision.neighbours):
        assert (products[near] != products[row]).any()


def test_two_tails_of_equal_extent_keep_their_own_tiles() -> None:
    func, sketch = loosely(37, 37, 3)
    program = program_of(sketch, i=(1, 5, 1, 8), j=(1, 3, 1, 16))
    rng = np.random.default_rng(1)
    x = rng.standard_normal((37, 3), dtype=np.float32)
    y = rng.standard_normal((3, 37), dtype=np.float32)
    found = multiply(lower(func, program), x, y)
    assert np.allclose(found, np.maximum(x @ y, 0), atol=1e-5)


def test_sampled_programs_with_tails_are_among_those_compared() -> None:
    """The test of results covers tails: at least a third of its samples have one."""
    rng, count = np.random.default_rng(0), 0
    for sketch in sketches("matmul_prime"):
        population = sample(sketch, 64, rng)
        for hole, extent in (("C.i", 37), ("C.j", 53)):
            if hole in sketch.column:
                count += int((population.values(hole).prod(axis=1) != extent).sum())
    assert count >= 64
    assert workload("matmul_prime").func is not None
