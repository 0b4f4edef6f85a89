"""Extents of the loops of a stage, and the steps by which they advance its axes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ansor.dag.stage import HoleExtent, Stage
from ansor.program.loop_structure import Loop, divisor_table, lane_table
from ansor.program.nest.stage_nest import Column
from ansor.program.roles import Roles
from ansor.program.sketch import Population
from ansor.program.steps import (
    CooperativeFetch,
    CooperativeStore,
    RegisterTile,
    StripMine,
    Vectorize,
)


def root_extents(
    population: Population, roles: Roles, stage: Stage, loops: tuple[Loop, ...]
) -> npt.NDArray[np.int32]:
    """`[L, P]`: extents of a root stage's loops."""
    shape = roles.shape.get(stage.name)
    if isinstance(shape, StripMine) and shape.hole is None:
        region = [axis_extent(population, stage, axis) for axis in range(len(stage.axes))]
        return _split_for_vectors(loops, region, roles.vector.get(stage.name))
    return np.stack([_factor(population, roles, stage, loop) for loop in loops])


def attached_extents(
    population: Population,
    roles: Roles,
    name: str,
    loops: tuple[Loop, ...],
    region: list[Column],
) -> npt.NDArray[np.int32]:
    """`[own, P]`: extents of the loops of a stage that computes `region` at a loop of its host."""
    shape = roles.shape.get(name)
    if isinstance(shape, RegisterTile):
        return _split_for_registers(population, loops, region, shape)
    placed = roles.placed.get(name) or roles.fused.get(name)
    if isinstance(placed, CooperativeFetch | CooperativeStore):
        return _split_by(loops, region, population.values(placed.hole)[:, 0])
    return _split_for_vectors(loops, region, roles.vector.get(name))


def _factor(population: Population, roles: Roles, stage: Stage, loop: Loop) -> Column:
    """`[P]`: extent of one loop, from the tables of decisions."""
    hole = roles.hole_of(stage.name, loop.axis)
    if hole is not None:
        return population.values(hole)[:, loop.part]
    return axis_extent(population, stage, loop.axis)


def axis_extent(population: Population, stage: Stage, axis: int) -> Column:
    """`[P]`: extent of an axis, constant or chosen by a decision."""
    extent = stage.axes[axis].extent
    if isinstance(extent, HoleExtent):
        return population.values(extent.hole)[:, extent.column]
    return np.full(len(population), extent, dtype=np.int32)


def _split_for_vectors(
    loops: tuple[Loop, ...], region: list[Column], step: Vectorize | None
) -> npt.NDArray[np.int32]:
    """`[own, P]`: extents of an attached stage's loops, its last spatial axis split in two."""
    rows = []
    split = loops[-1].axis if loops and loops[-1].part == 1 else None
    for loop in loops:
        extent = region[loop.axis]
        if loop.axis == split:
            most, register = (step.lanes, step.register) if step is not None else (1, 0)
            vector = lane_table(most, register, int(extent.max(initial=1)))[extent]
            extent = vector if loop.part == 1 else -(-extent // vector)
        rows.append(extent)
    return np.stack(rows).astype(np.int32)


def _split_by(loops: tuple[Loop, ...], region: list[Column], most: Column) -> npt.NDArray[np.int32]:
    """`[own, P]`: extents of the loops of a fetch; the last loop is a vector."""
    rows = [region[loop.axis] for loop in loops]
    if loops[-1].part == 1:
        last = next(i for i, loop in enumerate(loops) if loop.axis == loops[-1].axis)
        rows[-1] = np.gcd(rows[last], most)
        rows[last] = rows[last] // rows[-1]
    return np.stack(rows).astype(np.int32)


def _split_for_registers(
    population: Population, loops: tuple[Loop, ...], region: list[Column], shape: RegisterTile
) -> npt.NDArray[np.int32]:
    """`[own, P]`: extents of a register tile's loops, the largest that its decisions allow."""
    inner: dict[int, Column] = {}
    for axis, hole in enumerate(shape.holes):
        if hole:
            most, extent = population.values(hole)[:, 0], region[axis]
            table = divisor_table(int(most.max(initial=1)), int(extent.max(initial=1)))
            inner[axis] = table[most, extent]
    rows = []
    for loop in loops:
        extent = region[loop.axis]
        if not loop.reduce:
            part = inner.get(loop.axis, np.ones_like(extent))
            extent = part if loop.part == 1 else extent // part
        rows.append(extent)
    return np.stack(rows).astype(np.int32)


def own_steps(
    stage: Stage, loops: tuple[Loop, ...], extents: npt.NDArray[np.int32], first: int
) -> dict[int, dict[int, Column]]:
    """Steps of the stage's own loops: an outer part advances by the product of the inner ones."""
    steps: dict[int, dict[int, Column]] = {}
    size: dict[int, Column] = {}
    for number in reversed(range(len(loops))):
        axis = loops[number].axis
        step = size.get(axis, np.ones(extents.shape[1], dtype=np.int32))
        steps.setdefault(axis, {})[first + number] = step
        size[axis] = step * extents[number]
    for number, derived in enumerate(stage.derived):
        joined = dict(steps[derived.inner])
        for loop, step in steps[derived.outer].items():
            joined[loop] = step * size[derived.inner]
        steps[len(stage.axes) + number] = joined
    return steps
