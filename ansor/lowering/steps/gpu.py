"""Blocks, threads and shared memory of a GPU, and pipelines of copies."""

from __future__ import annotations

import math

from ansor.lowering.passes.thread_binding import BLOCK, THREAD, VIRTUAL
from ansor.lowering.replay import Replay
from ansor.lowering.steps.apply import apply
from ansor.lowering.steps.gpu_loops import (
    attached,
    attached_consumer,
    bind_levels,
    bound,
    dealt_out,
    shared_out,
)
from ansor.lowering.steps.tiling import split_attached
from ansor.program.loop_structure import enclosing_loops, num_leading, row_alignment, structure_of
from ansor.program.steps import (
    BindLoops,
    BindRows,
    BindTiles,
    ComputePerThread,
    CooperativeFetch,
    CooperativeStore,
    Pipeline,
    ReduceInBlock,
    Store,
)


@apply.register
def store(step: Store, replay: Replay) -> None:
    replay.sch.set_scope(replay.blocks[step.stage], 0, step.scope)


@apply.register
def bind_tiles(step: BindTiles, replay: Replay) -> None:
    bind_levels(replay, step.stage, (BLOCK, VIRTUAL, THREAD))


@apply.register
def cooperative_store(step: CooperativeStore, replay: Replay) -> None:
    own = attached_consumer(replay, step)
    width = replay.values[step.hole][0]
    replay.loops[step.consumer] = shared_out(replay, own, width, step.stage)


@apply.register
def bind_loops(step: BindLoops, replay: Replay) -> None:
    count, loops = num_leading(replay.dag.stages[step.stage]), replay.loops_of(step.stage)
    if count:
        outer = replay.sch.fuse(*loops[:count], preserve_unit_iters=True)
        loops[:count] = [outer] * count
    else:  # a single element, for a single thread
        outer = replay.sch.add_unit_loop(loops[0] if loops else replay.blocks[step.stage])
    replay.dealt[step.stage] = outer, replay.values[step.hole][0]


@apply.register
def bind_rows(step: BindRows, replay: Replay) -> None:
    count, loops = num_leading(replay.dag.stages[step.stage]), replay.loops[step.stage]
    loops[: step.rows] = [bound(replay, loops[: step.rows], BLOCK)] * step.rows
    if count > step.rows:
        fused = replay.sch.fuse(*loops[step.rows : count], preserve_unit_iters=True)
        thread = dealt_out(replay, fused, replay.values[step.hole][0])
        loops[step.rows : count] = [thread] * (count - step.rows)


@apply.register
def cooperative_fetch(step: CooperativeFetch, replay: Replay) -> None:
    own = attached(replay, step)
    (pad,) = replay.values[step.pad]
    if pad and len(own) > 1:
        item_bytes = replay.dag.buffers[replay.dag.stages[step.stage].output].item_bytes
        factor, offset = row_alignment(item_bytes, pad)
        replay.sch.storage_align(replay.blocks[step.stage], 0, -2, factor, offset)
    replay.loops[step.stage] = shared_out(replay, own, replay.values[step.hole][0], step.host)


@apply.register
def reduce_in_block(step: ReduceInBlock, replay: Replay) -> None:
    own, stage = attached(replay, step), replay.dag.stages[step.stage]
    replay.sch.reorder(*(own[axis] for axis in (*stage.spatial, *stage.reduce)))
    fused = replay.sch.fuse(*(own[axis] for axis in stage.reduce), preserve_unit_iters=True)
    thread = dealt_out(replay, fused, replay.roles.threads_per_block(replay.values, step.host))
    replay.loops[step.stage] = [*(own[axis] for axis in stage.spatial), thread]


@apply.register
def compute_per_thread(step: ComputePerThread, replay: Replay) -> None:
    split_attached(replay, step.stage, attached(replay, step))


@apply.register
def pipeline(step: Pipeline, replay: Replay) -> None:
    sch, stage, (ahead,) = replay.sch, replay.dag.stages[step.stage], replay.values[step.hole]
    inside = enclosing_loops(stage, structure_of(replay.roles.shape[step.stage]))
    rounds = replay.loops[step.stage][inside - len(stage.reduce) : inside]
    if not 0 < ahead < math.prod(int(sch.get(loop).extent) for loop in rounds):
        return
    loop = sch.fuse(*rounds, preserve_unit_iters=True)
    fetches = sum(
        isinstance(s, CooperativeFetch) and s.host == step.stage for s in replay.roles.steps
    )
    sch.annotate(loop, "software_pipeline_stage", [0] * fetches + [ahead])
    sch.annotate(loop, "software_pipeline_order", list(range(fetches + 1)))
    if step.asynchronous:
        sch.annotate(loop, "software_pipeline_async_stages", [0])
        replay.asynchronous = True
