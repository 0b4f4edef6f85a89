"""The type of derivation rules, and helpers that several rules need.

A rule examines the current stage of a state and returns the states that it derives. It returns none
if it does not apply. An `exclusive` result keeps later rules from the same stage.
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
    """Arguments of rules beside the state: the machine's parameters and the settings."""

    machine: M
    config: SketchConfig


@dataclass(frozen=True)
class Derivation:
    """The states that a rule derived from a state; none if it does not apply."""

    states: tuple[State, ...] = ()
    exclusive: bool = False


Rule = Callable[[State, RuleContext[M]], Derivation]


def locations_of(state: State) -> Locations:
    """Possible compute locations of the stages visited so far and of the current one."""
    return Locations(state.dag, Roles(state.dag, state.steps))


def holes_of(dag: ComputeDAG, name: str, decisions: Mapping[int, Decision]) -> tuple[str, ...]:
    axes = range(len(dag.stages[name].axes))
    return tuple(decisions[axis].name if axis in decisions else "" for axis in axes)
