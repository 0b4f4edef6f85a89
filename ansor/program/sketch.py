"""`Sketch`: steps and decisions without numbers. `Population`: programs as rows of integers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ansor.dag.graph import ComputeDAG
from ansor.program.decision import Decision, IntArray
from ansor.program.program import Program
from ansor.program.roles import Roles
from ansor.program.steps import ScheduleByHand, Step


@dataclass(frozen=True, eq=False)
class Sketch:
    """A high-level structure with holes (Ansor §4.1).

    `dag` is the graph after the structural steps (inlined, cached and factored stages); `steps`
    in the order in which both interpreters replay them.
    """

    dag: ComputeDAG
    steps: tuple[Step, ...]
    decisions: tuple[Decision, ...]

    @cached_property
    def name(self) -> str:
        """Hash of the steps, 8 hex digits: the same steps have the same name everywhere."""
        return hashlib.sha256(repr(self.steps).encode()).hexdigest()[:8]

    @cached_property
    def column(self) -> dict[str, int]:
        """Column of each decision in a population's `choices`."""
        return {decision.name: i for i, decision in enumerate(self.decisions)}

    @cached_property
    def roles(self) -> Roles:
        """The roles of the stages."""
        return Roles(self.dag, self.steps)

    @cached_property
    def by_hand(self) -> bool:
        """Whether a user wrote the schedule: its loops are not known before it runs."""
        return any(isinstance(step, ScheduleByHand) for step in self.steps)

    @property
    def space_size(self) -> int:
        """Number of programs, duplicates under different choices included."""
        size = 1
        for decision in self.decisions:
            size *= decision.size
        return size

    def row_of(self, program: Program) -> IntArray | None:
        """`[D] int32` choices of a program; None if it is of another sketch or space."""
        if program.steps != self.steps:
            return None
        row = [decision.find(program.values.get(decision.name, ())) for decision in self.decisions]
        if None in row:
            return None
        return np.asarray(row, dtype=np.int32)

    def row_near(self, program: Program) -> IntArray | None:
        """`[D] int32` choices that are most similar to a program with the same steps, for any
        extents; None for a program with other steps."""
        if program.steps != self.steps:
            return None
        values = program.values
        row = [decision.nearest(values.get(decision.name, ())) for decision in self.decisions]
        return None if None in row else np.asarray(row, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Population:
    """`choices [P, D] int32`: P programs of one sketch, entries index the decisions' tables."""

    sketch: Sketch
    choices: IntArray

    def __len__(self) -> int:
        return len(self.choices)

    def values(self, hole: str) -> IntArray:
        """`[P, arity] int32`: the chosen row of `hole` in each program."""
        column = self.sketch.column[hole]
        table = self.sketch.decisions[column].table
        return table.take(self.choices[:, column], axis=0)  # an eighth of the time of an index

    def take(self, rows: IntArray | np.ndarray | list[int] | slice) -> Population:
        """The programs at `rows`."""
        return Population(self.sketch, self.choices[rows])

    def program(self, row: int) -> Program:
        """One program, ready to be lowered or stored."""
        values = {
            decision.name: tuple(int(v) for v in decision.table[choice])
            for decision, choice in zip(self.sketch.decisions, self.choices[row], strict=True)
        }
        return Program(self.sketch.name, self.sketch.steps, values)


def concatenate(populations: Iterable[Population]) -> Population:
    """Joins populations of one sketch."""
    parts = list(populations)
    return Population(parts[0].sketch, np.concatenate([p.choices for p in parts]))


def empty(sketch: Sketch) -> Population:
    """No programs of a sketch."""
    return Population(sketch, np.empty((0, len(sketch.decisions)), dtype=np.int32))
