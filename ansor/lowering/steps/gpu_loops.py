"""Loops that are fused, bound to blocks and threads, or distributed over threads."""

from __future__ import annotations

import math
from typing import Any

from ansor.lowering.passes.thread_binding import THREAD, WARPS
from ansor.lowering.replay import Replay
from ansor.program.loop_structure import num_leading
from ansor.program.roles import WARP
from ansor.program.steps import (
    BindWarps,
    FuseConsumer,
    Placed,
)


def bind_levels(replay: Replay, name: str, threads: tuple[str, ...]) -> None:
    """Fuses the outermost levels of a tiled stage's spatial loops and binds them."""
    count, loops = num_leading(replay.dag.stages[name]), replay.loops[name]
    for level, thread in enumerate(threads):
        own = slice(level * count, (level + 1) * count)
        loops[own] = [bound(replay, loops[own], thread)] * count


def bound(replay: Replay, loops: list[Any], thread: str) -> Any:
    """The loops as one, bound to a thread index."""
    fused = replay.sch.fuse(*loops, preserve_unit_iters=True)
    replay.sch.bind(fused, thread)
    return fused


def shared_out(replay: Replay, own: list[Any], most: int, host: str) -> list[Any]:
    """The loops of a stage, fused and distributed over the threads of its host's blocks, in vectors
    of up to `most` elements."""
    sch, count = replay.sch, replay.roles.threads_per_block(replay.values, host)
    width = math.gcd(int(sch.get(own[-1]).extent), most)
    fused = sch.fuse(*own, preserve_unit_iters=True)
    outer, vector = sch.split(fused, [None, width], preserve_unit_iters=True)
    if isinstance(replay.roles.bound[host], BindWarps):
        _, warp, thread = sch.split(outer, [None, count // WARP, WARP], preserve_unit_iters=True)
        sch.bind(warp, WARPS)
        sch.bind(thread, THREAD)
    else:
        thread = dealt_out(replay, outer, count)
    if width > 1:
        sch.vectorize(vector)
    return [thread] * len(own) + [vector]


def dealt_out(replay: Replay, loop: Any, threads: int) -> Any:
    """The inner part of a loop whose iterations the threads of a block share."""
    _, inner = replay.sch.split(loop, [None, threads], preserve_unit_iters=True)
    replay.sch.bind(inner, THREAD)
    return inner


def attached_consumer(replay: Replay, step: FuseConsumer) -> list[Any]:
    """Attaches a consumer inside its tiled producer; returns its own loops."""
    position = replay.roles.position_of(replay.values, step.consumer)
    loop = replay.loops[step.stage][position - 1]
    replay.sch.reverse_compute_at(replay.blocks[step.consumer], loop, preserve_unit_loops=True)
    return own_loops_of(replay, step.consumer)


def attached(replay: Replay, step: Placed) -> list[Any]:
    """Attaches a stage inside its host; returns its own loops, also those of one iteration."""
    sch, name, roles = replay.sch, step.stage, replay.roles
    if name in roles.scope:  # first, because the scope determines the computed region
        sch.set_scope(replay.blocks[name], 0, roles.scope[name])
    loop = replay.loops[step.host][roles.position_of(replay.values, name) - 1]
    sch.compute_at(replay.blocks[name], loop, preserve_unit_loops=True)
    return own_loops_of(replay, name)


def own_loops_of(replay: Replay, name: str) -> list[Any]:
    """The loops that attaching has made, in the order of the stage's axes."""
    axes = range(len(replay.dag.stages[name].axes))
    loops = replay.sch.get_loops(replay.blocks[name])[-len(axes) :]
    order = replay.variables.get(name, list(axes))
    return [loops[order.index(axis)] for axis in axes]
