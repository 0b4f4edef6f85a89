"""`TargetSearch`: the parts of the search for one kind of target; independent of TVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol

import numpy as np
import numpy.typing as npt

from ansor.config import SketchConfig
from ansor.dag.graph import ComputeDAG
from ansor.features.loop_tables import Floats
from ansor.features.profile import StageProfile
from ansor.program.nest import LoopNest
from ansor.program.sketch import Sketch
from ansor.sketch.generate import generate
from ansor.sketch.rule import Rule
from ansor.sketch.state import State
from ansor.targets.machine import M
from ansor.targets.stage_details import StageDetails
from ansor.targets.time_parts import TimeParts


class StageDraft(Protocol):
    """The draft of one stage of a population of P programs.

    Attributes:
        seconds: `[P]`, the time that the stage adds to the program.
        code: `[P]`, instructions that the compiler has to process; zeros if they are not counted.
    """

    @property
    def seconds(self) -> Floats: ...

    @property
    def code(self) -> Floats: ...

    def columns(self, total: Floats) -> list[Floats]:
        """Inputs of the learned model, `[P]` each; `total` is the time of the program."""
        ...

    def parts(self) -> TimeParts:
        """The parts of `seconds`."""
        ...


Profiles = dict[str, StageProfile]


def no_remarks(dag: ComputeDAG, machine: Any) -> list[str]:
    """A kind of target without remarks."""
    return []


def no_details(nest: LoopNest, profiles: Profiles, machine: Any) -> Mapping[str, StageDetails]:
    """A kind of target without details."""
    return {}


@dataclass(frozen=True)
class TargetSearch(Generic[M]):
    """Rules, annotation, limits and draft of one kind of target.

    Attributes:
        rules: derivation rules, in the order in which they are tried (Ansor §4.1).
        complete: turns a structure into a sketch whose annotations are decisions (Ansor §4.2).
        legal: `[P] bool`, the programs of a population that may be compiled.
        draft: the estimate of each stage, by its name.
        remarks: for users, on a definition on this machine.
        details: registers, traffic and occupancy of each stage, by its name; the nest and the
            profiles are of one program.
    """

    rules: tuple[Rule[M], ...]
    complete: Callable[[State, M, SketchConfig], Sketch]
    legal: Callable[[LoopNest, M, SketchConfig], npt.NDArray[np.bool_]]
    draft: Callable[[LoopNest, Profiles, M], Mapping[str, StageDraft]]
    remarks: Callable[[ComputeDAG, M], list[str]] = no_remarks
    details: Callable[[LoopNest, Profiles, M], Mapping[str, StageDetails]] = no_details

    def sketches(
        self,
        dag: ComputeDAG,
        machine: M,
        config: SketchConfig,
        user_rules: Iterable[Rule[Any]] = (),
    ) -> list[Sketch]:
        """The complete sketches of a definition; `user_rules` come before the built-in ones."""
        states = generate(dag, machine, (*user_rules, *self.rules), config)
        return [self.complete(state, machine, config) for state in states]
