"""What a derivation rule is, and what several of them need.

A rule looks at the current stage of a state and returns the states it derives: none where it does
not apply. `exclusive` says that no later rule may try the same stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic

from ansor.config import SketchConfig
from ansor.dag.graph import ComputeDAG
from ansor.program.decision import Decision
from ansor.program.location import Locations
from ansor.program.roles import Roles
from ansor.sketch.state import State
from ansor.targets.machine import M


@dataclass(frozen=True)
class RuleContext(Generic[M]):
    """What rules may look at beside the state: the machine's parameters and the settings."""

    machine: M
    config: SketchConfig


@dataclass(frozen=True)
class Derivation:
    """What a rule made of a state; no states where it does not apply."""

    states: tuple[State, ...] = ()
    exclusive: bool = False


Rule = Callable[[State, RuleContext[M]], Derivation]


def locations_of(state: State) -> Locations:
    """Where the stages visited so far, and the current one, may be computed."""
    return Locations(state.dag, Roles(state.dag, state.steps))


def holes_of(dag: ComputeDAG, name: str, decisions: Mapping[int, Decision]) -> tuple[str, ...]:
    axes = range(len(dag.stages[name].axes))
    return tuple(decisions[axis].name if axis in decisions else "" for axis in axes)
