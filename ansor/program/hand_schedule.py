"""`HandSchedule`: a schedule that a user wrote, with its decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ansor.dag.graph import ComputeDAG
from ansor.program.decision import Decision
from ansor.program.sketch import Sketch
from ansor.program.steps import ScheduleByHand

Values = Mapping[str, tuple[int, ...]]  # the chosen row of each decision's table


@dataclass(frozen=True, eq=False)
class HandSchedule:
    """A schedule that a user wrote.

    Attributes:
        name: the name in records.
        decisions: its knobs, in the order of its first run.
        apply: returns the scheduled function for a definition and the chosen values. It raises
            LoweringError if the values give no legal schedule.
        module: of the user's function; it is sent to worker processes by value.
        trace: the trace of TVM's schedule for the same arguments. It raises LoweringError as above,
            and UnsupportedError if the user's function makes no schedule.
    """

    name: str
    decisions: tuple[Decision, ...]
    apply: Callable[[Any, Values], Any]
    module: str
    trace: Callable[[Any, Values], Any]

    def sketch(self, dag: ComputeDAG) -> Sketch:
        """The space of programs: one step, and a decision for each knob."""
        holes = tuple(decision.name for decision in self.decisions)
        return Sketch(dag, (ScheduleByHand(self.name, holes),), self.decisions)
