"""The part of an attached stage that its neighbours need at the point of attachment."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ansor.dag.index import Index, Quotient
from ansor.program.nest.extents import axis_extent
from ansor.program.nest.loop_nest import LoopNest
from ansor.program.nest.stage_nest import Column, StageNest
from ansor.program.roles import Roles


def region_of(
    nest: LoopNest, roles: Roles, name: str, position: Column, enclosing: npt.NDArray[np.bool_]
) -> tuple[list[Column], dict[int, dict[int, Column]]]:
    """Extent of each axis of an attached stage, and its steps along the host's loops."""
    population = nest.population
    stage = population.sketch.dag.stages[name]
    region = [axis_extent(population, stage, axis) for axis in range(len(stage.axes))]
    steps: dict[int, dict[int, Column]] = {}
    num_host = len(enclosing)
    for dim, axis in roles.dims_of(name).items():
        spans = [
            (*_span(nest.stages[other], access.indices[dim], enclosing), access.reach(dim) - 1)
            for other, access in roles.neighbours(name)
        ]
        low = np.minimum.reduce([first for first, _, _ in spans])
        high = np.maximum.reduce([last + further for _, last, further in spans])
        other, access = roles.neighbours(name)[0]
        along = nest.stages[other].coefficients(access.indices[dim])
        moves = {k: c * enclosing[k] for k, c in along.items() if k < num_host}
        whole = _covers(nest.stages[other], moves, low, high, region[axis]) | (position == 0)
        region[axis] = np.where(whole, region[axis], high - low + 1).astype(np.int32)
        steps[axis] = {k: move * ~whole for k, move in moves.items()}
    return region, steps


def _covers(
    nest: StageNest, moves: dict[int, Column], low: Column, high: Column, extent: Column
) -> npt.NDArray[np.bool_]:
    """`[P]`: whether ``low .. high`` contains a whole axis for all iterations of the enclosing
    loops.

    Otherwise TVM computes all of ``low .. high``, and skips what lies outside the axis.
    """
    reaches = [step * (nest.extents[loop] - 1) for loop, step in moves.items()]
    last_low = low + sum(np.maximum(reach, 0) for reach in reaches)
    first_high = high + sum(np.minimum(reach, 0) for reach in reaches)
    covers: npt.NDArray[np.bool_] = (last_low <= 0) & (first_high >= extent - 1)
    return covers


def _span(
    nest: StageNest, index: Index | None, enclosing: npt.NDArray[np.bool_]
) -> tuple[Column, Column]:
    """Least and greatest value of an index over the loops inside the point of attachment."""
    terms = index.terms if index is not None else ()
    affine = Index(tuple((atom, factor) for atom, factor in terms if isinstance(atom, int)))
    low = np.full(nest.extents.shape[1], index.const if index is not None else 0, dtype=np.int32)
    high = low.copy()
    for loop, step in nest.coefficients(affine).items():
        reach = step * (nest.extents[loop] - 1)
        if loop < len(enclosing):
            reach = np.where(enclosing[loop], 0, reach)
        low += np.minimum(reach, 0)
        high += np.maximum(reach, 0)
    for atom, factor in terms:
        if isinstance(atom, Quotient):
            ends = [factor * (v // atom.divisor) for v in _span(nest, atom.index, enclosing)]
            low += np.minimum(*ends)
            high += np.maximum(*ends)
    return low, high
