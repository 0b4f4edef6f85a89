"""The reads of a stage's operands: along vectors, along reductions, and their number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ansor.dag.contraction import contraction
from ansor.dag.graph import ComputeDAG
from ansor.dag.index import Index, Quotient, Remainder, axis_index, runs_along
from ansor.dag.padding import is_padded
from ansor.dag.stage import Access, OpCounts, Stage, axes_of_access


def vector_operand(dag: ComputeDAG, name: str) -> str | None:
    """The buffer read along memory by a stage's last spatial axis, if there is just one."""
    stage = dag.stages[name]
    if not stage.spatial:
        return None
    axis = stage.spatial[-1]
    found = [
        read.buffer
        for read in stage.reads
        if read.indices and read.indices[-1] is not None and read.indices[-1].single_axis == axis
    ]
    return found[0] if len(found) == 1 else None


def owns_columns(dag: ComputeDAG, name: str, buffer: str) -> bool:
    """Whether a single read uses a buffer, and a stage's last spatial axis indexes only its last
    dimension."""
    axis = dag.stages[name].spatial[-1]
    reads = [r for stage in dag.stages.values() for r in stage.reads if r.buffer == buffer]
    if len(reads) > 1 or reads[0] not in dag.stages[name].reads:
        return False
    *others, last = reads[0].indices
    whole = dag.stages[name].axes[axis].size == dag.buffers[buffer].shape[-1]
    moved = axes_of_access(replace(reads[0], indices=tuple(others)))
    return whole and last == axis_index(axis) and axis not in moved


def transposed_operand(dag: ComputeDAG, name: str) -> tuple[str, tuple[int, ...]] | None:
    """An operand that is not contiguous along a stage's last spatial axis, if there is one.

    Returns:
        its buffer, and the order of its dimensions that puts that axis last.
    """
    stage = dag.stages[name]
    for read in stage.reads if stage.spatial else ():
        alone = [other.buffer for other in stage.reads].count(read.buffer) == 1
        along = _dim_along(read, stage.spatial[-1])
        if alone and along is not None and along < len(read.indices) - 1:
            order = (*(d for d in range(len(read.indices)) if d != along), along)
            return read.buffer, order
    return None


def _dim_along(read: Access, axis: int) -> int | None:
    """The only dimension of a read that an axis moves, if it moves it by single elements."""
    alone = [replace(read, indices=(index,)) for index in read.indices]
    moved = [dim for dim, access in enumerate(alone) if axis in axes_of_access(access)]
    return moved[0] if len(moved) == 1 and runs_along(read.indices[moved[0]], axis) else None


def transposed_axes(dag: ComputeDAG, name: str) -> tuple[int, int] | None:
    """The last two axes of a stage that only copies, if its source is contiguous along the axis
    before the last."""
    stage = dag.stages[name]
    if stage.reduce or stage.ops != OpCounts() or len(stage.reads) != 1 or len(stage.writes) != 1:
        return None
    (read,), (write,) = stage.reads, stage.writes
    plain = None not in read.axes and not any(index.const for index in read.indices if index)
    same = dag.buffers[read.buffer].dtype == dag.buffers[write.buffer].dtype
    if not plain or not same or len(stage.axes) < 2 or write.axes != stage.spatial:
        return None
    before, last = stage.spatial[-2:]
    return (before, last) if read.axes[-1] == before else None


def other_vector_axis(dag: ComputeDAG, name: str, lanes: int, windows: bool = False) -> int | None:
    """An axis to vectorise instead of the last one, if there is one.

    The axis is spatial, fills vectors and occurs in a single operand, so that a transposed copy of
    the operand is contiguous along it. Of several axes the last one of the smallest operand counts.

    Args:
        windows: whether axes along which windows slide count, too, and padded inputs. Otherwise
            only dimensions of inputs count.
    """
    stage = dag.stages[name]
    found = []
    for axis in stage.spatial[:-1]:
        reads = [read for read in stage.reads if axis in axes_of_access(read)]
        if len(reads) != 1 or stage.axes[axis].size % lanes:
            continue
        buffer, plain = dag.buffers[reads[0].buffer], axis in reads[0].axes
        slides = windows and _dim_along(reads[0], axis) is not None
        is_input = buffer.kind == "input"
        if (is_input and (plain or slides)) or (slides and is_padded(dag, buffer.name)):
            found.append((not is_input, buffer.num_bytes, -axis))
    return -min(found)[2] if found else None


def jumps_along_vectors(dag: ComputeDAG, name: str) -> bool:
    """Whether a stage's last spatial axis moves no read, in any dimension, by single elements."""
    stage = dag.stages[name]
    reads = [index for read in stage.reads for index in read.indices]
    return not any(runs_along(index, stage.spatial[-1]) for index in reads)


def is_dense_along(stage: Stage, axis: int) -> bool:
    """Whether an axis advances every access that it moves by one element in memory."""
    accesses = [a for a in (*stage.reads, *stage.writes) if axis in axes_of_access(a)]
    return all(runs_along(_innermost(access), axis) for access in accesses if access.indices)


def _innermost(access: Access) -> Index | None:
    """The index of the last dimension, or of the one before if that is a group's."""
    group = access.group
    last = -2 if group is not None and group.dim == len(access.indices) - 1 else -1
    return access.indices[last]


def reads_per_element(dag: ComputeDAG, consumer: str, buffer: str) -> float:
    """Mean number of a stage's reads of each element of a buffer."""
    elements = dag.buffers[buffer].num_bytes // dag.buffers[buffer].item_bytes
    return math.prod(axis.size for axis in dag.stages[consumer].axes) / elements


def is_whole_along_vectors(dag: ComputeDAG, consumer: str, producer: str) -> bool:
    """Whether the dimension along which a consumer is vectorised has no padding.

    Otherwise the condition would differ from lane to lane.
    """
    stage, padded = dag.stages[consumer], dag.stages[producer]
    if not stage.spatial or len(padded.reads) != 1:
        return False
    last = stage.spatial[-1]
    source = dag.buffers[padded.reads[0].buffer].shape
    reads = [read for read in stage.reads if read.buffer == padded.output]
    grown = {d for d, axis in enumerate(padded.axes) if axis.extent != source[d]}
    return len(source) == len(padded.axes) and not any(
        index is None or last in axes_of_access(replace(read, indices=(index,)))
        for read in reads
        for d, index in enumerate(read.indices)
        if d in grown
    )


def contiguous_reduction(dag: ComputeDAG, name: str) -> int | None:
    """The reduction axis along which a stage's largest operand is contiguous, if there is one.

    There is none if this operand is contiguous along a spatial axis. Otherwise vector lanes must
    come from the reduction.
    """
    stage = dag.stages[name]
    if stage.reducer is None or not stage.reads:
        return None
    split = {axis for derived in stage.derived for axis in (derived.outer, derived.inner)}
    main = max(stage.reads, key=lambda read: len(axes_of_access(read)))
    last = main.indices[-1]
    axes = [atom for atom, factor in last.terms if factor == 1] if last is not None else []
    split |= stage.folded
    found = [a for a in axes if isinstance(a, int) and a in stage.reduce and a not in split]
    return found[0] if len(axes) == len(found) == 1 else None


def batch_axes(dag: ComputeDAG, name: str) -> frozenset[int]:
    """Spatial axes without reuse: all reads of a stage depend on them. The last axis is no part."""
    stage = dag.stages[name]
    inner = set(stage.spatial[:-1])
    shared = inner.intersection(*(axes_of_access(read) for read in stage.reads))
    return frozenset(shared) if shared != inner else frozenset()


def phases(dag: ComputeDAG, name: str) -> dict[int, int]:
    """Spatial axes whose points read different elements in phases, with the number of phases.

    The kernel of a transposed convolution is read at ``(y + c) % stride``: points at a distance of
    `stride` share elements, and neighbours do not. The last axis is left out, because vectors run
    along it.
    """
    stage = dag.stages[name]
    found: dict[int, set[int]] = {}
    for read in stage.reads:
        for index in read.indices:
            for axis, divisor in _divided(index) if index is not None else ():
                found.setdefault(axis, set()).add(divisor)
    turns = {axis: min(divisors) for axis, divisors in found.items() if len(divisors) == 1}
    return {
        axis: turn
        for axis, turn in sorted(turns.items())
        if axis in stage.spatial[:-1]
        and 1 < turn < stage.axes[axis].size
        and stage.axes[axis].size % turn == 0
    }


def parts(dag: ComputeDAG, name: str) -> dict[int, int]:
    """Axes whose quotient and remainder by the same divisor occur in reads, with the divisor.

    Such reads assemble results that were computed in tiles. With an axis for each part, the stage
    runs along the tiles.
    """
    stage = dag.stages[name]
    atoms = {atom for read in stage.reads for i in read.indices if i for atom, _ in i.terms}
    found = {}
    for quotient in atoms:
        if not isinstance(quotient, Quotient) or quotient.index.single_axis is None:
            continue
        axis, divisor = quotient.index.single_axis, quotient.divisor
        whole = quotient.index.const == 0 and stage.axes[axis].size % divisor == 0
        if whole and axis in stage.spatial and Remainder(quotient.index, divisor) in atoms:
            found[axis] = divisor
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class MatrixProduct:
    """A product of matrices, or of stacks of them.

    Attributes:
        axes: of rows, columns and reduction.
        operands: buffers of the left and the right matrix.
        transposed: for each operand, whether it is transposed: depth by rows, or columns by depth.
        swapped: whether the statement names the right operand first.
    """

    axes: tuple[int, int, int]
    operands: tuple[str, str]
    transposed: tuple[bool, bool]
    swapped: bool


def matrix_product(dag: ComputeDAG, name: str, multiple: int) -> MatrixProduct | None:
    """The stage as a product of two matrices in their layout in memory. None if it is no such
    product, or if its sizes are no multiples of `multiple`."""
    stage, found = dag.stages[name], contraction(dag, name)
    if found is None or len(stage.reduce) != 1 or len(stage.spatial) < 2:
        return None
    depth = stage.reduce[0]
    rows, columns = stage.writes[0].axes[-2:]
    left, right = found.ordered(stage.reads)
    ends = left.axes[-2:], right.axes[-2:]
    if rows is None or columns is None or any(None in axes for axes in ends):
        return None
    if set(ends[0]) != {rows, depth} or set(ends[1]) != {depth, columns}:
        return None
    if any(stage.axes[axis].size % multiple for axis in (rows, columns, depth)):
        return None
    transposed = ends[0] == (depth, rows), ends[1] == (columns, depth)
    operands = left.buffer, right.buffer
    return MatrixProduct((rows, columns, depth), operands, transposed, found.left == 1)


def _divided(index: Index) -> Iterator[tuple[int, int]]:
    """Axes that are the only axis of a remainder, with the divisors."""
    for atom, _ in index.terms:
        if isinstance(atom, Remainder):
            inner = atom.index.terms
            if len(inner) == 1 and isinstance(inner[0][0], int) and inner[0][1] == 1:
                yield inner[0][0], atom.divisor
