"""`LoopNest`: what a sketch means for a whole population at once, in NumPy.

The second interpreter of the steps (the first is `lower`); a property test holds them together.
A stage attached below a loop of its host is described under *all* loops of the host, those that do
not enclose it having extent 1. So one array shape serves every choice of compute location.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ansor.dag.index import Atom, Index, Quotient
from ansor.dag.stage import HoleExtent, Stage
from ansor.program.loops import Loop, divisor_table, lane_table, num_leading, own_loops
from ansor.program.roles import Roles, effective_position
from ansor.program.sketch import Population
from ansor.program.steps import (
    CooperativeFetch,
    CooperativeStore,
    RegisterTile,
    SkipPadding,
    StripMine,
    Transpose,
    Vectorize,
)

Column = npt.NDArray[np.int32]  # [P]


@dataclass(frozen=True, eq=False)
class StageNest:
    """The loops around one stage, outermost first.

    Attributes:
        loops: what each loop iterates; those of the host come first.
        num_host: how many of them belong to the host.
        extents: `[L, P] int32`, 1 where a host loop does not enclose the stage.
        steps: `steps[axis][loop]` is `[P]`: by how much the loop advances the axis; missing is 0.
        position: `[P]`, number of host loops around the stage (0: a nest of its own).
        parallel: `[L, P] bool`; the loops that are fused and run on all cores.
        unrolled: `[L, P] bool`; the loops of the register tile, and of folded axes.
        vector: number of the loop that is vectorised, None for none.
        transposed: `[P] bool`; whether the two innermost loops are a square of vectors that is
            transposed in registers.
        executed: `[P] float32`; share of the iterations that are not left out as padding.
        guarded: `[L, P] bool`; the loops inside which a condition says what is left out.
        prefetch: `[4, P] int32`; least and most elements of a part of a constant that is
            prefetched, and where it is read once the least of a run, and the distance; all 0 for
            none.
        finishes: the stage whose tiles this one finishes as its fused consumer, None for none.
        unroll_most: `[P]`: inner loops are unrolled as well as long as that makes no more
            statements than this.
    """

    stage: Stage
    loops: tuple[Loop, ...]
    num_host: int
    extents: npt.NDArray[np.int32]
    steps: dict[int, dict[int, Column]]
    position: Column
    parallel: npt.NDArray[np.bool_]
    unrolled: npt.NDArray[np.bool_]
    vector: int | None
    unroll_most: Column
    transposed: npt.NDArray[np.bool_]
    executed: npt.NDArray[np.float32]
    guarded: npt.NDArray[np.bool_]
    prefetch: npt.NDArray[np.int32]
    finishes: str | None = None

    @cached_property
    def density(self) -> npt.NDArray[np.float32]:
        """`[P]`: share of the statements of the unrolled block that are left when what constants
        make zero has vanished: known where all of the axes that choose them are unrolled."""
        folded = self.stage.folded
        own = [i for i, loop in enumerate(self.loops) if loop.axis in folded and i >= self.num_host]
        copies = self.extents[own].prod(axis=0, dtype=np.int64)
        whole = copies == math.prod(self.stage.axes[axis].size for axis in folded)
        density: npt.NDArray[np.float32]
        density = np.where(whole, np.float32(self.stage.density), np.float32(1))
        return density

    def coefficients(self, index: Index | None) -> dict[int, Column]:
        """By how much each loop advances an index, `[P]` each; loops with none left out.

        A quotient of an axis (`index.in_blocks`) counts as well: exactly where all iterations of a
        loop advance it or none, and else as if all did or none, whichever is nearer.
        """
        total: dict[int, Column] = {}
        for atom, factor in index.terms if index is not None else ():
            for loop, step in self._advances(atom).items():
                total[loop] = total[loop] + factor * step if loop in total else factor * step
        return total

    def _advances(self, atom: Atom) -> dict[int, Column]:
        """By how much each loop advances an axis, or the quotient of one."""
        if isinstance(atom, int):
            return self.steps.get(atom, {})
        if not isinstance(atom, Quotient) or (axis := atom.of_axis) is None:
            return {}
        divisor = atom.divisor
        return {
            loop: np.where(step * self.extents[loop] > divisor, (step + divisor // 2) // divisor, 0)
            for loop, step in self.steps.get(axis, {}).items()
        }


@dataclass(eq=False)
class LoopNest:
    """The loop nests of all stages of a population: `stages[name]` is a `StageNest`."""

    population: Population
    stages: dict[str, StageNest] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """P, the number of programs."""
        return len(self.population)

    @cached_property
    def signature(self) -> npt.NDArray[np.int32]:
        """`[P, K]`: equal rows are the same program, however their choices spell it."""
        parts = [_stage_signature(nest) for nest in self.stages.values()]
        holes = self.population.sketch.roles.telling_holes
        parts += [self.population.values(hole).T for hole in holes]
        return np.ascontiguousarray(np.concatenate(parts).T)


def _stage_signature(nest: StageNest) -> npt.NDArray[np.int32]:
    """`[K, P]`: what the loops of a stage come to."""
    parallel = nest.parallel[: nest.num_host or None].sum(0, dtype=np.int32)
    rows = np.stack([parallel, nest.executed < 1, nest.position > 0])
    return np.concatenate([nest.extents, rows]).astype(np.int32)


def build_nest(population: Population) -> LoopNest:
    """Interprets the sketch's steps for every program of `population`."""
    roles = population.sketch.roles
    nest = LoopNest(population)
    for name in roles.evaluation_order:
        host = roles.host.get(name)
        made = _root(nest, roles, name) if host is None else _attached(nest, roles, name, host)
        nest.stages[name] = made
    return nest


def _root(nest: LoopNest, roles: Roles, name: str) -> StageNest:
    """A stage with a nest of its own: tiled or strip-mined by its decisions."""
    stage, population = nest.population.sketch.dag.stages[name], nest.population
    loops = own_loops(stage, roles.shape.get(name))
    extents = _root_extents(population, roles, stage, loops)
    parallel = np.zeros(extents.shape, dtype=np.bool_)
    if name in roles.parallel:
        fused = population.values(roles.parallel[name])[:, 0]
        parallel[:] = np.arange(len(loops))[:, None] < fused
    unrolled = np.zeros(extents.shape, dtype=np.bool_)
    unrolled[roles.unrolled(name)] = True
    position = np.zeros(nest.size, dtype=np.int32)
    steps = _own_steps(stage, loops, extents, 0)
    vector = len(loops) - 1 if name in roles.vector and not loops[-1].reduce else None
    hole = roles.unroll.get(name)
    most = population.values(hole)[:, 0] if hole else np.zeros(nest.size, dtype=np.int32)
    inner = unrolled.copy()
    if vector is not None:
        inner[vector] = True
    square = _is_square(roles.vector.get(name), extents)
    skipped = _skipped(population, roles.skipping.get(name), loops, extents, inner)
    return StageNest(
        *(stage, loops, 0, extents, steps, position, parallel, unrolled, vector, most, square),
        *skipped,
        _prefetch(population, roles, name),
    )


def _skipped(
    population: Population,
    step: SkipPadding | None,
    loops: tuple[Loop, ...],
    extents: npt.NDArray[np.int32],
    inner: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """`[P]`, `[L, P]`: share of a root stage's iterations that `SkipPadding` leaves, and the loops
    with a condition inside; `inner` are the loops of the register tile."""
    share = np.ones(len(population), dtype=np.float32)
    guarded = np.zeros(extents.shape, dtype=np.bool_)
    if step is None:
        return share, guarded
    asked = population.values(step.hole)[:, 0] == 1
    numbers = np.arange(len(loops))[:, None]
    for padded in step.padded:
        moving = np.asarray([loop.axis in padded.axes for loop in loops])[:, None] & (extents > 1)
        here = asked & moving.any(axis=0) & ~(moving & inner).any(axis=0)
        innermost = np.where(moving, numbers, -1).max(axis=0)
        guarded |= here & (numbers == innermost)
        share = np.where(here, share * np.float32(padded.share), share)
    return share, guarded


def _prefetch(population: Population, roles: Roles, name: str) -> npt.NDArray[np.int32]:
    """`[4, P]`: see `Prefetch`."""
    step = roles.prefetch.get(name)
    if step is None:
        return np.zeros((4, len(population)), dtype=np.int32)
    sizes = (*step.elements, step.run, step.distance)
    return np.outer(sizes, population.values(step.hole)[:, 0]).astype(np.int32)


def _root_extents(
    population: Population, roles: Roles, stage: Stage, loops: tuple[Loop, ...]
) -> npt.NDArray[np.int32]:
    """`[L, P]`: extents of a root stage's loops."""
    shape = roles.shape.get(stage.name)
    if isinstance(shape, StripMine) and shape.hole is None:
        region = [axis_extent(population, stage, axis) for axis in range(len(stage.axes))]
        return _split_for_vectors(loops, region, roles.vector.get(stage.name))
    return np.stack([_factor(population, roles, stage, loop) for loop in loops])


def _factor(population: Population, roles: Roles, stage: Stage, loop: Loop) -> Column:
    """`[P]`: extent of one loop, read off the tables."""
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


def _attached(nest: LoopNest, roles: Roles, name: str, host: str) -> StageNest:
    """A stage computed at a loop of its host: its region is what its neighbours need there."""
    stage, outer = nest.population.sketch.dag.stages[name], nest.stages[host]
    position, shape = _position(nest, roles, name), roles.shape.get(name)
    enclosing = np.arange(len(outer.loops))[:, None] < position
    if roles.is_common(name):
        enclosing[roles.threads_of(host)] = False
    region, outer_steps = _region(nest, roles, name, position, enclosing)
    loops = own_loops(stage, shape)
    placed = roles.placed.get(name) or roles.fused.get(name)
    if isinstance(shape, RegisterTile):
        own = _split_for_registers(nest.population, loops, region, shape)
    elif isinstance(placed, CooperativeFetch | CooperativeStore):
        own = _split_by(loops, region, nest.population.values(placed.hole)[:, 0])
    else:
        own = _split_for_vectors(loops, region, roles.vector.get(name))
    num_host = len(outer.loops)
    extents = np.concatenate([np.where(enclosing, outer.extents, 1), own])
    steps = _own_steps(stage, loops, own, num_host)
    for axis, by_loop in outer_steps.items():
        steps[axis] = {**by_loop, **steps.get(axis, {})}
    parallel = np.zeros(extents.shape, dtype=np.bool_)
    parallel[:num_host] = outer.parallel & enclosing
    if name in roles.located:
        parallel[num_host : num_host + num_leading(stage)] = position == 0
    vector = len(extents) - 1 if name in roles.vector and not loops[-1].reduce else None
    unrolled = np.zeros(extents.shape, dtype=np.bool_)
    unrolled[[num_host + number for number in roles.unrolled(name)]] = True
    most = np.where(position > 0, outer.unroll_most, 0)
    chain = (*outer.loops, *loops)
    square = _is_square(roles.vector.get(name), extents)
    skipped = _skipped(nest.population, None, chain, extents, unrolled)
    return StageNest(
        *(stage, chain, num_host, extents, steps, position, parallel, unrolled, vector, most),
        *(square, *skipped, _prefetch(nest.population, roles, name)),
        roles.fused[name].stage if name in roles.fused else None,
    )


def _position(nest: LoopNest, roles: Roles, name: str) -> Column:
    """`[P]`: number of host loops around an attached stage, after all constraints."""
    fixed = roles.fixed_position(name)
    if fixed is not None:
        outside = nest.stages[roles.host[name]].num_host
        return np.full(nest.size, outside + fixed, dtype=np.int32)
    step = roles.located[name]
    chosen = nest.population.values(step.hole)[:, 0]
    hole = roles.parallel.get(step.host)
    fused = nest.population.values(hole)[:, 0] if hole else np.zeros_like(chosen)
    readers = [reader for reader, _ in roles.readers(name) if reader != step.host]
    return effective_position(chosen, fused, [nest.stages[reader].position for reader in readers])


def _is_square(step: Vectorize | None, extents: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """`[P]`: see `Transpose`."""
    if not isinstance(step, Transpose):
        return np.zeros(extents.shape[1], dtype=np.bool_)
    square: npt.NDArray[np.bool_] = (extents[-2:] == step.lanes).all(axis=0)
    return square


def _region(
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
            _span(nest.stages[other], access.indices[dim], enclosing)
            for other, access in roles.neighbours(name)
        ]
        low = np.minimum.reduce([span[0] for span in spans])
        high = np.maximum.reduce([span[1] for span in spans])
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
    """`[P]`: whether ``low .. high`` holds a whole axis wherever the enclosing loops move it.

    Elsewhere TVM computes all of ``low .. high``, and skips what lies outside the axis.
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
    """`[own, P]`: extents of the loops of what is fetched, the last one as long as vectors are."""
    rows = [region[loop.axis] for loop in loops]
    if loops[-1].part == 1:
        last = next(i for i, loop in enumerate(loops) if loop.axis == loops[-1].axis)
        rows[-1] = np.gcd(rows[last], most)
        rows[last] = rows[last] // rows[-1]
    return np.stack(rows).astype(np.int32)


def _split_for_registers(
    population: Population, loops: tuple[Loop, ...], region: list[Column], shape: RegisterTile
) -> npt.NDArray[np.int32]:
    """`[own, P]`: extents of a register tile's loops, as large as its decisions allow."""
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


def _own_steps(
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
