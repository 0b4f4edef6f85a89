"""Steps on padding are found and, if requested, left out; other steps are kept."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import tvm
from definitions import HARDWARE
from sampling import sample
from tvm import te, tirx, topi

from ansor.annotate.complete import complete
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.dag.padding import padded_dimensions
from ansor.lowering.lower import lower
from ansor.lowering.statements import collect
from ansor.program.nest import build_nest
from ansor.program.sketch import Population, Sketch
from ansor.program.steps import SkipPadding
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.workloads.convolution_nd import ConvolutionSizes, convolution
from ansor.workloads.workload import Workload

SHAPES = {
    "plain": ConvolutionSizes(1, (6, 5), 3, 16, 3, 1, 1),
    "strided": ConvolutionSizes(1, (9, 7), 3, 16, 3, 2, 1),
    "dilated": ConvolutionSizes(1, (8, 7), 3, 16, 3, 1, 2, 2),
    "deep": ConvolutionSizes(1, (3, 4, 5), 2, 16, 3, 1, 1),
    "large kernel": ConvolutionSizes(1, (5, 6), 2, 16, 5, 1, 2),
}


@cache
def work(name: str) -> Workload:
    """A small convolution."""
    return convolution(name, SHAPES[name])


@cache
def skipping(name: str) -> tuple[Sketch, ...]:
    """Its sketches that may leave out steps."""
    states = generate(read_dag(work(name).func), HARDWARE, CPU_RULES, SketchConfig())
    made = (complete(state, HARDWARE, SketchConfig()) for state in states)
    return tuple(s for s in made if any(isinstance(step, SkipPadding) for step in s.steps))


def programs(sketch: Sketch, count: int, skip: bool) -> Population:
    """Random programs that are asked to leave out steps, or not to."""
    (column,) = (i for i, d in enumerate(sketch.decisions) if d.name.endswith(".padding"))
    choices = sample(sketch, count, np.random.default_rng(0)).choices.copy()
    choices[:, column] = int(skip)
    return Population(sketch, choices)


def conditions(func: tirx.PrimFunc) -> int:
    """Statements under a condition."""
    return len(collect(func.body, tirx.IfThenElse))


def run(func: tirx.PrimFunc, arrays: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """The last argument after a run."""
    out = tvm.runtime.tensor(np.zeros(shape, dtype=np.float32))
    tvm.compile(func, target="llvm")(*map(tvm.runtime.tensor, arrays), out)
    return out.numpy()


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("plain", (16 / 18, 13 / 15)),
        ("strided", (13 / 15, 10 / 12)),
        ("dilated", (20 / 24, 17 / 21)),
        ("deep", (7 / 9, 10 / 12, 13 / 15)),
        ("large kernel", (19 / 25, 24 / 30)),
    ],
)
def test_padded_steps_are_counted(name: str, shares: tuple[float, ...]) -> None:
    dag = read_dag(work(name).func)
    (stage,) = (s for s in dag.stages.values() if s.reduce)
    found = padded_dimensions(dag, stage.name)
    assert [p.share for p in found] == pytest.approx(shares)
    assert [p.dim for p in found] == list(range(1, len(shares) + 1))


@pytest.mark.parametrize("name", SHAPES)
def test_results_stay_right(name: str) -> None:
    inputs = work(name).inputs(np.random.default_rng(1))
    expected = work(name).reference(*inputs)
    for sketch in skipping(name):
        population = programs(sketch, 4, True)
        for row in range(len(population)):
            found = run(lower(work(name).func, population.program(row)), inputs, expected.shape)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["plain", "deep"])
def test_the_nest_knows_where_conditions_stand(name: str) -> None:
    seen = set()
    for sketch in skipping(name):
        for skip in (False, True):
            population = programs(sketch, 24, skip)
            nest = build_nest(population)
            (stage,) = (s.stage for s in sketch.steps if isinstance(s, SkipPadding))
            executed = nest.stages[stage].executed
            for row in range(len(population)):
                plain = lower(work(name).func, programs(sketch, 24, False).program(row))
                more = conditions(lower(work(name).func, population.program(row)))
                more -= conditions(plain)
                assert (more > 0) == (executed[row] < 1)
            assert skip or (executed == 1).all()
            seen |= set(np.round(executed, 5).tolist())
    assert len(seen) >= 3  # none, one dimension or another


def test_what_is_left_out_is_not_computed() -> None:
    """An infinite weight times a zero of the padding is no number."""
    rows = te.placeholder((6, 4), "float32", "rows")
    weight = te.placeholder((3, 4, 16), "float32", "weight")
    wide = topi.nn.pad(rows, (1, 0), (1, 0), 0.0, name="wide")
    k, c = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 4), "c")
    conv = te.compute(
        (6, 16), lambda y, f: te.sum(wide[y + k, c] * weight[k, c, f], [k, c]), "conv"
    )
    func = te.create_prim_func([rows, weight, te.compute((6, 16), lambda *i: conv(*i) + 1, "out")])
    states = generate(read_dag(func), HARDWARE, CPU_RULES, SketchConfig())
    made = (complete(state, HARDWARE, SketchConfig()) for state in states)
    (sketch, *_) = (s for s in made if any(isinstance(x, SkipPadding) for x in s.steps))
    x = np.ones((6, 4), dtype=np.float32)
    w = np.ones((3, 4, 16), dtype=np.float32)
    w[0] = np.inf  # meets the padding above the first row, and no other padding
    for skip in (False, True):
        population = programs(sketch, 40, skip)
        executed = build_nest(population).stages["conv"].executed
        for row in np.flatnonzero(executed < 1)[:3] if skip else range(3):
            found = run(lower(func, population.program(int(row))), [x, w], (6, 16))
            assert np.isposinf(found[1:]).all()
            assert np.isnan(found[0]).all() != skip
        assert skip == bool((executed < 1).any())


def _pool() -> te.Tensor:
    """A sum that multiplies nothing."""
    x = te.placeholder((8, 16), "float32", "x")
    wide = topi.nn.pad(x, (1, 0), (1, 0), 0.0, name="wide")
    k = te.reduce_axis((0, 3), "k")
    return [x, te.compute((8, 16), lambda y, c: te.sum(wide[y + k, c], k), "pool")]


def _ones() -> te.Tensor:
    """A product with an operand that is padded with ones."""
    x, w = te.placeholder((8, 4), "float32", "x"), te.placeholder((3, 4, 16), "float32", "w")
    wide = topi.nn.pad(x, (1, 0), (1, 0), 1.0, name="wide")
    k, c = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 4), "c")
    body = lambda y, f: te.sum(wide[y + k, c] * w[k, c, f], [k, c])  # noqa: E731
    return [x, w, te.compute((8, 16), body, "conv")]


@pytest.mark.parametrize("tensors", [_pool(), _ones()], ids=["pool", "ones"])
def test_other_padding_is_left_alone(tensors: list[te.Tensor]) -> None:
    dag = read_dag(te.create_prim_func(tensors))
    assert not any(padded_dimensions(dag, name) for name in dag.stages)
