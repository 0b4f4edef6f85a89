"""Adds compute locations, parallel, vectorise and unroll steps to a structure (Ansor §4.2)."""

from __future__ import annotations

import numpy as np

from ansor.annotate.location import Locations
from ansor.config import SketchConfig
from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import HoleExtent, Stage
from ansor.hardware.cpu import Hardware
from ansor.program.decision import Decision, category, divisors
from ansor.program.loops import own_loops, vector_axis
from ansor.program.roles import Roles
from ansor.program.sketch import Sketch
from ansor.program.steps import (
    CacheRead,
    CacheWrite,
    ComputeAt,
    FuseConsumer,
    Initialise,
    Inline,
    LayoutRewrite,
    MultiLevelTile,
    Parallel,
    RFactor,
    Step,
    StripMine,
    Unroll,
    Vectorize,
)
from ansor.sketch.state import State


def complete(state: State, hardware: Hardware, config: SketchConfig) -> Sketch:
    """Returns the sketch with every annotation a hole, steps in the order of their replay."""
    builder = _Builder(state, hardware, config)
    return builder.build()


class _Builder:
    """Collects steps by phase; a later phase may rely on what an earlier one did."""

    def __init__(self, state: State, hardware: Hardware, config: SketchConfig) -> None:
        self.dag: ComputeDAG = state.dag
        self.hardware, self.config = hardware, config
        self.decisions: list[Decision] = list(state.decisions)
        structural = Inline | CacheWrite | CacheRead | LayoutRewrite | RFactor
        self.structure: list[Step] = [s for s in state.steps if isinstance(s, structural)]
        self.tiles: list[Step] = [s for s in state.steps if isinstance(s, MultiLevelTile)]
        self.fusions: list[Step] = [s for s in state.steps if isinstance(s, FuseConsumer)]

    def build(self) -> Sketch:
        """Runs the phases."""
        locations = Locations(self.dag, Roles(self.dag, (*self.tiles, *self.fusions)))
        roots = [name for name in self.dag.order if name not in locations.host]
        strips = [step for name in roots for step in self._strip(name, locations)]
        self.tiles += strips
        parallel = [step for name in roots for step in self._parallel(name)]
        located = [self._locate(name, locations) for name in locations.order]
        vector = [self._vectorize(name) for name in self.dag.order if self.dag.stages[name].spatial]
        unroll = [self._unroll(name) for name in roots]
        initial = [Initialise(s.name) for s in self.dag.stages.values() if s.reduce]
        steps = (*self.structure, *self.tiles, *parallel, *self.fusions, *located)
        return Sketch(self.dag, (*steps, *vector, *unroll, *initial), tuple(self.decisions))

    def _decide(self, decision: Decision) -> str:
        self.decisions.append(decision)
        return decision.name

    def _strip(self, name: str, locations: Locations) -> list[Step]:
        """Strip-mining of an untiled root stage."""
        stage = self.dag.stages[name]
        axis = vector_axis(stage)
        if name in locations.tiled or axis is None:
            return []
        extent = stage.axes[axis].extent
        if isinstance(extent, HoleExtent):
            return [StripMine(name, axis, None)]
        rows = [(extent // v, v) for v in divisors(extent) if v <= self._lanes(stage)]
        decision = Decision(f"{name}.vector", name, np.asarray(rows, dtype=np.int32))
        return [StripMine(name, axis, self._decide(decision))]

    def _lanes(self, stage: Stage) -> int:
        """Most elements of a vectorised loop."""
        return self.config.max_vector_bytes // self.dag.buffers[stage.output].item_bytes

    def _parallel(self, name: str) -> list[Step]:
        stage = self.dag.stages[name]
        if not stage.spatial:
            return []
        choices = tuple(range(len(stage.spatial) + 1))
        hole = self._decide(category(f"{name}.parallel", name, choices))
        return [Parallel(name, hole)]

    def _locate(self, name: str, locations: Locations) -> Step:
        host = locations.host[name]
        loops = own_loops(self.dag.stages[host], locations.shape(host))
        deepest = locations.deepest(host, loops)
        hole = self._decide(category(f"{name}.location", name, tuple(range(deepest + 1))))
        return ComputeAt(name, host, hole)

    def _vectorize(self, name: str) -> Step:
        return Vectorize(name, self._lanes(self.dag.stages[name]))

    def _unroll(self, name: str) -> Step:
        hole = self._decide(category(f"{name}.unroll", name, self.config.unroll_steps))
        return Unroll(name, hole)
