"""Chains of stages that may be computed tile by tile of the last one."""

from __future__ import annotations

import networkx as nx

from ansor.dag.graph import ComputeDAG
from ansor.dag.index import Index
from ansor.dag.predicates import has_data_reuse, has_reduction
from ansor.dag.stage import Access, Stage, axes_of


def ends_chain(dag: ComputeDAG, name: str) -> bool:
    """Whether a stage without reductions of its own follows several, one of them costly.

    Computed tile by tile of this stage, what they hand on to each other stays in a cache (softmax
    over a product, Winograd's transforms, a depthwise before a pointwise convolution).
    """
    stage = dag.stages[name]
    if has_reduction(stage) or stage.derived or not set(stage.spatial) - stage.folded:
        return False
    earlier = [s for s in nx.ancestors(dag.graph, name) if dag.stages[s].reduce]
    return len(earlier) > 1 and any(has_data_reuse(dag, s) for s in earlier)


def whole_axes(dag: ComputeDAG, name: str) -> frozenset[int]:
    """Spatial axes of a stage that run along folded axes of what it is computed from.

    Part of them is no use: a transform makes all its results from the same few values.
    """
    found: dict[str, set[int]] = {}
    for this in dag.order:
        stage = dag.stages[this]
        found[this] = set(stage.folded)
        for producer in dag.producers(this):
            found[this] |= _axes_along(dag.stages[producer], found[producer], stage)
    return frozenset(found[name] & set(dag.stages[name].spatial))


def is_channelwise(dag: ComputeDAG) -> bool:
    """Whether the one reduction of a graph keeps to a channel, as a depthwise convolution does.

    All that it reads runs along its last axis, and something is used again along another.
    """
    stage = _only_reduction(dag)
    if stage is None or not has_data_reuse(dag, stage.name):
        return False
    return all(stage.spatial[-1] in axes_of(read) for read in stage.reads)


def is_pointwise(dag: ComputeDAG, buffer: str) -> bool:
    """Whether the one reduction of a graph multiplies a buffer, point by point: it runs along the
    buffer's last dimension, and the others are axes of the result."""
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
    """The axes that an index depends on, but those of one iteration."""
    axes = axes_of(Access("", (index,))) & set(range(len(stage.axes)))
    return {axis for axis in axes if stage.axes[axis].extent != 1}


def _source(dag: ComputeDAG, buffer: str) -> str:
    """The buffer that another one is a plain copy of, or the buffer itself."""
    copies = [s for s in dag.stages.values() if s.output == buffer and not s.reduce]
    if len(copies) != 1 or copies[0].has_branch or copies[0].ops.flops:
        return buffer
    reads = copies[0].reads
    same = len(reads) == 1 and reads[0].axes == copies[0].writes[0].axes
    return _source(dag, reads[0].buffer) if same else buffer


def _only_reduction(dag: ComputeDAG) -> Stage | None:
    found = [stage for stage in dag.stages.values() if stage.reduce]
    return found[0] if len(found) == 1 else None


def _axes_along(producer: Stage, axes: set[int], consumer: Stage) -> set[int]:
    """Axes of `consumer` that index what `producer` wrote where one of its `axes` did."""
    write, found = producer.writes[0], set()
    for read in consumer.reads:
        if read.buffer == write.buffer:
            pairs = zip(write.indices, read.indices, strict=True)
            found |= {r.single_axis for w, r in pairs if w and r and w.single_axis in axes}
    return {axis for axis in found if axis is not None}
