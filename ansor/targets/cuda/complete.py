"""Adds the remaining decisions to a structure for a GPU: threads, vectors, unrolling."""

from __future__ import annotations

from ansor.annotate.phases import in_phases
from ansor.config import GpuSketchConfig, SketchConfig
from ansor.dag.stage import HoleExtent, Stage
from ansor.program.decision import Decision, category
from ansor.program.loop_structure import vector_axis
from ansor.program.roles import Roles
from ansor.program.sketch import Sketch
from ansor.program.steps import (
    Bind,
    BindLoops,
    BindWarps,
    ComputePerThread,
    FuseConsumer,
    Initialise,
    MultiLevelTile,
    Pipeline,
    Placed,
    ReduceInBlock,
    Step,
    StripMine,
    Tensorize,
    TensorTile,
    Unroll,
    Vectorize,
)
from ansor.sketch.state import State
from ansor.sketch.tables import vectors
from ansor.targets.cuda.machine import Gpu


def complete_for_gpu(state: State, gpu: Gpu, config: SketchConfig) -> Sketch:
    """Returns the sketch with a decision for every annotation, and steps in the order of replay."""
    return _GpuBuilder(state, config.gpu).build()


class _GpuBuilder:
    """Collects steps by phase; a later phase may rely on earlier ones."""

    def __init__(self, state: State, config: GpuSketchConfig) -> None:
        self.dag, self.steps, self.config = state.dag, state.steps, config
        self.decisions = list(state.decisions)

    def build(self) -> Sketch:
        """Runs the phases."""
        roles = Roles(self.dag, self.steps)
        roots = [name for name in self.dag.order if name not in roles.host]
        bound = {s.stage for s in self.steps if isinstance(s, Bind)}
        loops = [s for name in roots if name not in bound for s in self._bind(name)]
        shapes: list[Step] = self._of(MultiLevelTile | StripMine)
        shapes += [s for s in loops if isinstance(s, StripMine)]
        binds = self._of(Bind) + [s for s in loops if isinstance(s, BindLoops)]
        places = {s.stage: s for s in self.steps if isinstance(s, Placed)}
        located = [places[name] for name in reversed(self.dag.order) if name in places]
        vectorized = [s for name in self.dag.order for s in self._vectorize(name, roles)]
        unroll = [self._unroll(name, roles) for name in roots]
        initial = [
            Initialise(name)
            for name, stage in self.dag.stages.items()
            if stage.reduce
            and not isinstance(places.get(name), ReduceInBlock)
            and not isinstance(roles.shape.get(name), TensorTile)
        ]
        treated = MultiLevelTile | StripMine | Bind | FuseConsumer | Placed | Tensorize | Pipeline
        kept = [step for step in self.steps if not isinstance(step, treated)]
        placed = [*shapes, *binds, *self._of(FuseConsumer), *located]
        last = [*vectorized, *unroll, *initial, *self._of(Tensorize), *self._of(Pipeline)]
        return Sketch(self.dag, in_phases(*kept, *placed, *last), tuple(self.decisions))

    def _of(self, kind: object) -> list[Step]:
        return [step for step in self.steps if isinstance(step, kind)]  # type: ignore[arg-type]

    def _decide(self, decision: Decision) -> str:
        self.decisions.append(decision)
        return decision.name

    def _bind(self, name: str) -> list[Step]:
        """Steps of a root stage that is not tiled: loops for threads, and vectors."""
        stage = self.dag.stages[name]
        axis = vector_axis(stage)
        if axis is None:  # a single element
            return [BindLoops(name, self._decide(category(f"{name}.threads", name, (1,))))]
        threads = self._decide(category(f"{name}.threads", name, self.config.threads))
        return [self._strip(stage, axis), BindLoops(name, threads)]

    def _strip(self, stage: Stage, axis: int) -> Step:
        extent = stage.axes[axis].extent
        if isinstance(extent, HoleExtent):
            return StripMine(stage.name, axis, None)
        # A reduction without a place in registers adds up one element at a time.
        widths = (1,) if stage.reduce else self.config.vector_widths
        return StripMine(stage.name, axis, self._decide(vectors(stage.name, extent, widths)))

    def _vectorize(self, name: str, roles: Roles) -> list[Step]:
        """Vectorises stages that write to memory. Fetched and shared stages have their own
        vectors."""
        stage, place = self.dag.stages[name], roles.placed.get(name)
        if vector_axis(stage) is None or isinstance(roles.shape.get(name), MultiLevelTile):
            return []
        if place is not None and not isinstance(place, ComputePerThread):
            return []
        if isinstance(roles.bound.get(roles.host.get(name, "")), BindWarps):
            return []
        lanes = self.config.max_vector_bytes // self.dag.buffers[stage.output].item_bytes
        return [Vectorize(name, max(1, lanes))]

    def _unroll(self, name: str, roles: Roles) -> Step:
        tensor = isinstance(roles.shape.get(name), TensorTile)
        steps = self.config.tensor_unroll_steps if tensor else self.config.unroll_steps
        hole = self._decide(category(f"{name}.unroll", name, steps))
        return Unroll(name, hole)
