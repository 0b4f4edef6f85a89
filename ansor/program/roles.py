"""The roles of stages in a sketch: tiled, attached, vectorised, and their places."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import Access
from ansor.program.loop_structure import (
    Shape,
    enclosing_loops,
    num_leading,
    own_loops,
    unrolled_loops,
)
from ansor.program.steps import (
    Bind,
    BindLoops,
    BindRows,
    BindTiles,
    BindWarps,
    ComputeAt,
    ComputePerThread,
    CooperativeFetch,
    CooperativeStore,
    FuseConsumer,
    LayoutRewrite,
    LoadFragment,
    MultiLevelTile,
    Parallel,
    Pipeline,
    Placed,
    Prefetch,
    PrefetchConsumer,
    ReduceInBlock,
    RegisterTile,
    SkipPadding,
    Step,
    Store,
    Unroll,
    Vectorize,
)

THREAD_LEVEL = 2  # of the spatial tile levels, after blocks and virtual threads
WARP_LEVEL = 1  # of the spatial tile levels of tensor cores, after blocks
WARP = 32  # threads
FRAGMENT = 16  # rows, columns and steps of an instruction of tensor cores


@dataclass(frozen=True, eq=False)
class Roles:
    """An index over the steps of one sketch; `dag` is the graph after the structural steps."""

    dag: ComputeDAG
    steps: tuple[Step, ...]

    @cached_property
    def shape(self) -> dict[str, Shape]:
        """Stage to the step that splits its loops, for roots and for tiled stages inside others."""
        return {s.stage: s for s in self.steps if isinstance(s, Shape)}

    @cached_property
    def parallel(self) -> dict[str, str]:
        """Root stage to the decision on the number of its fused loops."""
        return {s.stage: s.hole for s in self.steps if isinstance(s, Parallel)}

    @cached_property
    def fused(self) -> dict[str, FuseConsumer]:
        """Fused consumer to its step."""
        return {s.consumer: s for s in self.steps if isinstance(s, FuseConsumer)}

    @cached_property
    def located(self) -> dict[str, ComputeAt]:
        """Stage with a searched compute location to its step."""
        return {s.stage: s for s in self.steps if isinstance(s, ComputeAt)}

    @cached_property
    def bound(self) -> dict[str, Bind]:
        """Root stage to the step that maps its loops to blocks and threads of a GPU."""
        return {s.stage: s for s in self.steps if isinstance(s, Bind)}

    @cached_property
    def placed(self) -> dict[str, Placed]:
        """Stage with a fixed place inside another to its step."""
        return {s.stage: s for s in self.steps if isinstance(s, Placed)}

    @cached_property
    def pipelined(self) -> dict[str, str]:
        """Tiled root stage to the decision on its number of prefetched rounds."""
        return {s.stage: s.hole for s in self.steps if isinstance(s, Pipeline)}

    @cached_property
    def scope(self) -> dict[str, str]:
        """Stage to the memory of a GPU that it writes to, unless that is the global memory."""
        scopes = {s.stage: s.scope for s in self.steps if isinstance(s, Store)}
        for name, step in self.placed.items():
            if isinstance(step, LoadFragment):
                dtype = self.dag.buffers[self.dag.stages[name].output].dtype
                scopes[name] = fragment_scope(step.operand, dtype)
            elif not isinstance(step, ComputePerThread):
                scopes[name] = self.shared_scope(step.host)
        return scopes

    def shared_scope(self, host: str) -> str:
        """Scope of a kernel's shared memory. It is dynamic with tensor cores, which need more than
        a block may declare statically."""
        return "shared.dyn" if isinstance(self.bound.get(host), BindWarps) else "shared"

    def is_common(self, name: str) -> bool:
        """Whether the threads of a block work on an attached stage together."""
        return isinstance(self.placed.get(name), CooperativeFetch | ReduceInBlock)

    @cached_property
    def host(self) -> dict[str, str]:
        """Attached stage to the stage whose loops may enclose it."""
        fused = {name: step.stage for name, step in self.fused.items()}
        located = {name: step.host for name, step in self.located.items()}
        return fused | located | {name: step.host for name, step in self.placed.items()}

    def root(self, name: str) -> str:
        """The stage whose nest holds a stage: itself, its host, or its host's host."""
        return root_of(name, self.host)

    def fused_into(self, name: str) -> list[str]:
        """The consumers that are computed with the tiles of a stage."""
        return [consumer for consumer, step in self.fused.items() if step.stage == name]

    def is_inner(self, name: str) -> bool:
        """Whether a stage is fused into one that is itself attached."""
        return name in self.fused and self.fused[name].stage in self.host

    def readers(self, name: str) -> list[tuple[str, str]]:
        """The stages that read the tiles of an attached stage in its host, each with the buffer.

        A consumer that is fused into it finishes each tile; the tile's shape is the same.
        """
        dag = self.dag
        fused = self.fused_into(name)
        last = next((c for c in dag.consumers(name) if c in fused), name)
        return [(c, dag.stages[last].output) for c in dag.consumers(last)]

    @cached_property
    def vector(self) -> dict[str, Vectorize]:
        """Vectorised stage to its step."""
        return {s.stage: s for s in self.steps if isinstance(s, Vectorize)}

    @cached_property
    def packed(self) -> dict[str, str]:
        """Packed buffer to the decision on the width of its panels."""
        return {s.buffer: s.hole for s in self.steps if isinstance(s, LayoutRewrite)}

    @cached_property
    def skipping(self) -> dict[str, SkipPadding]:
        """Tiled stage that may leave out steps on padding to its step."""
        return {s.stage: s for s in self.steps if isinstance(s, SkipPadding)}

    @cached_property
    def prefetch(self) -> dict[str, Prefetch]:
        """Tiled stage that may prefetch a constant to its step."""
        return {s.stage: s for s in self.steps if isinstance(s, Prefetch)}

    @cached_property
    def consumer_prefetches(self) -> dict[str, PrefetchConsumer]:
        """Fused consumer whose tiles are prefetched to its step."""
        return {s.consumer: s for s in self.steps if isinstance(s, PrefetchConsumer)}

    @cached_property
    def unroll(self) -> dict[str, str]:
        """Root stage to the hole of its unroll step."""
        steps = (s for s in self.steps if isinstance(s, Unroll))
        return {s.stage: s.hole for s in steps if s.hole is not None}

    @cached_property
    def distinguishing_holes(self) -> tuple[str, ...]:
        """Decisions whose every choice makes a different program."""
        return tuple(hole for step in self.steps for hole in step.distinguishing_holes)

    @cached_property
    def evaluation_order(self) -> tuple[str, ...]:
        """Roots, their fused consumers, then located stages, each with its fused consumers.
        Consumers come before producers."""
        roots = [name for name in self.dag.order if name not in self.host]
        outer = [name for name in self.fused if not self.is_inner(name)]
        attached = [name for name in reversed(self.dag.order) if name in self.host]
        located = [name for name in attached if name not in self.fused]
        return (*roots, *outer, *located, *(n for n in self.fused if self.is_inner(n)))

    def hole_of(self, stage: str, axis: int) -> str | None:
        """The decision that splits an axis of a tiled stage, or limits its register tile."""
        shape = self.shape.get(stage)
        if isinstance(shape, MultiLevelTile | RegisterTile):
            return shape.holes[axis] or None
        return shape.hole if shape is not None and shape.axis == axis else None

    def threads_of(self, name: str) -> list[int]:
        """Numbers of a bound root stage's loops that threads or virtual threads share."""
        return [number for number, kind in self.bindings(name).items() if kind != "block"]

    def bindings(self, name: str) -> dict[int, str]:
        """Thread indices of a stage's own loops on a GPU, by number: for a bound root, and for
        loops that the threads of a block share."""
        if self.is_common(name) or isinstance(self.fused.get(name), CooperativeStore):
            together = isinstance(self.placed.get(name), ReduceInBlock)
            loops = own_loops(self.dag.stages[name], None)
            return {i: "thread" for i, x in enumerate(loops) if not x.part and x.reduce == together}
        bound, count = self.bound.get(name), num_leading(self.dag.stages[name])
        levels: tuple[tuple[str, int], ...] = ()
        if isinstance(bound, BindTiles):
            levels = (("block", count), ("vthread", count), ("thread", count))
        elif isinstance(bound, BindWarps):
            levels = (("block", count), ("warp", count))
        elif isinstance(bound, BindRows):
            levels = (("block", bound.rows), ("thread", count - bound.rows))
        elif bound is not None:
            levels = (("threads", count),)
        return dict(enumerate(kind for kind, loops in levels for _ in range(loops)))

    def threads_per_block(self, values: Mapping[str, tuple[int, ...]], name: str) -> int:
        """Threads of a block of the kernel that computes a bound root stage."""
        bound = self.bound[name]
        if isinstance(bound, BindLoops | BindRows):
            return values[bound.hole][0]
        holes = [self.hole_of(name, axis) for axis in self.dag.stages[name].spatial]
        if isinstance(bound, BindWarps):
            return WARP * math.prod(values[hole][WARP_LEVEL] for hole in holes if hole)
        return math.prod(values[hole][THREAD_LEVEL] for hole in holes if hole)

    def unrolled(self, name: str) -> list[int]:
        """Numbers of a stage's own loops that are unrolled."""
        return unrolled_loops(self.dag.stages[name], self.shape.get(name), name in self.bound)

    def dims_of(self, name: str) -> dict[int, int]:
        """Maps dimensions of the buffer between an attached stage and its neighbours to axes of the
        stage. A fused consumer reads this buffer, and any other stage writes it."""
        if name in self.fused:
            buffer = self.dag.stages[self.fused[name].stage].output
            return {dim: dim for dim in range(len(self.dag.buffers[buffer].shape))}
        axes = enumerate(self.dag.stages[name].writes[0].axes)
        return {dim: axis for dim, axis in axes if axis is not None}

    def neighbours(self, name: str) -> list[tuple[str, Access]]:
        """Accesses that fix the region of an attached stage: by its consumers, or, for a fused
        consumer, the write of the stage it was fused into."""
        if name in self.fused:
            tiled = self.fused[name].stage
            return [(tiled, self.dag.stages[tiled].writes[0])]
        return [
            (consumer, read)
            for consumer, buffer in self.readers(name)
            for read in self.dag.stages[consumer].reads
            if read.buffer == buffer
        ]

    def position_of(self, values: Mapping[str, tuple[int, ...]], name: str) -> int:
        """Number of host loops around an attached stage of one program, after all constraints."""
        fixed = self.fixed_position(name)
        if fixed is not None:
            return fixed
        step = self.located[name]
        fused = values[self.parallel[step.host]][0] if step.host in self.parallel else 0
        others = [reader for reader, _ in self.readers(name) if reader != step.host]
        consumers = [np.asarray([self.position_of(values, c)], dtype=np.int32) for c in others]
        chosen = np.asarray(values[step.hole], dtype=np.int32)
        return int(effective_position(chosen, np.asarray([fused], dtype=np.int32), consumers)[0])

    def fixed_position(self, name: str) -> int | None:
        """Number of its host's own loops around a stage with a fixed place; None for others."""
        if name in self.fused:
            step = self.fused[name]
            return step.level * len(self.dag.stages[step.stage].spatial)
        if name not in self.placed:
            return None
        host = self.placed[name].host
        stage, shape, bound = self.dag.stages[host], self.shape.get(host), self.bound.get(host)
        if isinstance(shape, MultiLevelTile):
            inner = len(stage.reduce) if isinstance(self.placed[name], LoadFragment) else 0
            return enclosing_loops(stage, shape.structure) + inner
        return bound.rows if isinstance(bound, BindRows) else num_leading(stage)


def fragment_scope(operand: str, dtype: str) -> str:
    """The scope of a warp's registers for tiles of an operand, "a" or "b". Operands in float32 use
    the scope of results (`ansor.lowering.tf32`)."""
    return "wmma.accumulator" if dtype == "float32" else f"wmma.matrix_{operand}"


def root_of(name: str, hosts: Mapping[str, str]) -> str:
    """The stage at the end of a chain of hosts."""
    while name in hosts:
        name = hosts[name]
    return name


def effective_position(
    chosen: npt.NDArray[np.int32],
    fused: npt.NDArray[np.int32],
    consumers: list[npt.NDArray[np.int32]],
) -> npt.NDArray[np.int32]:
    """The final place of a stage, `[P]`: inside all fused parallel loops, at most as deep as its
    consumers, and at the root if one of these is."""
    position = np.where(chosen > 0, np.maximum(chosen, fused), 0)
    for other in consumers:
        position = np.minimum(position, other)
    return position.astype(np.int32)
