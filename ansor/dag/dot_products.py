"""Sums of products, several steps of which a single instruction computes.

Each lane of such an instruction holds a *group* of neighbouring elements of both operands: two of
16 bits, or four of 8. It multiplies them pairwise and adds the products to a wide sum. The group of
one operand is the same in all lanes. The other operand runs along the lanes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansor.dag import index as ix
from ansor.dag.graph import ComputeDAG
from ansor.dag.index import Index
from ansor.dag.stage import Access, Axis, Group, HoleExtent, OpCounts, Stage, axes_of_access

_MULTIPLY_ADD = (OpCounts(float_add=1, float_mul=1), OpCounts(int_add=1, int_mul=1))


@dataclass(frozen=True)
class DotOperands:
    """The reads of a stage's operands of products.

    Attributes:
        axis: the reduction axis whose neighbours form groups.
        broadcast: number of the read that no lane moves; its groups are contiguous in memory.
        lanes: number of the read that the last spatial axis runs along.
        dim: dimension of that read's buffer along which its groups run.
    """

    axis: int
    broadcast: int
    lanes: int
    dim: int


def operand_dtypes(dag: ComputeDAG, name: str) -> tuple[str, str, str] | None:
    """Dtypes of the two operands and of the sum, if a stage adds up products; else None.

    The operands are converted before they are multiplied.
    """
    stage = dag.stages[name]
    if stage.reducer != "Add" or len(stage.reads) != 2 or len(stage.writes) != 1:
        return None
    if stage.has_branch or stage.derived or stage.folded or stage.ops not in _MULTIPLY_ADD:
        return None
    total = dag.buffers[stage.output].dtype
    if stage.body.count(f", {total})") != 2:
        return None
    first, second = (dag.buffers[read.buffer].dtype for read in stage.reads)
    return first, second, total


def is_narrow_operand(dag: ComputeDAG, name: str, dtype: str) -> bool:
    """Whether all operands of a dtype that a stage multiplies are narrow."""
    read = [dag.buffers[read.buffer] for read in dag.stages[name].reads]
    return all(buffer.narrow for buffer in read if buffer.dtype == dtype)


def dot_operands(dag: ComputeDAG, name: str, elements: int) -> DotOperands | None:
    """The groups of a stage that adds up products; None if it cannot form groups."""
    stage = dag.stages[name]
    if not stage.spatial or not all(isinstance(axis.extent, int) for axis in stage.axes):
        return None
    if any(index is None for read in stage.reads for index in read.indices):
        return None
    if len({read.buffer for read in stage.reads}) < 2:  # a copy of one operand would replace both
        return None
    last = stage.spatial[-1]
    moved = [last in axes_of_access(read) for read in stage.reads]
    if sum(moved) != 1 or stage.writes[0].axes[-1] != last:
        return None
    lanes = moved.index(True)
    for axis in stage.reduce:
        if stage.axes[axis].size % elements == 0:
            dim = _groups_apart(stage.reads[lanes], axis, last, elements)
            if dim is not None and _groups_last(stage.reads[1 - lanes], axis, elements):
                return DotOperands(axis, 1 - lanes, lanes, dim)
    return None


def as_dot_products(
    dag: ComputeDAG, name: str, axis: int, elements: int, instruction: str
) -> ComputeDAG:
    """Lets each iteration of reduction `axis` of stage `name` take a group of `elements`."""
    stage = dag.stages[name]
    values = [ix.axis_index(a) for a in range(len(stage.axes))]
    values[axis] = ix.scale(values[axis], elements)
    ops = OpCounts(*(count * elements for count in vars(stage.ops).values()))
    made = replace(
        stage,
        axes=_shortened(stage, axis, elements),
        reads=tuple(_grouped(read, axis, elements, values) for read in stage.reads),
        ops=ops,
        instruction=instruction,
    )
    return ComputeDAG({**dag.stages, name: made}.values(), dag.buffers)


def grouped_copy(
    dag: ComputeDAG, name: str, buffer: str, copy: str, order: tuple[int, ...]
) -> ComputeDAG:
    """Lets the new stage `copy` copy `buffer` with its groups last, and stage `name` read that.

    Dimension ``d`` of the copy is dimension ``order[d]`` of the buffer. The dimension of the groups
    is divided by their length. The axes of the copy have the order `copy_axes`.
    """
    stage, source = dag.stages[name], dag.buffers[buffer]
    read = next(read for read in stage.reads if read.buffer == buffer)
    assert read.group is not None
    dim, elements = read.group.dim, read.group.elements
    shape = [*(_static(source.shape[d]) for d in order), elements]
    shape[order.index(dim)] //= elements
    places = copy_axes(order)  # dimension of the copy that each axis runs along
    axes = tuple(Axis(f"c{d}", shape[d], False) for d in places)
    along = [ix.axis_index(places.index(d)) for d in range(len(shape))]
    back: list[Index | None] = [along[order.index(d)] for d in range(len(order))]
    back[dim] = ix.add(ix.scale(along[order.index(dim)], elements), along[-1])
    made = Stage(
        copy, axes, (Access(buffer, tuple(back)),), (Access(copy, tuple(along)),), body="copy"
    )
    words = read.group_indices
    moved = Access(copy, (*(words[d] for d in order), Index()), Group(len(order), elements))
    reads = tuple(moved if r is read else r for r in stage.reads)
    stages: list[Stage] = []
    for old in dag.stages.values():
        stages += [made, replace(stage, reads=reads)] if old.name == name else [old]
    local = replace(source, name=copy, shape=tuple(shape), kind="intermediate", constant=False)
    return ComputeDAG(stages, {**dag.buffers, copy: local})


def copy_axes(order: tuple[int, ...]) -> tuple[int, ...]:
    """The order of the loops of a copy in groups, as dimensions of the copy.

    Rows of the source are loaded in vectors if its last dimension stays the last. Otherwise the
    elements of a group are neighbours in the source.
    """
    rank = len(order)
    if order[-1] == rank - 1:
        return (*range(rank - 1), rank, rank - 1)
    return tuple(range(rank + 1))


def _static(size: int | HoleExtent) -> int:
    assert isinstance(size, int)
    return size


def _groups_last(read: Access, axis: int, elements: int) -> bool:
    """Whether the neighbours of a group along an axis are contiguous in memory, and aligned."""
    *others, last = read.indices
    apart = all(axis not in axes_of_access(replace(read, indices=(i,))) for i in others)
    return apart and _in_groups(last, axis, elements)


def _groups_apart(read: Access, axis: int, last: int, elements: int) -> int | None:
    """The one dimension that an axis moves, in groups, if the last spatial axis moves another."""
    alone = [replace(read, indices=(index,)) for index in read.indices]
    dims = [d for d, access in enumerate(alone) if axis in axes_of_access(access)]
    if len(dims) != 1 or not _in_groups(read.indices[dims[0]], axis, elements):
        return None
    along = [d for d, access in enumerate(alone) if last in axes_of_access(access)]
    plain = [d for d in along if read.axes[d] == last]
    return dims[0] if along == plain and len(plain) == 1 and plain != dims else None


def _in_groups(index: Index | None, axis: int, elements: int) -> bool:
    """Whether an index is an axis plus multiples of a group's length."""
    if index is None or not index.is_affine or (axis, 1) not in index.terms:
        return False
    others = [factor for atom, factor in index.terms if atom != axis]
    return all(number % elements == 0 for number in (*others, index.const))


def _shortened(stage: Stage, axis: int, elements: int) -> tuple[Axis, ...]:
    axes = list(stage.axes)
    axes[axis] = replace(axes[axis], extent=axes[axis].size // elements)
    return tuple(axes)


def _grouped(read: Access, axis: int, elements: int, values: list[Index]) -> Access:
    alone = [replace(read, indices=(index,)) for index in read.indices]
    dim = next(d for d, access in enumerate(alone) if axis in axes_of_access(access))
    indices = tuple(i and ix.substitute(i, values) for i in read.indices)
    return Access(read.buffer, indices, Group(dim, elements))
