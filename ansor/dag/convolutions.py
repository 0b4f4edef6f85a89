"""Recognises depthwise and pointwise convolutions by the reads of a graph."""

from __future__ import annotations

from ansor.dag.graph import ComputeDAG
from ansor.dag.index import Index
from ansor.dag.predicates import has_data_reuse
from ansor.dag.stage import Access, Stage, axes_of_access


def is_depthwise(dag: ComputeDAG) -> bool:
    """Whether the single reduction of a graph stays within a channel.

    All its reads move along its last axis, and one of them is reused along another axis.
    """
    stage = _only_reduction(dag)
    if stage is None or not has_data_reuse(dag, stage.name):
        return False
    return all(stage.spatial[-1] in axes_of_access(read) for read in stage.reads)


def is_pointwise(dag: ComputeDAG, buffer: str) -> bool:
    """Whether the single reduction of a graph multiplies a buffer point by point: it runs along the
    buffer's last dimension, and the other dimensions are axes of the result."""
    stage = _only_reduction(dag)
    if stage is None or not has_data_reuse(dag, stage.name):
        return False
    reads = [read for read in stage.reads if _source(dag, read.buffer) == buffer]
    long = [axis for axis in stage.reduce if stage.axes[axis].extent != 1]
    if len(reads) != 1 or len(long) != 1:
        return False
    *points, last = [_long_axes(stage, index) for index in reads[0].indices]
    return last == set(long) and all(len(axes - last) == len(axes) < 2 for axes in points)


def _long_axes(stage: Stage, index: Index | None) -> set[int]:
    """The axes of more than one iteration that an index depends on."""
    axes = axes_of_access(Access("", (index,))) & set(range(len(stage.axes)))
    return {axis for axis in axes if stage.axes[axis].extent != 1}


def _source(dag: ComputeDAG, buffer: str) -> str:
    """The source of a buffer that is a plain copy, or the buffer itself."""
    copies = [s for s in dag.stages.values() if s.output == buffer and not s.reduce]
    if len(copies) != 1 or copies[0].has_branch or copies[0].ops.flops:
        return buffer
    reads = copies[0].reads
    same = len(reads) == 1 and reads[0].axes == copies[0].writes[0].axes
    return _source(dag, reads[0].buffer) if same else buffer


def _only_reduction(dag: ComputeDAG) -> Stage | None:
    found = [stage for stage in dag.stages.values() if stage.reduce]
    return found[0] if len(found) == 1 else None
