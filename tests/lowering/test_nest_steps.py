"""Steps of each loop along each axis: the nest agrees with the bindings of lowered blocks.

Strides, reuse and footprints are computed from these steps, so they are compared with the bindings
of the lowered blocks at random points of the iteration space.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from definitions import NAMES, TILED, sketches, tile_sketches, workload
from sampling import sample
from tvm import s_tir, tirx

from ansor.config import SketchConfig
from ansor.dag.from_tir.expression import Reader
from ansor.dag.index import Index, Quotient
from ansor.lowering.lower import schedule
from ansor.lowering.replay import Replay
from ansor.program.nest import LoopNest, StageNest, build_nest
from ansor.program.sketch import Population

PROGRAMS_PER_DEFINITION = 24
POINTS = 4

Points = npt.NDArray[np.int64]  # [loops, POINTS]


def evaluate(index: Index, points: Points) -> npt.NDArray[np.int64]:
    """`[POINTS]`: an index over loops at each point."""
    total = np.full(points.shape[1], index.const)
    for atom, coef in index.terms:
        if isinstance(atom, int):
            total = total + coef * points[atom]
        else:
            inner = evaluate(atom.index, points)
            divided = isinstance(atom, Quotient)
            total = total + coef * (inner // atom.divisor if divided else inner % atom.divisor)
    return total


def bound_axes(replay: Replay, name: str, points: Points) -> list[tuple[int, ...]] | None:
    """Distance of each block variable from its start, sorted; None if a binding is not affine."""
    loops = [replay.sch.get(handle) for handle in replay.sch.get_loops(replay.blocks[name])]
    realize = _realize(loops[-1].body)
    extents = [int(loop.extent) for loop in loops]
    reader = Reader(name, [loop.loop_var for loop in loops], extents, {})
    found = [reader.index(value) for value in realize.iter_values]
    if any(index is None for index in found):
        return None
    moved = [evaluate(i, points) - evaluate(i, np.zeros_like(points)) for i in found if i]
    return sorted(tuple(values.tolist()) for values in moved)


def _realize(body: Any) -> Any:
    while isinstance(body, tirx.For):
        body = body.body
    assert isinstance(body, s_tir.SBlockRealize)
    return body


def nest_points(own: StageNest, program: int, rng: np.random.Generator) -> Points:
    """`[L, POINTS]`: random iterations of the nest's loops."""
    extents = own.extents[:, program]
    return rng.integers(0, extents[:, None], (len(extents), POINTS))


def lowered_points(own: StageNest, program: int, points: Points, replay: Replay) -> Points:
    """The same iterations by the lowered loops: parallel ones are fused, unit loops stay at 0."""
    rows: list[tuple[int, npt.NDArray[np.int64]]] = []
    fused = False
    for number, extent in enumerate(own.extents[:, program].tolist()):
        row = points[number]
        if own.parallel[number, program] and fused:
            before, values = rows.pop()
            extent, row = before * extent, values * extent + row
        fused = bool(own.parallel[number, program])
        rows.append((extent, row))
    moving = iter([row for extent, row in rows if extent > 1])
    loops = [replay.sch.get(h) for h in replay.sch.get_loops(replay.blocks[own.stage.name])]
    still = np.zeros(POINTS, dtype=np.int64)
    return np.stack([next(moving) if int(loop.extent) > 1 else still for loop in loops])


def nest_axes(own: StageNest, program: int, points: Points) -> list[tuple[int, ...]]:
    """Distance of each axis from its start by the nest, sorted."""
    moved = []
    for axis in range(len(own.stage.axes)):
        total = np.zeros(POINTS, dtype=np.int64)
        for loop, step in own.steps.get(axis, {}).items():
            total = total + int(step[program]) * points[loop]
        moved.append(tuple(total.tolist()))
    return sorted(moved)


def is_uneven(nest: LoopNest, name: str, program: int) -> bool:
    """Whether some iterations of a loop, and not all, advance a quotient that places the stage."""
    roles = nest.population.sketch.roles
    placing = [
        (nest.stages[other], atom)
        for other, access in (roles.neighbours(name) if name in roles.host else ())
        for index in access.indices
        for atom, _ in (index.terms if index is not None else ())
        if isinstance(atom, Quotient)
    ]
    return any(
        step[program] % atom.divisor and step[program] * own.extents[loop, program] > atom.divisor
        for own, atom in placing
        if (axis := atom.of_axis) is not None
        for loop, step in own.steps[axis].items()
    )


@pytest.mark.parametrize("name", [*NAMES, "tiled_matmul_uneven", "tiled_conv2d_few"])
def test_steps_are_those_of_the_lowered_blocks(name: str) -> None:
    found = tile_sketches(name) if name in TILED else sketches(name)
    func, rng, compared = workload(name).func, np.random.default_rng(0), 0
    each = -(-PROGRAMS_PER_DEFINITION // len(found))
    for sketch in found:
        population = sample(sketch, each, rng)
        nest = build_nest(population)
        for row in range(each):
            replay = schedule(func, population.program(row))
            for stage, own in nest.stages.items():
                points = nest_points(own, row, rng)
                bound = bound_axes(replay, stage, lowered_points(own, row, points, replay))
                if bound is not None and not is_uneven(nest, stage, row):
                    assert bound == nest_axes(own, row, points), (stage, population.program(row))
                    compared += 1
    assert compared >= PROGRAMS_PER_DEFINITION


def test_a_whole_axis_is_not_moved() -> None:
    """By hand: the window reaches over both ends of the dilated row at each of its two places."""
    tiles = {
        "compute.b": (1, 1, 1, 1),
        "compute.c": (8, 1, 1, 1),
        "compute.h": (8, 1, 1, 1),
        "compute.w": (1, 1, 1, 8),
        "compute.dc": (8, 1),
        "compute.dh": (4, 1),
        "compute.dw": (2, 2),
        "compute.parallel": (0,),
        "compute.unroll": (0,),
        "compute.padding": (0,),
        "kernel_transform.location": (0,),
        "data_pad.location": (11,),
        "data_dilate.location": (11,),
    }
    apart = SketchConfig(min_padded_share=0.0)  # also with buffers for zeros
    found = sketches("transposed_conv2d", apart)
    sketch = next(s for s in found if set(s.column) == set(tiles))
    choices = [decision.find(tiles[decision.name]) for decision in sketch.decisions]
    population = Population(sketch, np.asarray([choices], dtype=np.int32))
    own = build_nest(population).stages["data_dilate"]
    width = 3
    moving = {loop: int(step[0]) for loop, step in own.steps[width].items() if step[0]}
    assert {loop: s for loop, s in moving.items() if loop < own.num_host} == {}
    assert sum(step * (own.extents[loop, 0] - 1) for loop, step in moving.items()) == 7 - 1

    rng = np.random.default_rng(0)
    replay = schedule(workload("transposed_conv2d").func, population.program(0))
    points = nest_points(own, 0, rng)
    lowered = lowered_points(own, 0, points, replay)
    assert bound_axes(replay, "data_dilate", lowered) == nest_axes(own, 0, points)


@pytest.mark.parametrize("name", ["row_sum", "total_sum", "norm"])
def test_the_parts_of_a_factored_reduction_read_all_of_the_input(name: str) -> None:
    rng = np.random.default_rng(0)
    factored = [s for s in sketches(name) if "S.rf" in s.dag.stages]
    assert len(factored) == (3 if name == "norm" else 2)
    for sketch in factored:
        first = "S.rf.rf" if "S.rf.rf" in sketch.dag.stages else "S.rf"
        own = build_nest(sample(sketch, 32, rng)).stages[first]
        for size, index in zip(SIZES_OF_A[name], own.stage.reads[0].indices, strict=True):
            along = own.coefficients(index)
            reach = sum(step * (own.extents[loop] - 1) for loop, step in along.items())
            assert (np.asarray(reach) + 1 == size).all()


SIZES_OF_A = {"row_sum": (4, 4096), "total_sum": (4096,), "norm": (1, 32, 32)}
