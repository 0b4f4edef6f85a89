"""The paper's predicates over a `ComputeDAG` (Ansor §4.1, Table 1)."""

from __future__ import annotations

import math

from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import Access, HoleExtent, Stage, axes_of_access


def is_inlinable(dag: ComputeDAG, name: str) -> bool:
    """Whether substituting the stage into its consumers is right and never repeats costly work.

    The paper's "strictly inlinable": no reduction, no branch, every read an axis plus a constant
    with the axes in order, no special function.
    Deviation: any branch-free map is inlined if its single consumer is no reduction, since nothing
    is then computed twice. Examples are special functions and transposes in a chain of elementwise
    operators. The paper leaves such stages to the search, which never keeps them apart.
    """
    stage = dag.stages[name]
    if dag.is_output(name) or stage.reduce or stage.has_branch or not can_inline(dag, name):
        return False
    consumers = dag.consumers(name)
    if len(consumers) == 1 and not dag.stages[consumers[0]].reduce:
        return True
    return stage.ops.float_special == 0 and all(_in_order(read) for read in stage.reads)


def can_inline(dag: ComputeDAG, name: str) -> bool:
    """Whether the stage can be substituted at all: one output, written element by element."""
    stage = dag.stages[name]
    if stage.reduce or dag.is_output(name) or len(stage.writes) != 1:
        return False
    write = stage.writes[0]
    return len(write.indices) == len(stage.axes) and _is_identity(write)


def has_data_reuse(dag: ComputeDAG, name: str) -> bool:
    """Whether multi-level tiling can pay: a reduction reads elements independent of a spatial axis.

    Folded axes do not count: they are unrolled, and the reused values stay in registers.

    Deviation: TVM also tiles stages without a reduction that have two such reads, such as two
    broadcast operands. There the reused values fit in registers, and tiling gains nothing.
    """
    stage = dag.stages[name]
    spatial = {a for a in stage.spatial if _extent(stage, a) != 1} - stage.folded
    reusing = any(spatial - axes_of_access(read) for read in stage.reads)
    return has_reduction(stage) and bool(spatial) and reusing and not stage.derived


def fusible_consumer(dag: ComputeDAG, name: str) -> str | None:
    """The single consumer that maps the stage's output element by element, if there is one."""
    if dag.is_output(name) or len(dag.stages[name].writes) != 1:
        return None
    consumers = dag.consumers(name)
    if len(consumers) != 1:
        return None
    consumer = dag.stages[consumers[0]]
    buffer = dag.stages[name].output
    reads = [read for read in consumer.reads if read.buffer == buffer]
    shape = dag.buffers[buffer].shape
    same_domain = tuple(axis.extent for axis in consumer.axes) == shape
    if consumer.reduce or not same_domain or not all(_is_identity(read) for read in reads):
        return None
    return consumer.name


def feeds_instruction(dag: ComputeDAG, name: str) -> bool:
    """Whether an instruction reads the output of the stage from memory, which needs a buffer."""
    return any(dag.stages[consumer].instruction for consumer in dag.consumers(name))


def has_static_axes(stage: Stage) -> bool:
    """Whether no axis has an extent that a decision chooses."""
    return not any(isinstance(axis.extent, HoleExtent) for axis in stage.axes)


def has_reduction(stage: Stage) -> bool:
    """Whether a stage reduces over anything but folded axes."""
    return bool(set(stage.reduce) - stage.folded)


def needs_more_parallelism(dag: ComputeDAG, name: str, cores: int, spatial_per_core: int) -> bool:
    """Whether a reduction has too few independent elements to occupy the cores (rule 6).

    Args:
        cores: hardware threads.
        spatial_per_core: spatial points a core needs to be busy without splitting the reduction.
    """
    stage = dag.stages[name]
    if stage.reducer is None:
        return False
    if not has_static_axes(stage):
        return False
    space = math.prod(stage.axes[a].size for a in stage.spatial)
    reduction = math.prod(stage.axes[a].size for a in stage.reduce)
    return space < reduction and space < cores * spatial_per_core and reduction > cores


def _in_order(read: Access) -> bool:
    axes = [i.single_axis for i in read.indices if i is not None and i.terms]
    known = all(i is not None for i in read.indices)
    return known and None not in axes and axes == sorted(set(axes))  # type: ignore[type-var]


def _is_identity(access: Access) -> bool:
    in_order = access.axes == tuple(range(len(access.indices)))
    return in_order and all(i is not None and i.const == 0 for i in access.indices)


def _extent(stage: Stage, axis: int) -> int | HoleExtent:
    return stage.axes[axis].extent
