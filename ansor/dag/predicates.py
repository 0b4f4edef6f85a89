"""The paper's predicates over a `ComputeDAG` (Ansor §4.1, Table 1)."""

from __future__ import annotations

import math
from dataclasses import replace

import networkx as nx

from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import Access, HoleExtent, Stage, axes_of


def is_inlinable(dag: ComputeDAG, name: str) -> bool:
    """Whether substituting the stage into its consumers is right and never repeats costly work.

    The paper's "strictly inlinable": no reduction, no branch, every read an axis plus a constant
    with the axes in order, no special function.
    Deviation: any branch-free map is inlined where its single consumer is no reduction, since
    nothing is then computed twice (special functions and transposes in a chain of elementwise
    operators); the paper leaves such stages to the search, which never keeps them apart.
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
    return [i.single_axis if i else None for i in stage.writes[0].indices] == [
        *range(len(stage.axes))
    ] and all(i is not None and i.const == 0 for i in stage.writes[0].indices)


def has_data_reuse(dag: ComputeDAG, name: str) -> bool:
    """Whether multi-level tiling can pay: a reduction some read of which leaves out spatial axes.

    Folded axes do not count: they are unrolled, and what they reuse stays in registers.

    Deviation: TVM's version also tiles stages without a reduction that have two such reads, e.g.
    two broadcast operands; there the reused values fit in registers and tiling brings nothing.
    """
    stage = dag.stages[name]
    spatial = {a for a in stage.spatial if _extent(stage, a) != 1} - stage.folded
    reusing = any(spatial - axes_of(read) for read in stage.reads)
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


def _axes_along(producer: Stage, axes: set[int], consumer: Stage) -> set[int]:
    """Axes of `consumer` that index what `producer` wrote where one of its `axes` did."""
    write, found = producer.writes[0], set()
    for read in consumer.reads:
        if read.buffer == write.buffer:
            pairs = zip(write.indices, read.indices, strict=True)
            found |= {r.single_axis for w, r in pairs if w and r and w.single_axis in axes}
    return {axis for axis in found if axis is not None}


def batch_axes(dag: ComputeDAG, name: str) -> frozenset[int]:
    """Spatial axes that all reads of a stage depend on, the last axis aside: without any reuse."""
    stage = dag.stages[name]
    inner = set(stage.spatial[:-1])
    shared = inner.intersection(*(axes_of(read) for read in stage.reads))
    return frozenset(shared) if shared != inner else frozenset()


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
    if any(isinstance(axis.extent, HoleExtent) for axis in stage.axes):
        return False
    space = math.prod(stage.axes[a].size for a in stage.spatial)
    reduction = math.prod(stage.axes[a].size for a in stage.reduce)
    return space < reduction and space < cores * spatial_per_core and reduction > cores


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


def reuse_of(dag: ComputeDAG, name: str, buffer: str) -> int:
    """How often a stage reads each element of `buffer`: the spatial points that leave it out."""
    stage = dag.stages[name]
    used: set[int] = set()
    for read in stage.reads:
        if read.buffer == buffer:
            used |= axes_of(read)
    return math.prod(stage.axes[a].size for a in stage.spatial if a not in used)


def reads_per_element(dag: ComputeDAG, consumer: str, producer: str) -> float:
    """How often a stage reads each element that another one writes, on average."""
    domain = math.prod(axis.size for axis in dag.stages[consumer].axes)
    return domain / math.prod(axis.size for axis in dag.stages[producer].axes)


def is_whole_along_vectors(dag: ComputeDAG, consumer: str, producer: str) -> bool:
    """Whether padding leaves alone the dimension along which its consumer is vectorised.

    Else its condition would differ from lane to lane.
    """
    stage, padded = dag.stages[consumer], dag.stages[producer]
    if not stage.spatial or len(padded.reads) != 1:
        return False
    last = stage.spatial[-1]
    source = dag.buffers[padded.reads[0].buffer].shape
    reads = [read for read in stage.reads if read.buffer == padded.output]
    grown = {d for d, axis in enumerate(padded.axes) if axis.extent != source[d]}
    return len(source) == len(padded.axes) and not any(
        index is None or last in axes_of(replace(read, indices=(index,)))
        for read in reads
        for d, index in enumerate(read.indices)
        if d in grown
    )


def contiguous_reduction(dag: ComputeDAG, name: str) -> int | None:
    """The reduction axis along which a stage's largest operand lies in memory, if there is one.

    Only where no spatial axis does so: vector lanes then have to come from the reduction.
    """
    stage = dag.stages[name]
    if stage.reducer is None or not stage.reads:
        return None
    split = {axis for derived in stage.derived for axis in (derived.outer, derived.inner)}
    main = max(stage.reads, key=lambda read: len(axes_of(read)))
    last = main.indices[-1]
    axes = [atom for atom, factor in last.terms if factor == 1] if last is not None else []
    split |= stage.folded
    found = [a for a in axes if isinstance(a, int) and a in stage.reduce and a not in split]
    return found[0] if len(axes) == len(found) == 1 else None


def _in_order(read: Access) -> bool:
    axes = [i.single_axis for i in read.indices if i is not None and i.terms]
    known = all(i is not None for i in read.indices)
    return known and None not in axes and axes == sorted(set(axes))  # type: ignore[type-var]


def _is_identity(read: Access) -> bool:
    return [i.single_axis if i else None for i in read.indices] == [
        *range(len(read.indices))
    ] and all(i is not None and i.const == 0 for i in read.indices)


def _extent(stage: Stage, axis: int) -> int | HoleExtent:
    return stage.axes[axis].extent
