"""Steps that change the graph of stages: the schedule's blocks change, and the graph with them."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ansor.dag import edit
from ansor.dag.stage import Stage
from ansor.lowering.replay import Replay
from ansor.lowering.steps.apply import apply
from ansor.program.layout import layout_of
from ansor.program.steps import (
    CacheRead,
    CacheWrite,
    Inline,
    LayoutRewrite,
    MoveAxis,
    RFactor,
    SplitAxis,
)


@apply.register
def inline(step: Inline, replay: Replay) -> None:
    replay.sch.compute_inline(replay.blocks.pop(step.stage))
    replay.dag = edit.inline(replay.dag, step.stage)


@apply.register
def cache_write(step: CacheWrite, replay: Replay) -> None:
    cached = replay.sch.cache_write(replay.blocks[step.stage], 0, "global")
    replay.blocks[step.copy] = cached
    replay.dag = edit.cache_write(replay.dag, step.stage, step.copy)


@apply.register
def cache_read(step: CacheRead, replay: Replay) -> None:
    block, source = replay.blocks[step.stage], replay.buffers[step.buffer]
    reads = [region.source.same_as(source) for region in replay.sch.get(block).reads]
    copy = replay.sch.cache_read(block, reads.index(True), "global")
    if step.order:
        order = _permutation(step.order)
        replay.sch.transform_layout(copy, ("write", 0), order)
        replay.sch.transform_block_layout(copy, order)
    replay.blocks[step.copy] = copy
    replay.buffers[step.copy] = replay.sch.get(copy).writes[0].source
    replay.dag = edit.cache_read(replay.dag, step.stage, step.buffer, step.copy, step.order)


@apply.register
def layout_rewrite(step: LayoutRewrite, replay: Replay) -> None:
    layout = layout_of(step, replay.values)
    if layout is not None:
        replay.pack(step.stage, step.buffer, layout)


@apply.register
def split_axis(step: SplitAxis, replay: Replay) -> None:
    stage = replay.dag.stages[step.stage]
    variable = replay.sch.get(replay.blocks[step.stage]).iter_vars[step.axis].var
    dtype = str(variable.ty.dtype)
    loops = _split_index(step.axis, step.factor, len(stage.axes), dtype)
    replay.sch.transform_block_layout(replay.blocks[step.stage], loops)
    if step.consumer:  # last, since only the change of a buffer simplifies indices
        between = stage.writes[0].axes
        own, rank = between.index(step.axis), len(between)
        layout = _split_index(own, step.factor, rank, dtype)
        replay.sch.transform_block_layout(replay.blocks[step.consumer], layout)
        replay.sch.transform_layout(replay.blocks[step.stage], ("write", 0), layout)
    replay.dag = edit.split_axis(replay.dag, step.stage, step.axis, step.factor, step.consumer)


@apply.register
def move_axis(step: MoveAxis, replay: Replay) -> None:
    stage = replay.dag.stages[step.stage]
    between = stage.writes[0].axes
    order = edit.moved_last(step.axis, stage.spatial[-1], len(stage.axes))
    dims = edit.moved_last(between.index(step.axis), len(between) - 1, len(between))
    replay.sch.transform_block_layout(replay.blocks[step.stage], _permutation(order))
    replay.sch.transform_block_layout(replay.blocks[step.consumer], _permutation(dims))
    replay.sch.transform_layout(replay.blocks[step.stage], ("write", 0), _permutation(dims))
    replay.dag = edit.move_axis(replay.dag, step.stage, step.axis, step.consumer)


@apply.register
def rfactor(step: RFactor, replay: Replay) -> None:
    stage = replay.dag.stages[step.stage]
    loops = replay.sch.get_loops(replay.blocks[step.stage])
    parts = replay.sch.split(loops[step.axis], replay.values[step.hole], preserve_unit_iters=True)
    place = len(stage.spatial) if step.inner else 0
    factored = parts[1] if step.inner else parts[0]
    replay.blocks[step.partial] = replay.sch.rfactor(factored, place)
    replay.dag = edit.rfactor(
        replay.dag, step.stage, step.axis, step.hole, step.partial, step.inner
    )
    _order_partial(step, stage, replay)
    _order_variables(step, stage, replay)


def _order_variables(step: RFactor, stage: Stage, replay: Replay) -> None:
    """Notes the axes of both blocks' variables: TVM puts the factored one first."""
    before = replay.variables.get(step.stage, list(range(len(stage.axes))))
    order = [*stage.spatial, *stage.reduce]
    new = len(stage.spatial) if step.inner else 0
    where = {axis: i + (i >= new) for i, axis in enumerate(order)}
    replay.variables[step.partial] = [new, *(where[axis] for axis in before)]
    kept = [stage.spatial.index(axis) for axis in before if axis in stage.spatial]
    replay.variables[step.stage] = [len(kept), *kept]


def _order_partial(step: RFactor, stage: Stage, replay: Replay) -> None:
    """Puts the loops of the partial stage in the order of its axes in the DAG."""
    loops = replay.sch.get_loops(replay.blocks[step.partial])
    handles = {a: loops[a + (a > step.axis)] for a in range(len(stage.axes))}
    split = (loops[step.axis], loops[step.axis + 1])
    new, handles[step.axis] = (split[1], split[0]) if step.inner else split
    order = [handles[a] for a in (*stage.spatial, *stage.reduce)]
    order.insert(len(stage.spatial) if step.inner else 0, new)
    replay.sch.reorder(*order)


def _permutation(order: tuple[int, ...]) -> tirx.IndexMap:
    return tirx.IndexMap.from_func(lambda *index: [index[d] for d in order], ndim=len(order))


def _split_index(position: int, factor: int, rank: int, dtype: str) -> tirx.IndexMap:
    """One of `rank` indices of type `dtype` becomes two: its quotient and its remainder."""

    def parts(*index: Any) -> list[Any]:
        split = index[position]
        return [*index[:position], split // factor, split % factor, *index[position + 1 :]]

    return tirx.IndexMap.from_func(parts, ndim=rank, index_dtype=dtype)
