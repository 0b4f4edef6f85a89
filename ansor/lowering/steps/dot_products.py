"""Steps of instructions that add up groups of products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx

from ansor.dag.dot_products import (
    as_dot_products,
    copy_axes,
    grouped_copy,
    is_narrow_operand,
)
from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import axes_of_access
from ansor.errors import LoweringError
from ansor.lowering.passes.dot_products import Grouping, group_products, read_whole_groups
from ansor.lowering.replay import Replay
from ansor.lowering.steps.apply import apply
from ansor.program.dot_instructions import instruction_named
from ansor.program.steps import DotProducts, GroupedCacheRead


@apply.register
def dot_products(step: DotProducts, replay: Replay) -> None:
    stage, hint = replay.dag.stages[step.stage], replay.hint(step.stage)
    _check_range(step, replay.dag)
    moved = [stage.spatial[-1] in axes_of_access(read) for read in stage.reads]
    grouping = Grouping(hint, step.axis, step.elements, step.instruction, moved.index(True))
    replay.restart(group_products(replay.sch.mod["main"], grouping))
    replay.dag = as_dot_products(replay.dag, step.stage, step.axis, step.elements, step.instruction)
    replay.has_dot_products = True


def _check_range(step: DotProducts, dag: ComputeDAG) -> None:
    """Refuses an instruction that may saturate, in case a program is of another task."""
    instruction = instruction_named(step.instruction)
    if instruction.narrow and not is_narrow_operand(dag, step.stage, instruction.operands[1]):
        raise LoweringError(f"{step.instruction} is not exact for the operands of {step.stage}")


@apply.register
def grouped_cache_read(step: GroupedCacheRead, replay: Replay) -> None:
    block, source = replay.blocks[step.stage], replay.buffers[step.buffer]
    reads = [region.source.same_as(source) for region in replay.sch.get(block).reads]
    copy = replay.sch.cache_read(block, reads.index(True), "global")

    def grouped(*index: Any) -> list[Any]:
        quotients = [i // step.elements if d == step.dim else i for d, i in enumerate(index)]
        return [*(quotients[d] for d in step.order), index[step.dim] % step.elements]

    dtype = str(replay.sch.get(copy).iter_vars[0].var.ty.dtype)

    def index_map(index: Callable[..., list[Any]]) -> Any:
        return tirx.IndexMap.from_func(index, ndim=len(step.order), index_dtype=dtype)

    loops = copy_axes(step.order)
    replay.sch.transform_block_layout(
        copy, index_map(lambda *index: [grouped(*index)[d] for d in loops])
    )
    replay.sch.transform_layout(copy, ("write", 0), index_map(grouped))
    replay.blocks[step.copy] = copy
    made = replay.sch.get(copy).writes[0].source
    replay.buffers[step.copy] = made
    func = replay.sch.mod["main"]
    replay.restart(read_whole_groups(func, replay.hint(step.stage), made, step.elements))
    replay.dag = grouped_copy(replay.dag, step.stage, step.buffer, step.copy, step.order)
