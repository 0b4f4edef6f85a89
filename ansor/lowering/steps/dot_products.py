"""Steps of instructions that add up groups of products."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ansor.dag.dot_products import as_dot_products, grouped_copy
from ansor.dag.stage import axes_of_access
from ansor.lowering.passes.dot_products import Grouping, group_products
from ansor.lowering.replay import Replay
from ansor.lowering.statements import substitute_variables
from ansor.lowering.steps.apply import apply
from ansor.program.steps import DotProducts, GroupedCacheRead


@apply.register
def dot_products(step: DotProducts, replay: Replay) -> None:
    stage, hint = replay.dag.stages[step.stage], replay.hint(step.stage)
    moved = [stage.spatial[-1] in axes_of_access(read) for read in stage.reads]
    grouping = Grouping(hint, step.axis, step.elements, step.instruction, moved.index(True))
    replay.restart(group_products(replay.sch.mod["main"], grouping))
    replay.dag = as_dot_products(replay.dag, step.stage, step.axis, step.elements, step.instruction)
    replay.has_dot_products = True


@apply.register
def grouped_cache_read(step: GroupedCacheRead, replay: Replay) -> None:
    block, source = replay.blocks[step.stage], replay.buffers[step.buffer]
    reads = [region.source.same_as(source) for region in replay.sch.get(block).reads]
    copy = replay.sch.cache_read(block, reads.index(True), "global")

    def grouped(*index: Any) -> list[Any]:
        quotients = [i // step.elements if d == step.dim else i for d, i in enumerate(index)]
        return [*(quotients[d] for d in step.order), index[step.dim] % step.elements]

    dtype = str(replay.sch.get(copy).iter_vars[0].var.ty.dtype)
    layout = tirx.IndexMap.from_func(grouped, ndim=len(step.order), index_dtype=dtype)
    replay.sch.transform_layout(copy, ("write", 0), layout)
    replay.sch.transform_block_layout(copy, layout)
    _read_whole_groups(replay, block, replay.sch.get(copy).writes[0].source, step.elements)
    replay.blocks[step.copy] = copy
    replay.buffers[step.copy] = replay.sch.get(copy).writes[0].source
    replay.dag = grouped_copy(replay.dag, step.stage, step.buffer, step.copy, step.order)


def _read_whole_groups(replay: Replay, block: Any, source: Any, elements: int) -> None:
    """Lets a block read all elements of a buffer's groups; its call names only the first."""
    current = replay.sch.get(block)
    number = [region.source.same_as(source) for region in current.reads].index(True)
    region, variables = current.reads[number].region, [v.var for v in current.iter_vars]

    def ranges(*axes: Any) -> list[Any]:
        values = dict(zip(variables, axes, strict=True))
        first = [substitute_variables(part.min, values) for part in region]
        return [*first[:-1], (first[-1], first[-1] + elements)]

    replay.sch.annotate_buffer_access(block, number, "read", ranges)
