"""A kind of target that is written through the public seams alone: a scalar core for C code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm.target import Target

from ansor.annotate.phases import in_phases
from ansor.config import SketchConfig
from ansor.features.loop_tables import Floats
from ansor.program.decision import category
from ansor.program.nest import LoopNest
from ansor.program.sketch import Sketch
from ansor.program.steps import Unroll
from ansor.sketch.rules import always_inline, skip
from ansor.sketch.state import State
from ansor.targets.backend import Backend, Compiler, Execution, MachineReader, TargetSyntax
from ansor.targets.search import Profiles, TargetSearch
from ansor.targets.time_parts import TimeParts


@dataclass(frozen=True)
class ScalarCore:
    """The machine: one operation per cycle."""

    name: str = "scalar core"
    peak_flops: float = 1e9
    peak_bytes: float = math.inf
    memory_bandwidth: float = math.inf

    def product_flops(self, item_bytes: int) -> float:
        return math.inf


@dataclass(frozen=True, eq=False)
class Operations:
    """The draft: a loop costs a cycle per iteration, unless it is unrolled."""

    seconds: Floats

    @property
    def code(self) -> Floats:
        return np.zeros_like(self.seconds)

    def columns(self, total: Floats) -> list[Floats]:
        return [self.seconds / total]

    def parts(self) -> TimeParts:
        return TimeParts({"instructions": self.seconds}, self.seconds)


def complete(state: State, core: ScalarCore, config: SketchConfig) -> Sketch:
    """Each stage may be unrolled."""
    holes = [category(f"{name}.unroll", name, (0, 16)) for name in state.dag.order]
    steps = [Unroll(hole.stage, hole.name) for hole in holes]
    return Sketch(state.dag, in_phases(*state.steps, *steps), (*state.decisions, *holes))


def draft(nest: LoopNest, profiles: Profiles, core: ScalarCore) -> Mapping[str, Operations]:
    """Seconds of each stage."""
    loops = {name: np.prod(stage.extents, axis=0) for name, stage in nest.stages.items()}
    return {name: Operations(np.float32(n / core.peak_flops)) for name, n in loops.items()}


def anything(*given: Any) -> None:
    """Accepts every target."""


def all_legal(nest: LoopNest, core: ScalarCore, config: SketchConfig) -> Any:
    return np.ones(nest.size, dtype=np.bool_)


TOY = Backend(
    kind="c",
    title="scalar cores",
    home=f"{__name__}:TOY",
    syntax=TargetSyntax(lambda o, _: o, anything, lambda t, n: '{"kind":"c"}', anything),
    machine=MachineReader(
        *2 * [lambda t, n: ScalarCore()], lambda t, n: 1e9, lambda core: {"core": core.name}
    ),
    search=TargetSearch((always_inline, skip), complete, all_legal, draft),
    compiler=Compiler(lambda target: Target("llvm")),
    execution=Execution(on_host=True),
)
