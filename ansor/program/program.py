"""One program: the steps of a sketch with every hole filled; lowered, measured and stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansor.program.steps import Step


@dataclass(frozen=True)
class Program:
    """Steps and the integers that fill their holes.

    `values[hole]` is the chosen row of that decision's table, e.g. ``(14, 1, 4, 1)`` for a tile.
    A program without steps is the compute definition as it was written. Picklable, no TVM inside.
    """

    sketch: str = "untuned"  # name of the sketch
    steps: tuple[Step, ...] = ()
    values: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
