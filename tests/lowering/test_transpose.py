"""Squares of transposed copies: turned in registers where vectors fill them, and right."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from definitions import HARDWARE, sketches, workload
from sampling import sample
from tvm import s_tir, te, tirx

from ansor.annotate.complete import complete
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.lowering.lower import lower
from ansor.lowering.passes.transpose import transpose_tiles
from ansor.lowering.statements import collect
from ansor.program.nest import build_nest
from ansor.program.sketch import Population, Sketch
from ansor.program.steps import Transpose
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.workloads.attention import attention_scores

LANES = HARDWARE.lanes(4)


def copying(sketch_list: tuple[Sketch, ...]) -> Sketch:
    """The sketch with a transposed copy in squares."""
    (found, *_) = (s for s in sketch_list if any(isinstance(x, Transpose) for x in s.steps))
    return found


def programs(sketch: Sketch, count: int, square: int) -> Population:
    """Random programs whose copy has, or has not, squares where they fit."""
    names = [decision.name for decision in sketch.decisions]
    (column,) = (i for i, name in enumerate(names) if name.endswith(".square"))
    drawn = sample(sketch, count, np.random.default_rng(0))
    choices = drawn.choices.copy()
    choices[:, column] = [1, LANES].index(square)
    return Population(sketch, choices)


def shuffles(func: tirx.PrimFunc) -> int:
    """Exchanges between two vectors in a function."""
    return len(collect(func.body, tirx.Shuffle))


def run(func: tirx.PrimFunc, arrays: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """The last argument after a run."""
    out = tvm.runtime.tensor(np.zeros(shape, dtype=arrays[0].dtype))
    tvm.compile(func, target="llvm")(*map(tvm.runtime.tensor, arrays), out)
    return out.numpy()


def test_squares_are_turned_where_they_are_whole_and_asked_for() -> None:
    sketch, func = copying(sketches("dense_squares")), workload("dense_squares").func
    whole = LANES * int(np.log2(LANES))
    for square in (1, LANES):
        population = programs(sketch, 24, square)
        nest = build_nest(population)
        (copy,) = (name for name in nest.stages if name.endswith(".pack"))
        expected = nest.stages[copy].shuffles > 0
        found = [shuffles(lower(func, population.program(row))) for row in range(24)]
        assert [count == whole for count in found] == expected.tolist()
        assert set(found) <= {0, whole}
        assert expected.any() == (square == LANES)


@pytest.mark.parametrize("square", [1, LANES])
def test_the_result_is_right(square: int) -> None:
    work = workload("dense_squares")
    population = programs(copying(sketches("dense_squares")), 6, square)
    inputs = work.inputs(np.random.default_rng(1))
    expected = work.reference(*inputs)
    for row in range(6):
        found = run(lower(work.func, population.program(row)), inputs, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_rows_of_heads_are_turned_too() -> None:
    """The source's dense axis and the one of the vectors have another between them."""
    work = attention_scores("scores", 2, 32, 3, 32)
    states = generate(read_dag(work.func), HARDWARE, CPU_RULES, SketchConfig())
    sketch = copying(tuple(complete(s, HARDWARE, SketchConfig()) for s in states))
    population = programs(sketch, 12, LANES)
    turned = np.flatnonzero(
        np.any([nest.shuffles > 0 for nest in build_nest(population).stages.values()], axis=0)
    )
    inputs = work.inputs(np.random.default_rng(2))
    expected = work.reference(*inputs)
    assert len(turned) >= 2
    for row in turned[:3]:
        func = lower(work.func, population.program(int(row)))
        assert shuffles(func)
        found = run(func, inputs, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("dtype", "squares"), [("int32", True), ("float64", True), ("int8", False)]
)
def test_elements_of_other_sizes(dtype: str, squares: bool) -> None:
    size = 64
    a, b = te.placeholder((size, size), dtype, "A"), te.placeholder((size, size), dtype, "B")
    k = te.reduce_axis((0, size), "k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[j, k], k), "C")
    func = te.create_prim_func([a, b, c])
    states = generate(read_dag(func), HARDWARE, CPU_RULES, SketchConfig())
    made = tuple(complete(s, HARDWARE, SketchConfig()) for s in states)
    asked = [step for s in made for step in s.steps if isinstance(step, Transpose)]
    assert bool(asked) == squares
    if not squares:
        return
    lanes = HARDWARE.lanes(np.dtype(dtype).itemsize)
    assert {step.lanes for step in asked} == {lanes}
    population = sample(copying(made), 8, np.random.default_rng(3))
    rng = np.random.default_rng(4)
    x, y = (rng.integers(-8, 8, (size, size)).astype(dtype) for _ in range(2))
    turned = 0
    for row in range(8):
        program = lower(func, population.program(row))
        turned += shuffles(program) > 0
        np.testing.assert_array_equal(run(program, [x, y], (size, size)), x @ y.T)
    assert turned


@pytest.mark.parametrize(("rows", "turned"), [(32, True), (24, False)])
def test_a_guarded_square_stays_as_it_is(rows: int, turned: bool) -> None:
    a = te.placeholder((rows, 32), "float32", "A")
    c = te.compute((32, rows), lambda j, i: a[i, j], "C")
    sch = s_tir.Schedule(te.create_prim_func([a, c]))
    (j, i) = sch.get_loops(sch.get_sblock("C"))
    (outer_j, square), (outer_i, lanes) = (sch.split(loop, [None, 16]) for loop in (j, i))
    sch.reorder(outer_j, outer_i, square, lanes)
    sch.vectorize(lanes)
    func = transpose_tiles(sch.mod["main"], {sch.get(square).loop_var: 16})
    assert (shuffles(func) > 0) == turned
    x = np.random.default_rng(5).standard_normal((rows, 32), dtype=np.float32)
    np.testing.assert_array_equal(run(func, [x], (32, rows)), x.T)
