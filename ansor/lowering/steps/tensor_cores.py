"""Products of matrices on the tensor cores of a GPU."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ansor.dag import contraction
from ansor.dag.contraction import operand_groups, operand_names
from ansor.dag.stage import Stage
from ansor.lowering.passes.thread_binding import BLOCK, WARPS
from ansor.lowering.replay import Replay
from ansor.lowering.steps.apply import apply
from ansor.lowering.steps.gpu_loops import (
    attached,
    attached_consumer,
    bind_levels,
)
from ansor.lowering.steps.tiling import split_root
from ansor.lowering.tensor_intrinsics import wmma_names
from ansor.program.loop_structure import enclosing_loops, structure_of
from ansor.program.roles import FRAGMENT
from ansor.program.steps import (
    AsProduct,
    BindWarps,
    LoadFragment,
    StoreFragment,
    Tensorize,
    TensorTile,
)


@apply.register
def bind_warps(step: BindWarps, replay: Replay) -> None:
    bind_levels(replay, step.stage, (BLOCK, WARPS))


@apply.register
def as_product(step: AsProduct, replay: Replay) -> None:
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
    replay.dag = contraction.as_product(replay.dag, step.stage, step.consumer, found, step.multiple)


def _padded(
    sch: Any, block: Any, operands: list[Any], result: Any, multiples: list[int]
) -> list[Any]:
    """Pads a product of matrices between its operands and its result. Returns the operands' blocks,
    which also write the padding."""
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
    """The axes of the dimensions of a reindexed operand; some axes of one point are removed."""
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
    """The position of an element in its group."""
    total: Any = 0
    for axis in group:
        total = total * stage.axes[axis].size + at.get(axis, 0)
    return total


@apply.register
def tensor_tile(step: TensorTile, replay: Replay) -> None:
    split_root(replay, step.stage, step)
    first = replay.loops[step.stage][-len(step.matrix)]
    replay.instructions[step.stage] = replay.blocks[step.stage]
    replay.blocks[step.stage] = replay.sch.blockize(first)


@apply.register
def store_fragment(step: StoreFragment, replay: Replay) -> None:
    replay.loops[step.consumer] = attached_consumer(replay, step)


@apply.register
def load_fragment(step: LoadFragment, replay: Replay) -> None:
    replay.loops[step.stage] = attached(replay, step)


@apply.register
def tensorize(step: Tensorize, replay: Replay) -> None:
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


def _tile_of(replay: Replay, loops: list[Any]) -> Any:
    """The outer loop of an instruction's tile of a copy, split off its last two loops and put
    innermost."""
    (rows, row), (columns, column) = (replay.sch.split(x, [None, FRAGMENT]) for x in loops[-2:])
    replay.sch.reorder(rows, columns, row, column)
    return row
