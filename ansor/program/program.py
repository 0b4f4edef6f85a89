"""One program: the steps of a sketch and a value for every decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansor.program.steps import MultiLevelTile, Step


@dataclass(frozen=True)
class Program:
    """Steps and the integers that fill their holes.

    `values[hole]` is the chosen row of that decision's table, e.g. ``(14, 1, 4, 1)`` for a tile.
    A program without steps is the compute definition itself. Programs are picklable and do not use
    TVM.
    """

    sketch: str = "untuned"  # name of the sketch
    steps: tuple[Step, ...] = ()
    values: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def shared_axes(program: Program) -> tuple[str, ...]:
    """Names of the decisions that split an axis of the outermost loops, which cores share."""
    return tuple(
        hole
        for step in program.steps
        if isinstance(step, MultiLevelTile)
        for hole in filter(program.values.get, step.holes)
        if len(program.values[hole]) >= step.structure.count("S") and program.values[hole][0] > 1
    )
