"""Builds the loop nests of a population from the steps of its sketch."""

from __future__ import annotations

import numpy as np

from ansor.program.loop_structure import num_leading, own_loops
from ansor.program.nest.annotations import prefetched, shuffles, skipped
from ansor.program.nest.extents import attached_extents, own_steps, root_extents
from ansor.program.nest.loop_nest import LoopNest
from ansor.program.nest.region import region_of
from ansor.program.nest.stage_nest import Column, StageNest
from ansor.program.roles import Roles, effective_position
from ansor.program.sketch import Population
from ansor.program.steps import DotTile


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
    """A stage with a separate nest: tiled or strip-mined by its decisions."""
    stage, population = nest.population.sketch.dag.stages[name], nest.population
    loops = own_loops(stage, roles.shape.get(name))
    extents = root_extents(population, roles, stage, loops)
    parallel = np.zeros(extents.shape, dtype=np.bool_)
    if name in roles.parallel:
        fused = population.values(roles.parallel[name])[:, 0]
        parallel[:] = np.arange(len(loops))[:, None] < fused
    unrolled = np.zeros(extents.shape, dtype=np.bool_)
    unrolled[roles.unrolled(name)] = True
    position = np.zeros(nest.size, dtype=np.int32)
    steps = own_steps(stage, loops, extents, 0)
    vector = len(loops) - 1 if name in roles.vector and not loops[-1].reduce else None
    hole = roles.unroll.get(name)
    most = population.values(hole)[:, 0] if hole else np.zeros(nest.size, dtype=np.int32)
    tile = roles.shape.get(name)
    inner = unrolled.copy()
    if vector is not None:
        inner[vector] = True
    rearranged = shuffles(roles.vector.get(name), extents)
    executed, guarded = skipped(population, roles.skipping.get(name), loops, extents, inner)
    return StageNest(
        stage=stage,
        loops=loops,
        num_host=0,
        extents=extents,
        steps=steps,
        position=position,
        parallel=parallel,
        unrolled=unrolled,
        vector=vector,
        unroll_most=most,
        shuffles=rearranged,
        executed=executed,
        guarded=guarded,
        prefetch=prefetched(population, roles, name),
        tile_instruction=tile.instruction if isinstance(tile, DotTile) else "",
        tile_depth=len(tile.matrix) if isinstance(tile, DotTile) else 0,
    )


def _attached(nest: LoopNest, roles: Roles, name: str, host: str) -> StageNest:
    """A stage computed at a loop of its host: its region is what its neighbours need there."""
    stage, outer = nest.population.sketch.dag.stages[name], nest.stages[host]
    position, shape = _position(nest, roles, name), roles.shape.get(name)
    enclosing = np.arange(len(outer.loops))[:, None] < position
    if roles.is_common(name):
        enclosing[roles.threads_of(host)] = False
    region, outer_steps = region_of(nest, roles, name, position, enclosing)
    loops = own_loops(stage, shape)
    own = attached_extents(nest.population, roles, name, loops, region)
    num_host = len(outer.loops)
    extents = np.concatenate([np.where(enclosing, outer.extents, 1), own])
    steps = own_steps(stage, loops, own, num_host)
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
    rearranged = shuffles(roles.vector.get(name), extents)
    executed, guarded = skipped(nest.population, None, chain, extents, unrolled)
    return StageNest(
        stage=stage,
        loops=chain,
        num_host=num_host,
        extents=extents,
        steps=steps,
        position=position,
        parallel=parallel,
        unrolled=unrolled,
        vector=vector,
        unroll_most=most,
        shuffles=rearranged,
        executed=executed,
        guarded=guarded,
        prefetch=prefetched(nest.population, roles, name),
        finishes=roles.fused[name].stage if name in roles.fused else None,
        prefetched_tile_bytes=_prefetched_tile_bytes(roles, name),
    )


def _prefetched_tile_bytes(roles: Roles, name: str) -> int:
    step = roles.consumer_prefetches.get(name)
    return 0 if step is None else step.tile_bytes


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
