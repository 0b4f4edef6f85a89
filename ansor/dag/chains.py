"""Chains of stages that may be computed tile by tile of the last one."""

from __future__ import annotations

import networkx as nx

from ansor.dag.graph import ComputeDAG
from ansor.dag.predicates import has_data_reuse, has_reduction
from ansor.dag.stage import Stage


def ends_chain(dag: ComputeDAG, name: str) -> bool:
    """Whether a stage without reductions follows several reductions, one of them costly.

    If they are computed for each tile of this stage, their intermediate results stay in a cache.
    Examples are softmax over a product, Winograd's transforms, and a depthwise before a pointwise
    convolution.
    """
    stage = dag.stages[name]
    if has_reduction(stage) or stage.derived or not set(stage.spatial) - stage.folded:
        return False
    earlier = [s for s in nx.ancestors(dag.graph, name) if dag.stages[s].reduce]
    return len(earlier) > 1 and any(has_data_reuse(dag, s) for s in earlier)


def whole_axes(dag: ComputeDAG, name: str) -> frozenset[int]:
    """Spatial axes of a stage that run along folded axes of its producers.

    Tiling these axes is useless: a transform computes all its results from the same few values.
    """
    found: dict[str, set[int]] = {}
    for this in dag.order:
        stage = dag.stages[this]
        found[this] = set(stage.folded)
        for producer in dag.producers(this):
            found[this] |= _axes_along(dag.stages[producer], found[producer], stage)
    return frozenset(found[name] & set(dag.stages[name].spatial))


def _axes_along(producer: Stage, axes: set[int], consumer: Stage) -> set[int]:
    """Axes of `consumer` that index the dimensions of `axes` in the output of `producer`."""
    write, found = producer.writes[0], set()
    for read in consumer.reads:
        if read.buffer == write.buffer:
            pairs = zip(write.indices, read.indices, strict=True)
            found |= {r.single_axis for w, r in pairs if w and r and w.single_axis in axes}
    return {axis for axis in found if axis is not None}
