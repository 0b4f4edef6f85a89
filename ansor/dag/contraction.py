"""Products of matrices in disguise: convolutions, stacks, transposed operands, odd sizes.

A reduction that multiplies two operands is a product of matrices if its axes are grouped. Axes of
the left operand alone are rows, axes of the right operand alone are columns. Axes of both are the
depth if they are reduced, and a stack if not. For a convolution this is the implicit GEMM: the left
matrix holds the windows of the input, and is never stored as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ansor.dag import index as ix
from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import Access, Axis, Buffer, OpCounts, Stage, axes_of_access

_T = TypeVar("_T")

_MULTIPLY_ADDS = (OpCounts(float_add=1, float_mul=1), OpCounts(int_add=1, int_mul=1))
# Dtypes of operands for sums in float32; float32 only if it may be rounded to tf32.
_OPERANDS = ("float16", "bfloat16", "float32")


@dataclass(frozen=True)
class Contraction:
    """A reduction as products of matrices. Each group is a tuple of axes' numbers, in order.

    Attributes:
        stack: of both operands and the result: axes that count the products.
        rows: of the left operand and the result.
        columns: of the right operand and the result.
        depth: of both operands, reduced.
        left: number of the left operand among the two reads.
    """

    stack: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    depth: tuple[int, ...]
    left: int

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups of axes: stack, rows, columns, depth. Each is one axis of the product."""
        return (*((axis,) for axis in self.stack), self.rows, self.columns, self.depth)

    def ordered(self, reads: Sequence[_T]) -> tuple[_T, _T]:
        """A pair in the order of the reads, reordered to left and right operand; or the reverse."""
        return reads[self.left], reads[1 - self.left]

    @property
    def matrix(self) -> tuple[tuple[int, ...], ...]:
        """The groups with padding: rows, columns, depth."""
        return self.rows, self.columns, self.depth


def contraction(dag: ComputeDAG, name: str) -> Contraction | None:
    """The stage as a product of matrices, added up in float32; None if it is none."""
    stage = dag.stages[name]
    if not _may_multiply(dag, stage):
        return None
    first, second = (axes_of_access(read) & set(range(len(stage.axes))) for read in stage.reads)
    both, spatial = first & second, set(stage.spatial)
    if not set(stage.reduce) <= both or stage.writes[0].axes[-1] is None:
        return None
    left = int(stage.writes[0].axes[-1] in first - both)  # columns run along memory
    row_side, column_side = (second, first) if left else (first, second)
    columns = column_side & spatial - both
    rows = spatial - both - columns
    if not columns or not rows & row_side:
        return None
    groups = (both & spatial, rows, columns, stage.reduce)
    stack, row_axes, column_axes, depth = (tuple(sorted(group)) for group in groups)
    return Contraction(stack, row_axes, column_axes, depth, left)


def product_dtypes(dag: ComputeDAG, name: str) -> tuple[str, str] | None:
    """Dtypes of the operands and the result of a stage that adds up products; None for others."""
    stage = dag.stages[name]
    if stage.reducer != "Add" or len(stage.reads) != 2 or len(stage.writes) != 1:
        return None
    if stage.has_branch or stage.ops not in _MULTIPLY_ADDS:
        return None
    left, right = (dag.buffers[read.buffer].dtype for read in stage.reads)
    return (left, dag.buffers[stage.output].dtype) if left == right else None


def _may_multiply(dag: ComputeDAG, stage: Stage) -> bool:
    """Whether a statement adds up products of two reads, in dtypes that tensor cores support."""
    dtypes = product_dtypes(dag, stage.name)
    if dtypes is None or dtypes[0] not in _OPERANDS or dtypes[1] != "float32":
        return False
    if stage.derived or stage.folded or set(stage.writes[0].axes) != set(stage.spatial):
        return False
    known = all(i is not None for read in stage.reads for i in read.indices)
    return known and all(isinstance(axis.extent, int) for axis in stage.axes)


def round_up(size: int, multiple: int) -> int:
    """The least multiple that is not smaller than the number."""
    return -(-size // multiple) * multiple


def group_size(stage: Stage, group: tuple[int, ...]) -> int:
    """Number of points of some axes."""
    return math.prod(stage.axes[axis].size for axis in group)


def waste(stage: Stage, found: Contraction, multiple: int) -> float:
    """Ratio of the operations of a product with padded matrices to those without padding."""
    sizes = [group_size(stage, group) for group in found.matrix]
    return math.prod(round_up(size, multiple) / size for size in sizes)


def as_product(
    dag: ComputeDAG, name: str, consumer: str, found: Contraction, multiple: int
) -> ComputeDAG:
    """Makes stage `name` a product of matrices whose sizes are multiples of `multiple`.

    Two new stages, `operand_names(name)`, compute its operands, with zeros as padding. `consumer`,
    an elementwise map of the result, gets axes for rows and columns, too.
    """
    stage = dag.stages[name]
    left, right = operand_names(name)
    stages, buffers = dict(dag.stages), dict(dag.buffers)
    made: list[Stage] = []
    for operand, read in zip((left, right), found.ordered(stage.reads), strict=True):
        new, buffer = _operand(dag, stage, found, read, operand, multiple)
        made.append(new)
        buffers[operand] = buffer
    output = buffers[stage.output]
    product = _product(stage, found, made, multiple)
    shape = tuple(product.axes[axis].extent for axis in product.spatial)
    buffers[stage.output] = replace(output, shape=shape)
    stages[name] = product
    stages[consumer] = _along_matrix(stages[consumer], stage, found)
    ordered = [s for old in stages.values() for s in ((*made, old) if old.name == name else (old,))]
    return ComputeDAG(ordered, buffers)


def operand_names(name: str) -> tuple[str, str]:
    """The stages, and buffers, that hold the matrices which a stage multiplies."""
    return f"{name}.left", f"{name}.right"


def operand_groups(stage: Stage, found: Contraction) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """The groups of axes that number the left and the right operand's dimensions.

    The last one runs along memory, where one does: else rows by depth, and depth by columns.
    """
    stack = tuple((axis,) for axis in found.stack)
    left, right = found.ordered(stage.reads)
    first, second = (found.rows, found.depth), (found.depth, found.columns)
    if _goes_on(left, found.rows) and not _goes_on(left, found.depth):
        first = first[::-1]
    if _goes_on(right, found.depth) and not _goes_on(right, found.columns):
        second = second[::-1]
    return (*stack, *first), (*stack, *second)


def _goes_on(read: Access, group: tuple[int, ...]) -> bool:
    """Whether a step of a group's last axis advances a read by one element."""
    return bool(read.indices) and ix.runs_along(read.indices[-1], group[-1])


def _operand(
    dag: ComputeDAG, stage: Stage, found: Contraction, read: Access, name: str, multiple: int
) -> tuple[Stage, Buffer]:
    """The stage that makes a matrix of an operand, and its buffer."""
    groups = dict(zip(operand_names(stage.name), operand_groups(stage, found), strict=True))[name]
    true = [group_size(stage, group) for group in groups]
    sizes = [
        round_up(n, multiple) if group in found.matrix else n
        for n, group in zip(true, groups, strict=True)
    ]
    axes = tuple(Axis(f"v{i}", size, False) for i, size in enumerate(sizes))
    identity = tuple(ix.axis_index(i) for i in range(len(axes)))
    branch = sizes != true
    made = Stage(
        name,
        axes,
        (_regrouped(read, stage, groups),),
        (Access(name, identity),),
        OpCounts(select=int(branch)),
        branch,
        "operand",
    )
    return made, Buffer(name, tuple(sizes), dag.buffers[read.buffer].dtype, "intermediate")


def _product(stage: Stage, found: Contraction, operands: list[Stage], multiple: int) -> Stage:
    """The stage with its axes in groups, and multiplying matrices."""
    groups = found.groups
    axes = tuple(
        Axis(
            f"v{i}",
            round_up(group_size(stage, g), multiple) if g in found.matrix else group_size(stage, g),
            g == found.depth,
        )
        for i, g in enumerate(groups)
    )
    reads = found.ordered(
        [
            Access(made.name, tuple(ix.axis_index(groups.index(g)) for g in groups_of_operand))
            for made, groups_of_operand in zip(operands, operand_groups(stage, found), strict=True)
        ]
    )
    spatial = tuple(ix.axis_index(i) for i, axis in enumerate(axes) if not axis.reduce)
    return replace(stage, axes=axes, reads=reads, writes=(Access(stage.output, spatial),))


def _along_matrix(consumer: Stage, stage: Stage, found: Contraction) -> Stage:
    """The consumer with an axis for each group of the result."""
    where = {axis: dim for dim, axis in enumerate(stage.writes[0].axes)}
    groups = tuple(tuple(where[a] for a in g) for g in found.groups if g != found.depth)
    axes = tuple(Axis(f"v{i}", group_size(consumer, g), False) for i, g in enumerate(groups))
    identity = tuple(ix.axis_index(i) for i in range(len(groups)))

    def moved(access: Access) -> Access:
        there = access.buffer == stage.output
        return Access(access.buffer, identity) if there else _regrouped(access, consumer, groups)

    reads, writes = (tuple(map(moved, a)) for a in (consumer.reads, consumer.writes))
    return replace(consumer, axes=axes, reads=reads, writes=writes)


def _regrouped(access: Access, stage: Stage, groups: Sequence[tuple[int, ...]]) -> Access:
    """An access with an axis for each group of former axes."""
    extents = [group_size(stage, group) for group in groups]
    values: list[ix.Index | None] = [ix.Index()] * len(stage.axes)
    for number, group in enumerate(groups):
        for axis, value in _digits(stage, group, number):
            values[axis] = value

    def moved(index: ix.Index | None) -> ix.Index | None:
        new = None if index is None else ix.substitute(index, values)
        return None if new is None else ix.simplify(new, extents)

    return replace(access, indices=tuple(map(moved, access.indices)))


def _digits(stage: Stage, group: tuple[int, ...], number: int) -> Iterator[tuple[int, ix.Index]]:
    """The values of a group's axes, if axis `number` counts their points, the last one fastest."""
    apart = 1
    for position, axis in reversed(list(enumerate(group))):
        size = stage.axes[axis].size
        value = ix.axis_index(number)
        if position > 0:
            value = ix.remainder(value, size * apart)
        yield axis, ix.quotient(value, apart)
        apart *= size
