"""Padding: the buffers that have it, and the steps of a convolution that read only zeros."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from ansor.config import DAG
from ansor.dag.graph import ComputeDAG
from ansor.dag.index import Index
from ansor.dag.stage import Access, Stage


@dataclass(frozen=True)
class Padded:
    """A dimension of a reduction's operand with a padding of zeros.

    Attributes:
        buffer: the operand.
        dim: number of the dimension.
        first: index of the first data.
        end: index behind the last data.
        axes: reduction axes that move the index.
        share: share of the reduction's steps that read data.
    """

    buffer: str
    dim: int
    first: int
    end: int
    axes: tuple[int, ...]
    share: float


def is_padded(dag: ComputeDAG, buffer: str) -> bool:
    """Whether a buffer is a copy of another one with padding around."""
    writers = [stage for stage in dag.stages.values() if stage.output == buffer]
    return bool(writers) and all(s.has_branch and not s.reduce and not s.ops.flops for s in writers)


@dataclass(frozen=True)
class PaddedSource:
    """A buffer that a stage pads with zeros.

    Attributes:
        stage: the name of the padding stage.
        buffer: that it reads.
        before: number of zeros before the data along each dimension.
        after: number of zeros behind the data along each dimension.
    """

    stage: str
    buffer: str
    before: tuple[int, ...]
    after: tuple[int, ...]


def source_of(dag: ComputeDAG, buffer: str) -> PaddedSource | None:
    """The source of a buffer that is a copy with zeros around it; None for other buffers."""
    writers = [stage for stage in dag.stages.values() if stage.output == buffer]
    if len(writers) != 1 or not _only_pads(writers[0]):
        return None
    stage = writers[0]
    (read,) = stage.reads
    spans = {axis: (first, end) for axis, first, end in stage.nonzero}
    shape = dag.buffers[read.buffer].shape
    before, after = [], []
    for axis, (index, size) in enumerate(zip(read.indices, shape, strict=True)):
        if index is None or index.single_axis != axis or not isinstance(size, int):
            return None
        first, whole = -index.const, stage.axes[axis].size
        if spans.get(axis, (0, whole)) != (first, first + size):
            return None
        before.append(first)
        after.append(whole - first - size)
    return PaddedSource(stage.name, read.buffer, tuple(before), tuple(after))


def _only_pads(stage: Stage) -> bool:
    """Whether a stage only copies its input and writes zeros around it."""
    copies = not stage.reduce and not stage.ops.flops and len(stage.reads) == 1
    copies = copies and len(stage.reads[0].indices) == len(stage.axes)
    whole = len(stage.writes) == 1 and stage.writes[0].axes == tuple(range(len(stage.axes)))
    return copies and whole and bool(stage.nonzero) and not stage.masked


def padded_dimensions(dag: ComputeDAG, name: str) -> tuple[Padded, ...]:
    """The padded dimensions of the operands of a sum of products; steps on zeros add nothing."""
    stage = dag.stages[name]
    if stage.reducer != "Add" or not _is_product(stage):
        return ()
    return tuple(found for read in stage.reads for found in _padded(dag, stage, read))


def _is_product(stage: Stage) -> bool:
    """Whether each step adds the product of two operands."""
    ops = stage.ops
    adds, products = ops.float_add + ops.int_add, ops.float_mul + ops.int_mul
    others = ops.float_div + ops.float_cmp + ops.float_special + ops.int_div + ops.int_cmp
    return (adds, products, others + ops.select) == (1, 1, 0) and len(stage.reads) == 2


def _padded(dag: ComputeDAG, stage: Stage, read: Access) -> Iterator[Padded]:
    writers = [dag.stages[p] for p in dag.producers(stage.name)]
    for source in (s for s in writers if s.output == read.buffer and len(s.writes) == 1):
        for axis, first, end in source.nonzero:
            dim = source.writes[0].axes.index(axis) if axis in source.writes[0].axes else None
            index = None if dim is None else read.indices[dim]
            if dim is None or index is None or not index.is_affine or stage.derived:
                continue
            axes = tuple(atom for atom, _ in index.terms if isinstance(atom, int))
            share = _share(stage, index, first, end)
            if set(axes) & set(stage.reduce) and share < 1:
                yield Padded(read.buffer, dim, first, end, axes, share)


def _share(stage: Stage, index: Index, first: int, end: int) -> float:
    """Share of an index's values, over all points of its axes, within a span."""
    extents = [(stage.axes[atom].size, factor) for atom, factor in index.terms]  # type: ignore[index]
    count = 1
    for size, _ in extents:
        count *= size
    if count > DAG.max_points:
        return 1.0
    factors = [factor for _, factor in extents]
    inside = sum(
        first <= index.const + sum(f * v for f, v in zip(factors, values, strict=True)) < end
        for values in product(*(range(size) for size, _ in extents))
    )
    return inside / count
