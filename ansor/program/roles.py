"""What the steps of a sketch make of each stage: who is tiled, attached, vectorised, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import Access
from ansor.program.loops import Shape, unrolled_loops
from ansor.program.steps import (
    ComputeAt,
    FuseConsumer,
    LayoutRewrite,
    MultiLevelTile,
    Parallel,
    RegisterTile,
    Step,
    Unroll,
    Vectorize,
)

if TYPE_CHECKING:
    from ansor.program.nest import LoopNest


@dataclass(frozen=True, eq=False)
class Roles:
    """An index over the steps of one sketch; `dag` is the graph after the structural steps."""

    dag: ComputeDAG
    steps: tuple[Step, ...]

    @cached_property
    def shape(self) -> dict[str, Shape]:
        """How a stage's loops are split: those of roots, and of tiled stages inside others."""
        return {s.stage: s for s in self.steps if isinstance(s, Shape)}

    @cached_property
    def parallel(self) -> dict[str, str]:
        """Root stage to the hole that says how many of its loops are fused."""
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
    def host(self) -> dict[str, str]:
        """Attached stage to the stage whose loops may enclose it."""
        fused = {name: step.stage for name, step in self.fused.items()}
        return fused | {name: step.host for name, step in self.located.items()}

    @cached_property
    def vector(self) -> dict[str, Vectorize]:
        """Vectorised stage to its step."""
        return {s.stage: s for s in self.steps if isinstance(s, Vectorize)}

    @cached_property
    def packed(self) -> dict[str, str]:
        """Packed buffer to the hole that says how wide."""
        return {s.buffer: s.hole for s in self.steps if isinstance(s, LayoutRewrite)}

    @cached_property
    def unroll(self) -> dict[str, str]:
        """Root stage to the hole of its unroll step."""
        steps = (s for s in self.steps if isinstance(s, Unroll))
        return {s.stage: s.hole for s in steps if s.hole is not None}

    @cached_property
    def evaluation_order(self) -> tuple[str, ...]:
        """Roots, then fused consumers, then located stages, consumers before producers."""
        roots = [name for name in self.dag.order if name not in self.host]
        located = [name for name in reversed(self.dag.order) if name in self.located]
        return (*roots, *self.fused, *located)

    def hole_of(self, stage: str, axis: int) -> str | None:
        """The decision that splits an axis of a tiled stage, or says how far."""
        shape = self.shape.get(stage)
        if isinstance(shape, MultiLevelTile | RegisterTile):
            return shape.holes[axis] or None
        return shape.hole if shape is not None and shape.axis == axis else None

    def unrolled(self, name: str) -> list[int]:
        """Numbers of a stage's own loops that are unrolled."""
        return unrolled_loops(self.dag.stages[name], self.shape.get(name))

    def dims_of(self, name: str) -> dict[int, int]:
        """For each dimension of the buffer between an attached stage and its neighbours, the axis
        that runs along it: of the buffer that it writes or, for a fused consumer, reads."""
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
        buffer = self.dag.stages[name].output
        return [
            (consumer, read)
            for consumer in self.dag.consumers(name)
            for read in self.dag.stages[consumer].reads
            if read.buffer == buffer
        ]

    def position(self, nest: LoopNest, name: str) -> npt.NDArray[np.int32]:
        """`[P]`: number of host loops around an attached stage, after all constraints."""
        if name in self.fused:
            step = self.fused[name]
            level = step.level * len(self.dag.stages[step.stage].spatial)
            return np.full(nest.size, level, dtype=np.int32)
        step_at = self.located[name]
        chosen = nest.population.values(step_at.hole)[:, 0]
        hole = self.parallel.get(step_at.host)
        fused = nest.population.values(hole)[:, 0] if hole else np.zeros_like(chosen)
        consumers = [nest.stages[c].position for c in self.dag.consumers(name) if c != step_at.host]
        return effective_position(chosen, fused, consumers)

    def position_of(self, values: Mapping[str, tuple[int, ...]], name: str) -> int:
        """`position` for one program."""
        if name in self.fused:
            return self.fused[name].level * len(self.dag.stages[self.fused[name].stage].spatial)
        step = self.located[name]
        fused = values[self.parallel[step.host]][0] if step.host in self.parallel else 0
        others = [c for c in self.dag.consumers(name) if c != step.host]
        consumers = [np.asarray([self.position_of(values, c)], dtype=np.int32) for c in others]
        chosen = np.asarray(values[step.hole], dtype=np.int32)
        return int(effective_position(chosen, np.asarray([fused], dtype=np.int32), consumers)[0])


def effective_position(
    chosen: npt.NDArray[np.int32],
    fused: npt.NDArray[np.int32],
    consumers: list[npt.NDArray[np.int32]],
) -> npt.NDArray[np.int32]:
    """Where a stage ends up, `[P]`: never inside the fused parallel loops, never deeper than any
    of its consumers, and at the root if one of those is."""
    position = np.where(chosen > 0, np.maximum(chosen, fused), 0)
    for other in consumers:
        position = np.minimum(position, other)
    return position.astype(np.int32)
