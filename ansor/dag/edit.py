"""The structural steps of a sketch, as functions from a `ComputeDAG` to a new one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ansor.config import DAG
from ansor.dag import index as ix
from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import (
    Access,
    Axis,
    Buffer,
    DerivedAxis,
    HoleExtent,
    OpCounts,
    Stage,
    axes_of_access,
)


def inline(dag: ComputeDAG, name: str) -> ComputeDAG:
    """Substitutes stage `name` into its consumers."""
    gone = dag.stages[name]
    stages = [_substitute(stage, gone) for stage in dag.stages.values() if stage.name != name]
    buffers = {k: b for k, b in dag.buffers.items() if k != gone.output}
    return ComputeDAG(stages, buffers)


def cache_write(dag: ComputeDAG, name: str, copy: str) -> ComputeDAG:
    """Lets stage `name` write a new buffer, which the new stage `copy` copies to the output."""
    stage = dag.stages[name]
    output = dag.buffers[stage.output]
    local = replace(output, name=copy, kind="intermediate")
    write = replace(stage.writes[0], buffer=copy)
    indices = tuple(ix.axis_index(i) for i in range(len(output.shape)))
    axes = tuple(Axis(f"c{i}", extent, False) for i, extent in enumerate(output.shape))
    new = Stage(copy, axes, (Access(copy, indices),), (Access(output.name, indices),), body="copy")
    stages = _replaced(dag, replace(stage, writes=(write,)), after=new)
    return ComputeDAG(stages, {**dag.buffers, copy: local})


def cache_read(
    dag: ComputeDAG, name: str, buffer: str, copy: str, order: tuple[int, ...] = ()
) -> ComputeDAG:
    """Lets the new stage `copy` copy `buffer`, and stage `name` read the copy.

    Dimension ``d`` of the copy is dimension ``order[d]`` of the buffer, the same one by default.
    """
    stage, source = dag.stages[name], dag.buffers[buffer]
    order = order or tuple(range(len(source.shape)))
    shape = tuple(source.shape[d] for d in order)
    axes = tuple(Axis(f"c{d}", source.shape[d], False) for d in order)
    identity = tuple(ix.axis_index(i) for i in range(len(order)))
    back = tuple(ix.axis_index(order.index(d)) for d in range(len(order)))
    new = Stage(copy, axes, (Access(buffer, back),), (Access(copy, identity),), body="copy")
    reads = tuple(_reordered(r, copy, order) if r.buffer == buffer else r for r in stage.reads)
    stages: list[Stage] = []
    for old in dag.stages.values():
        stages += [new, replace(stage, reads=reads)] if old.name == name else [old]
    local = replace(source, name=copy, shape=shape, kind="intermediate", constant=False)
    return ComputeDAG(stages, {**dag.buffers, copy: local})


def _reordered(read: Access, buffer: str, order: tuple[int, ...]) -> Access:
    return Access(buffer, tuple(read.indices[d] for d in order))


def split_axis(
    dag: ComputeDAG, name: str, axis: int, factor: int, consumer: str = ""
) -> ComputeDAG:
    """Makes two axes of spatial `axis` of stage `name`: quotient and remainder by `factor`.

    A `consumer` is an elementwise map of the stage's output. Its axis and the buffer's dimension
    are split, too. The indices of both stages then still agree.
    """
    stage = dag.stages[name]
    buffers, written = dict(dag.buffers), dag.buffers[stage.output]
    between = written.name if consumer else ""
    stages = {**dag.stages, name: _split(stage, axis, factor, between)}
    if consumer:
        dim = stage.writes[0].axes.index(axis)
        stages[consumer] = _split(dag.stages[consumer], dim, factor, between)
        shape = _parts(written.shape, dim, factor)
        buffers[between] = replace(written, shape=shape)
    return ComputeDAG(list(stages.values()), buffers)


def _parts(
    sizes: tuple[int | HoleExtent, ...], position: int, factor: int
) -> tuple[int | HoleExtent, ...]:
    size = sizes[position]
    assert isinstance(size, int)
    return (*sizes[:position], size // factor, factor, *sizes[position + 1 :])


def _split(stage: Stage, axis: int, factor: int, between: str) -> Stage:
    """A stage with one axis split, and the dimension of `between` that the axis runs along."""
    old = stage.axes[axis]
    parts = [replace(old, extent=old.size // factor), Axis(f"{old.name}_phase", factor, False)]
    axes = (*stage.axes[:axis], *parts, *stage.axes[axis + 1 :])
    extents = [a.size for a in axes]
    values = [ix.axis_index(a + (a > axis)) for a in range(len(stage.axes))]
    values[axis] = ix.add(ix.scale(ix.axis_index(axis), factor), ix.axis_index(axis + 1))

    def moved(access: Access) -> Access:
        indices: list[ix.Index | None] = []
        for index in access.indices:
            if access.buffer == between and index is not None and index.single_axis == axis:
                indices += [ix.axis_index(axis), ix.axis_index(axis + 1)]
            else:
                new = None if index is None else ix.substitute(index, values)
                indices.append(None if new is None else ix.simplify(new, extents))
        return replace(access, indices=tuple(indices))

    return replace(
        stage,
        axes=axes,
        reads=tuple(map(moved, stage.reads)),
        writes=tuple(map(moved, stage.writes)),
        folded=frozenset(a + (a > axis) for a in stage.folded),
        nonzero=(),
    )


def move_axis(dag: ComputeDAG, name: str, axis: int, consumer: str) -> ComputeDAG:
    """Makes spatial `axis` of stage `name` its last, and its dimension the last of the buffer that
    `consumer` maps."""
    stage, written = dag.stages[name], dag.buffers[dag.stages[name].output]
    order = moved_last(axis, stage.spatial[-1], len(stage.axes))
    dim = stage.writes[0].axes.index(axis)
    rank = len(written.shape)
    dims = moved_last(dim, rank - 1, rank)
    stages = {
        **dag.stages,
        name: _ordered(stage, order, written.name, dims),
        consumer: _ordered(dag.stages[consumer], dims, written.name, dims),
    }
    shape = tuple(written.shape[d] for d in dims)
    buffers = {**dag.buffers, written.name: replace(written, shape=shape)}
    return ComputeDAG(list(stages.values()), buffers)


def moved_last(one: int, last: int, count: int) -> tuple[int, ...]:
    """An order of `count` things in which `one` comes right after `last`."""
    order = [i for i in range(count) if i != one]
    order.insert(order.index(last) + 1 if last != one else one, one)
    return tuple(order)


def _ordered(stage: Stage, order: tuple[int, ...], between: str, dims: tuple[int, ...]) -> Stage:
    """A stage with its axes in another order, and the dimensions of `between` in theirs."""
    values = [ix.axis_index(order.index(a)) for a in range(len(order))]

    def moved(access: Access) -> Access:
        there = _mapped(access, values)
        return _reordered(there, between, dims) if access.buffer == between else there

    return replace(
        stage,
        axes=tuple(stage.axes[a] for a in order),
        reads=tuple(map(moved, stage.reads)),
        writes=tuple(map(moved, stage.writes)),
        folded=frozenset(order.index(a) for a in stage.folded),
        nonzero=tuple((order.index(a), first, end) for a, first, end in stage.nonzero),
    )


def rfactor(
    dag: ComputeDAG, name: str, axis: int, hole: str, partial: str, inner: bool
) -> ComputeDAG:
    """Splits reduction `axis` by `hole`; `partial` reduces one part, `name` then the other.

    The new spatial axis comes first (outer factor) or last (inner factor) in `partial` and in
    the buffer it writes. An axis that was split before cannot be split again.
    """
    stage = dag.stages[name]
    kept, factored = (0, 1) if inner else (1, 0)
    new = Axis(f"{stage.axes[axis].name}_f", HoleExtent(hole, factored), False)
    rest = Axis(f"{stage.axes[axis].name}_k", HoleExtent(hole, kept), True)
    part_stage, part_buffer = _partial(dag, stage, axis, new, rest, partial, inner)
    final = _final(stage, new, part_buffer.name, inner)
    stages = [s for s in dag.stages.values() if s.name != name]
    position = list(dag.stages).index(name)
    stages[position:position] = [part_stage, final]
    return ComputeDAG(stages, {**dag.buffers, part_buffer.name: part_buffer})


def _partial(
    dag: ComputeDAG, stage: Stage, axis: int, new: Axis, rest: Axis, partial: str, inner: bool
) -> tuple[Stage, Buffer]:
    """The stage that reduces the kept part, and its buffer.

    Axes: spatial ones with the new one first or last, then the reductions, `rest` in its place.
    """
    order = [*stage.spatial, *stage.reduce]
    position = len(stage.spatial) if inner else 0
    axes = [rest if a == axis else stage.axes[a] for a in order]
    axes.insert(position, new)
    where = {a: i + (i >= position) for i, a in enumerate(order)}
    values: list[ix.Index | None] = [ix.axis_index(where[a]) for a in range(len(stage.axes))]
    values += [ix.axis_index(len(axes) + i) for i in range(len(stage.derived))]
    values[axis] = ix.axis_index(len(axes) + len(stage.derived))
    outer, inside = (where[axis], position) if inner else (position, where[axis])
    reads = tuple(_mapped(read, values) for read in stage.reads)
    spatial = [ix.axis_index(where[a]) for a in stage.spatial]
    spatial.insert(position, ix.axis_index(position))
    shape = [stage.axes[a].extent for a in stage.spatial]
    shape.insert(position, new.extent)
    buffer = Buffer(partial, tuple(shape), dag.buffers[stage.output].dtype, "intermediate")
    writes = (Access(partial, tuple(spatial)),)
    earlier = (DerivedAxis(where[d.outer], where[d.inner]) for d in stage.derived)
    derived = (*earlier, DerivedAxis(outer, inside))
    made = replace(
        stage, name=partial, axes=tuple(axes), reads=reads, writes=writes, derived=derived
    )
    return made, buffer


def _final(stage: Stage, new: Axis, partial: str, inner: bool) -> Stage:
    """The stage that reduces the results of `partial`."""
    spatial = [stage.axes[a] for a in stage.spatial]
    axes = (*spatial, replace(new, reduce=True))
    indices = [ix.axis_index(i) for i in range(len(spatial))]
    indices.insert(len(spatial) if inner else 0, ix.axis_index(len(spatial)))
    renumber = {a: i for i, a in enumerate(stage.spatial)}
    writes = tuple(
        Access(w.buffer, tuple(i and ix.rename(i, renumber) for i in w.indices))
        for w in stage.writes
    )
    reads = (Access(partial, tuple(indices)),)
    return replace(
        stage,
        axes=axes,
        reads=reads,
        writes=writes,
        ops=OpCounts(float_add=1),
        body="combine",
        derived=(),
    )


def _substitute(stage: Stage, gone: Stage) -> Stage:
    """Replaces every read of the output of `gone` by the reads of `gone`."""
    reads: list[Access] = []
    ops, branch = stage.ops, stage.has_branch
    folded, density = stage.folded, stage.density
    for read in stage.reads:
        if read.buffer != gone.output:
            reads.append(read)
        elif is_table(gone):  # they become literals when its indices are unrolled
            if folded:  # a product of two constants is one constant
                ops = replace(ops, float_mul=max(ops.float_mul - 1, 0))
            folded |= axes_of_access(read)
            density *= gone.density
        else:
            reads += [_mapped(inner, read.indices) for inner in gone.reads]
            ops, branch = ops + gone.ops, branch or gone.has_branch
    made = replace(stage, ops=ops, has_branch=branch, folded=folded, density=density)
    return replace(made, reads=tuple(dict.fromkeys(reads)))


def is_table(stage: Stage) -> bool:
    """Whether a stage only holds a few constants."""
    return not stage.reads and math.prod(axis.size for axis in stage.axes) <= DAG.max_table


def _mapped(access: Access, values: Sequence[ix.Index | None]) -> Access:
    indices = tuple(None if i is None else ix.substitute(i, values) for i in access.indices)
    return replace(access, indices=indices)


def _replaced(dag: ComputeDAG, stage: Stage, after: Stage) -> list[Stage]:
    stages: list[Stage] = []
    for old in dag.stages.values():
        stages.append(stage if old.name == stage.name else old)
        if old.name == stage.name:
            stages.append(after)
    return stages
