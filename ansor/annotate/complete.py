"""Adds compute locations, parallel, vectorise and unroll steps to a structure (Ansor §4.2).

Deviation: the paper draws the annotations of each sampled program at random, and has separate
mutations for them. Here location, parallelism, vector length, unrolling, padding and prefetch are
decisions of the sketch, so that a program is one row of integers.
"""

from __future__ import annotations

import math

import numpy as np

from ansor.annotate.phases import in_phases
from ansor.annotate.prefetch import Prefetches
from ansor.config import SketchConfig
from ansor.dag.graph import ComputeDAG
from ansor.dag.operands import is_dense_along
from ansor.dag.padding import padded_dimensions
from ansor.dag.stage import HoleExtent, Stage
from ansor.program.decision import Decision, category, factorisations
from ansor.program.location import Locations
from ansor.program.loop_structure import num_leading, vector_axis
from ansor.program.roles import Roles
from ansor.program.sketch import Sketch
from ansor.program.steps import (
    ComputeAt,
    DotTile,
    FuseConsumer,
    Initialise,
    Interleave,
    MultiLevelTile,
    Parallel,
    RegisterTile,
    SkipPadding,
    Step,
    StripMine,
    Transpose,
    Unroll,
    Vectorize,
)
from ansor.sketch.state import State
from ansor.targets.cpu.machine import Hardware


def complete(state: State, hardware: Hardware, config: SketchConfig) -> Sketch:
    """Returns the sketch for a CPU, with a decision for every annotation and steps in the order of
    replay."""
    return _Builder(state, hardware, config).build()


class _Builder:
    """Collects steps by phase; a later phase may rely on earlier ones."""

    def __init__(self, state: State, hardware: Hardware, config: SketchConfig) -> None:
        self.dag: ComputeDAG = state.dag
        self.hardware, self.config = hardware, config
        self.prefetches = Prefetches(state.dag, hardware, config)
        self.decisions: list[Decision] = list(state.decisions)
        self.loose: set[str] = set()  # untiled roots whose vectors need not divide their axis
        self.tiles: list[MultiLevelTile | StripMine] = [
            s for s in state.steps if isinstance(s, MultiLevelTile)
        ]
        # Their vectors and their initial values belong to the instruction.
        self.on_tiles = {s.stage for s in state.steps if isinstance(s, DotTile)}
        self.inner = [s for s in state.steps if isinstance(s, RegisterTile)]
        rearranged = (s for s in state.steps if isinstance(s, Transpose | Interleave))
        self.rearranged = {s.stage: s for s in rearranged}
        self.fusions = [s for s in state.steps if isinstance(s, FuseConsumer)]
        treated = (MultiLevelTile, RegisterTile, Transpose, Interleave, FuseConsumer)
        self.kept = [s for s in state.steps if not isinstance(s, treated)]

    def build(self) -> Sketch:
        """Runs the phases."""
        shaped = (*self.tiles, *self.inner, *self.fusions)
        locations = Locations(self.dag, Roles(self.dag, shaped))
        roots = [name for name in self.dag.order if name not in locations.host]
        strips = [step for name in roots for step in self._strip(name, locations)]
        self.tiles += strips
        parallel = [step for name in roots for step in self._parallel(name)]
        located = [self._locate(name, locations) for name in locations.order]
        plain = [s for s in self._in_order() if s.name not in self.on_tiles]
        vector = [self._vectorize(s) for s in plain if vector_axis(s) is not None]
        unroll = [self._unroll(name) for name in roots]
        roles = Roles(self.dag, (*self.tiles, *self.inner))
        unroll += [Unroll(name, None) for name in locations.host if roles.unrolled(name)]
        tiles = [s for s in self.tiles if s.stage not in self.on_tiles]
        skips = [skip for step in tiles for skip in self._skip(step.stage)]
        tiled = (s for s in (*self.tiles, *self.inner) if not isinstance(s, StripMine))
        fetches = [fetch for step in tiled for fetch in self._prefetch(step.stage)]
        initial = [Initialise(s.name) for s in plain if s.reduce]
        within = [s for s in self.fusions if s.stage in locations.host]  # after their stages
        around = [s for s in self.fusions if s.stage not in locations.host]
        placed = (*self.tiles, *parallel, *around, *self.inner, *located, *within)
        last = (*vector, *unroll, *initial, *skips, *fetches)
        steps = in_phases(*self.kept, *placed, *last)
        steps = in_phases(*steps, *self.prefetches.always(steps))
        return Sketch(self.dag, steps, tuple(self.decisions))

    def _in_order(self) -> list[Stage]:
        return [self.dag.stages[name] for name in self.dag.order]

    def _decide(self, decision: Decision) -> str:
        self.decisions.append(decision)
        return decision.name

    def _strip(self, name: str, locations: Locations) -> list[StripMine]:
        """Strip-mining of an untiled root stage."""
        stage = self.dag.stages[name]
        axis = vector_axis(stage)
        if name in locations.tiled or axis is None:
            return []
        extent = stage.axes[axis].extent
        if isinstance(extent, HoleExtent):
            return [StripMine(name, axis, None)]
        most, register = self._lanes(stage), self._register(stage)
        table = factorisations(extent, 2)
        table = table[table[:, 1] <= most]
        if register and extent > register > table[:, 1].max():
            self.loose.add(name)
            widths = np.arange(register, min(most, extent) + 1, register, dtype=np.int32)
            table = np.concatenate([table, np.stack([-(-extent // widths), widths], axis=1)])
        return [StripMine(name, axis, self._decide(Decision(f"{name}.vector", name, table)))]

    def _register(self, stage: Stage) -> int:
        """Elements of a vector register; 0 if vectors must divide, because a reduction must not add
        an element twice."""
        item_bytes = self.dag.buffers[stage.output].item_bytes
        return 0 if stage.reduce else self.hardware.lanes(item_bytes)

    def _lanes(self, stage: Stage) -> int:
        """Largest number of elements of a vectorised loop. It is smaller if folded axes fill the
        unrolled block, or if elements are gathered or scattered: longer vectors then only take
        LLVM more time."""
        item_bytes = self.dag.buffers[stage.output].item_bytes
        axis = vector_axis(stage)
        folded = math.prod(stage.axes[axis].size for axis in stage.folded) * stage.density
        registers = max(1, int(self.config.max_unrolled_statements / (folded or 1.0)))
        if axis is not None and not is_dense_along(stage, axis):
            registers = 1
        return min(
            self.config.max_vector_bytes // item_bytes, registers * self.hardware.lanes(item_bytes)
        )

    def _parallel(self, name: str) -> list[Step]:
        stage = self.dag.stages[name]
        if not num_leading(stage):
            return []
        choices = tuple(range(num_leading(stage) + 1))
        hole = self._decide(category(f"{name}.parallel", name, choices))
        return [Parallel(name, hole)]

    def _locate(self, name: str, locations: Locations) -> Step:
        host = locations.host[name]
        # A vector that is moved back reads results of other iterations of its loop.
        deepest = locations.deepest(host) - (host in self.loose)
        hole = self._decide(category(f"{name}.location", name, tuple(range(deepest + 1))))
        return ComputeAt(name, host, hole)

    def _vectorize(self, stage: Stage) -> Step:
        if stage.name in self.rearranged:
            return self.rearranged[stage.name]
        return Vectorize(stage.name, self._lanes(stage), self._register(stage))

    def _skip(self, name: str) -> list[Step]:
        """A decision to leave out steps on padding, if there are enough of them."""
        found = [
            p
            for p in padded_dimensions(self.dag, name)
            if 1 - p.share >= self.config.min_padding_share
        ]
        if not found:
            return []
        hole = self._decide(category(f"{name}.padding", name, (0, 1)))
        return [SkipPadding(name, tuple(found), hole)]

    def _prefetch(self, name: str) -> list[Step]:
        """A decision to prefetch a constant, see `Prefetches.of_constant`."""
        found = self.prefetches.of_constant(name)
        if found is None:
            return []
        step, decision = found
        self._decide(decision)
        return [step]

    def _unroll(self, name: str) -> Step:
        hole = self._decide(category(f"{name}.unroll", name, self.config.unroll_steps))
        return Unroll(name, hole)
