"""What `lower` does with the steps of GPU programs."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from tvm import tirx

from ansor.dag.contraction import as_product, operand_groups, operand_names
from ansor.dag.stage import Stage
from ansor.errors import LoweringError
from ansor.program.loops import enclosing_loops, num_leading, row_alignment, structure_of
from ansor.program.roles import FRAGMENT, WARP
from ansor.program.steps import (
    AsProduct,
    BindLoops,
    BindRows,
    BindTiles,
    BindWarps,
    ComputePerThread,
    CooperativeFetch,
    CooperativeStore,
    FuseConsumer,
    LoadFragment,
    Pipeline,
    Placed,
    ReduceInBlock,
    Step,
    Store,
    StoreFragment,
    Tensorize,
    TensorTile,
)
from ansor.program.tensor_intrinsics import wmma_names
from ansor.program.threads import BLOCK, THREAD, VIRTUAL, WARPS

if TYPE_CHECKING:
    from ansor.program.lower import Replay


@singledispatch
def replay_for_gpu(step: Step, replay: Replay) -> None:
    """Replays one step."""
    raise LoweringError(f"no interpretation of {step}")


@replay_for_gpu.register(AsProduct)
def _(step: AsProduct, replay: Replay) -> None:
    sch, stage, found = replay.sch, replay.dag.stages[step.stage], step.contraction
    block, consumer = replay.blocks[step.stage], replay.blocks[step.consumer]
    dtype = str(sch.get(block).iter_vars[0].var.ty.dtype)
    operands = []
    for groups, number in zip(operand_groups(stage, found), found.ordered((0, 1)), strict=True):
        operand = sch.reindex(block, ("read", number))
        layout = _grouping(stage, _read_axes(sch.get(block), number), groups, dtype)
        sch.transform_layout(block, ("read", number), layout)
        sch.transform_block_layout(operand, layout)
        operands.append(operand)
    result, written = sch.reindex(block, ("write", 0)), found.groups[:-1]
    layout = _grouping(stage, list(stage.spatial), written, dtype)
    sch.transform_layout(block, ("write", 0), layout)
    axes = list(range(len(stage.axes)))
    sch.transform_block_layout(block, _grouping(stage, axes, found.groups, dtype))
    operands = _padded(sch, block, operands, result, [1] * len(found.stack) + [step.multiple] * 3)
    sch.compute_inline(result)
    dims = [axis for axis in stage.writes[0].axes if axis is not None]
    sch.transform_block_layout(consumer, _grouping(stage, dims, written, dtype))
    for name, operand in zip(operand_names(step.stage), operands, strict=True):
        replay.blocks[name] = operand
        replay.buffers[name] = sch.get(operand).writes[0].source
    replay.dag = as_product(replay.dag, step.stage, step.consumer, found, step.multiple)


def _padded(
    sch: Any, block: Any, operands: list[Any], result: Any, multiples: list[int]
) -> list[Any]:
    """Pads a product of matrices between its operands and its result; the operands' blocks, which
    make the padding too."""
    extents = [int(variable.dom.extent) for variable in sch.get(block).iter_vars]
    if not any(size % multiple for size, multiple in zip(extents, multiples, strict=True)):
        return operands
    sch.pad_einsum(block, multiples)
    padded = []
    for operand in operands:
        (reader,) = sch.get_consumers(operand)
        if not _is_same(sch, reader, block):
            sch.compute_inline(operand)
            operand = reader
        padded.append(operand)
    (reader,) = sch.get_consumers(block)
    if not _is_same(sch, reader, result):
        sch.compute_inline(reader)
    return padded


def _is_same(sch: Any, left: Any, right: Any) -> bool:
    return bool(sch.get(left).same_as(sch.get(right)))


def _read_axes(block: Any, number: int) -> list[int]:
    """The axes that number the dimensions of a reindexed operand; some of one point are gone."""
    axes = {variable.var: axis for axis, variable in enumerate(block.iter_vars)}
    return [axes[dim.min] for dim in block.reads[number].region]


def _grouping(
    stage: Stage, axes: list[int], groups: tuple[tuple[int, ...], ...], dtype: str
) -> tirx.IndexMap:
    """Indices along `axes` as indices along groups of them."""

    def grouped(*index: Any) -> list[Any]:
        at = dict(zip(axes, index, strict=True))
        return [_counted(stage, group, at) for group in groups]

    return tirx.IndexMap.from_func(grouped, ndim=len(axes), index_dtype=dtype)


def _counted(stage: Stage, group: tuple[int, ...], at: dict[int, Any]) -> Any:
    """Where in its group an element is."""
    total: Any = 0
    for axis in group:
        total = total * stage.axes[axis].size + at.get(axis, 0)
    return total


@replay_for_gpu.register(Store)
def _(step: Store, replay: Replay) -> None:
    replay.sch.set_scope(replay.blocks[step.stage], 0, step.scope)


@replay_for_gpu.register(BindTiles)
def _(step: BindTiles, replay: Replay) -> None:
    _bind_levels(replay, step.stage, (BLOCK, VIRTUAL, THREAD))


@replay_for_gpu.register(BindWarps)
def _(step: BindWarps, replay: Replay) -> None:
    _bind_levels(replay, step.stage, (BLOCK, WARPS))


def _bind_levels(replay: Replay, name: str, threads: tuple[str, ...]) -> None:
    """Fuses the outermost levels of a tiled stage's spatial loops and binds them."""
    count, loops = num_leading(replay.dag.stages[name]), replay.loops[name]
    for level, thread in enumerate(threads):
        own = slice(level * count, (level + 1) * count)
        loops[own] = [_bound(replay, loops[own], thread)] * count


@replay_for_gpu.register(TensorTile)
def _(step: TensorTile, replay: Replay) -> None:
    replay.split_root(step.stage, step)
    first = replay.loops[step.stage][-len(step.matrix)]
    replay.instructions[step.stage] = replay.blocks[step.stage]
    replay.blocks[step.stage] = replay.sch.blockize(first)


@replay_for_gpu.register(CooperativeStore)
def _(step: CooperativeStore, replay: Replay) -> None:
    own = _fused(replay, step)
    width = replay.values[step.hole][0]
    replay.loops[step.consumer] = _shared_out(replay, own, width, step.stage)


@replay_for_gpu.register(StoreFragment)
def _(step: StoreFragment, replay: Replay) -> None:
    replay.loops[step.consumer] = _fused(replay, step)


@replay_for_gpu.register(LoadFragment)
def _(step: LoadFragment, replay: Replay) -> None:
    replay.loops[step.stage] = _attached(replay, step)


@replay_for_gpu.register(Tensorize)
def _(step: Tensorize, replay: Replay) -> None:
    sch, dag = replay.sch, replay.dag
    operand = dag.buffers[dag.stages[step.loads[0]].output].dtype
    names = wmma_names(operand, step.transposed, step.swapped)
    for name, role in zip((*step.loads, step.store), ("load_a", "load_b", "store"), strict=True):
        sch.tensorize(_tile_of(replay, replay.loops[name]), names[role])
    first = enclosing_loops(dag.stages[step.stage], structure_of(replay.roles.shape[step.stage]))
    loop = replay.loops[step.stage][first - len(dag.stages[step.stage].reduce)]
    initial = sch.decompose_reduction(replay.blocks[step.stage], loop)
    (inner,) = sch.get_child_blocks(initial)
    sch.tensorize(sch.get_loops(inner)[-2], names["init"])
    sch.tensorize(sch.get_loops(replay.instructions[step.stage])[-3], names["compute"])


@replay_for_gpu.register(Pipeline)
def _(step: Pipeline, replay: Replay) -> None:
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


def _tile_of(replay: Replay, loops: list[Any]) -> Any:
    """The outer loop of an instruction's tile of a copy, split off its last two loops and put
    innermost."""
    (rows, row), (columns, column) = (replay.sch.split(x, [None, FRAGMENT]) for x in loops[-2:])
    replay.sch.reorder(rows, columns, row, column)
    return row


@replay_for_gpu.register(BindLoops)
def _(step: BindLoops, replay: Replay) -> None:
    count, loops = num_leading(replay.dag.stages[step.stage]), replay.loops_of(step.stage)
    if count:
        outer = replay.sch.fuse(*loops[:count], preserve_unit_iters=True)
        loops[:count] = [outer] * count
    else:  # a single element, for a single thread
        outer = replay.sch.add_unit_loop(loops[0] if loops else replay.blocks[step.stage])
    replay.dealt[step.stage] = outer, replay.values[step.hole][0]


@replay_for_gpu.register(BindRows)
def _(step: BindRows, replay: Replay) -> None:
    count, loops = num_leading(replay.dag.stages[step.stage]), replay.loops[step.stage]
    loops[: step.rows] = [_bound(replay, loops[: step.rows], BLOCK)] * step.rows
    if count > step.rows:
        fused = replay.sch.fuse(*loops[step.rows : count], preserve_unit_iters=True)
        thread = _dealt_out(replay, fused, replay.values[step.hole][0])
        loops[step.rows : count] = [thread] * (count - step.rows)


@replay_for_gpu.register(CooperativeFetch)
def _(step: CooperativeFetch, replay: Replay) -> None:
    own = _attached(replay, step)
    (pad,) = replay.values[step.pad]
    if pad and len(own) > 1:
        item_bytes = replay.dag.buffers[replay.dag.stages[step.stage].output].item_bytes
        factor, offset = row_alignment(item_bytes, pad)
        replay.sch.storage_align(replay.blocks[step.stage], 0, -2, factor, offset)
    replay.loops[step.stage] = _shared_out(replay, own, replay.values[step.hole][0], step.host)


@replay_for_gpu.register(ReduceInBlock)
def _(step: ReduceInBlock, replay: Replay) -> None:
    own, stage = _attached(replay, step), replay.dag.stages[step.stage]
    replay.sch.reorder(*(own[axis] for axis in (*stage.spatial, *stage.reduce)))
    fused = replay.sch.fuse(*(own[axis] for axis in stage.reduce), preserve_unit_iters=True)
    thread = _dealt_out(replay, fused, replay.roles.threads_per_block(replay.values, step.host))
    replay.loops[step.stage] = [*(own[axis] for axis in stage.spatial), thread]


@replay_for_gpu.register(ComputePerThread)
def _(step: ComputePerThread, replay: Replay) -> None:
    replay.split_attached(step.stage, _attached(replay, step))


def _bound(replay: Replay, loops: list[Any], thread: str) -> Any:
    """The loops as one, bound to a thread index."""
    fused = replay.sch.fuse(*loops, preserve_unit_iters=True)
    replay.sch.bind(fused, thread)
    return fused


def _shared_out(replay: Replay, own: list[Any], most: int, host: str) -> list[Any]:
    """The loops of a stage fused and dealt out to the threads of its host's blocks, in vectors of
    up to `most` elements."""
    sch, count = replay.sch, replay.roles.threads_per_block(replay.values, host)
    width = math.gcd(int(sch.get(own[-1]).extent), most)
    fused = sch.fuse(*own, preserve_unit_iters=True)
    outer, vector = sch.split(fused, [None, width], preserve_unit_iters=True)
    if isinstance(replay.roles.bound[host], BindWarps):
        _, warp, thread = sch.split(outer, [None, count // WARP, WARP], preserve_unit_iters=True)
        sch.bind(warp, WARPS)
        sch.bind(thread, THREAD)
    else:
        thread = _dealt_out(replay, outer, count)
    if width > 1:
        sch.vectorize(vector)
    return [thread] * len(own) + [vector]


def _dealt_out(replay: Replay, loop: Any, threads: int) -> Any:
    """The inner part of a loop whose iterations the threads of a block share."""
    _, inner = replay.sch.split(loop, [None, threads], preserve_unit_iters=True)
    replay.sch.bind(inner, THREAD)
    return inner


def _fused(replay: Replay, step: FuseConsumer) -> list[Any]:
    """Attaches a consumer inside its tiled producer; returns its own loops."""
    position = replay.roles.position_of(replay.values, step.consumer)
    loop = replay.loops[step.stage][position - 1]
    replay.sch.reverse_compute_at(replay.blocks[step.consumer], loop, preserve_unit_loops=True)
    return _own_loops(replay, step.consumer)


def _attached(replay: Replay, step: Placed) -> list[Any]:
    """Attaches a stage inside its host; returns its own loops, those of one iteration too."""
    sch, name, roles = replay.sch, step.stage, replay.roles
    if name in roles.scope:  # first, as it decides on what is computed there
        sch.set_scope(replay.blocks[name], 0, roles.scope[name])
    loop = replay.loops[step.host][roles.position_of(replay.values, name) - 1]
    sch.compute_at(replay.blocks[name], loop, preserve_unit_loops=True)
    return _own_loops(replay, name)


def _own_loops(replay: Replay, name: str) -> list[Any]:
    """The loops that attaching has made, in the order of the stage's axes."""
    axes = range(len(replay.dag.stages[name].axes))
    loops = replay.sch.get_loops(replay.blocks[name])[-len(axes) :]
    order = replay.variables.get(name, list(axes))
    return [loops[order.index(axis)] for axis in axes]
