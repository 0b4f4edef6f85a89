"""Sums of products whose reduction is no whole number of groups, and the padding that they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ansor.dag.contraction import round_up
from ansor.dag.dot_products import dot_operands
from ansor.dag.graph import ComputeDAG
from ansor.dag.predicates import can_inline, has_data_reuse
from ansor.dag.stage import Access, Stage, axes_of_access


@dataclass(frozen=True)
class UnfilledGroups:
    """A reduction that an instruction can add up if its operands are padded with zeros.

    Attributes:
        stage: that adds up the products.
        axis: the reduction axis whose neighbours form groups.
        size: of the axis, a multiple of the elements of a group.
        dims: for each operand the dimension that the axis runs along.
    """

    stage: str
    axis: int
    size: int
    dims: Mapping[str, int]


def unfilled_groups(dag: ComputeDAG, name: str, elements: int) -> UnfilledGroups | None:
    """The padding with which a stage that adds up products forms groups.

    None if it forms groups without padding, or if padding is not enough.

    Args:
        dag: its graph.
        name: of the stage.
        elements: of a group.
    """
    stage = dag.stages[name]
    if not has_data_reuse(dag, name) or dot_operands(dag, name, elements) is not None:
        return None
    for axis in stage.reduce:
        size = round_up(stage.axes[axis].size, elements)
        dims = _dimensions(dag, stage, axis)
        if dims and _forms_groups(dag, stage, axis, size, elements):
            return UnfilledGroups(name, axis, size, dims)
    return None


def may_be_lengthened(dag: ComputeDAG, buffer: str) -> bool:
    """Whether a single stage writes a buffer, element by element, and a single stage reads it."""
    readers = [s for s in dag.stages.values() if any(r.buffer == buffer for r in s.reads)]
    writers = [s.name for s in dag.stages.values() if s.output == buffer]
    return len(readers) == 1 and len(writers) == 1 and can_inline(dag, writers[0])


def _dimensions(dag: ComputeDAG, stage: Stage, axis: int) -> dict[str, int]:
    """The dimension of each operand that a single axis indexes from its begin to its end.

    Empty if an operand has no such dimension.
    """
    found = {}
    for read in stage.reads:
        alone = [Access(read.buffer, (index,)) for index in read.indices]
        dims = [d for d, access in enumerate(alone) if axis in axes_of_access(access)]
        if len(dims) != 1 or not _is_whole(dag, stage, read, axis, dims[0]):
            return {}
        found[read.buffer] = dims[0]
    return found


def _is_whole(dag: ComputeDAG, stage: Stage, read: Access, axis: int, dim: int) -> bool:
    index = read.indices[dim]
    size = dag.buffers[read.buffer].shape[dim]
    is_axis = index is not None and index.single_axis == axis and index.const == 0
    return is_axis and size == stage.axes[axis].size


def _forms_groups(dag: ComputeDAG, stage: Stage, axis: int, size: int, elements: int) -> bool:
    """Whether a stage forms groups along an axis of another size."""
    axes = list(stage.axes)
    axes[axis] = replace(axes[axis], extent=size)
    longer = ComputeDAG(
        {**dag.stages, stage.name: replace(stage, axes=tuple(axes))}.values(), dag.buffers
    )
    found = dot_operands(longer, stage.name, elements)
    return found is not None and found.axis == axis
