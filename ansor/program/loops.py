"""The loops of a stage before any number is chosen, shared by both interpreters of a sketch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ansor.dag.stage import Stage
from ansor.program.steps import MultiLevelTile, StripMine


@dataclass(frozen=True)
class Loop:
    """Part `part` (0 is the outermost) of axis `axis` of the stage."""

    axis: int
    part: int
    reduce: bool


def tiled_loops(stage: Stage, structure: str) -> tuple[Loop, ...]:
    """Loops of a multi-level tiled stage, outermost first: "SSRSRS" over all axes of each kind."""
    seen = {"S": 0, "R": 0}
    loops: list[Loop] = []
    for kind in structure:
        axes = stage.spatial if kind == "S" else stage.reduce
        loops += [Loop(axis, seen[kind], kind == "R") for axis in axes]
        seen[kind] += 1
    return tuple(loops)


def simple_loops(stage: Stage, split: int | None) -> tuple[Loop, ...]:
    """Loops of an untiled stage; spatial axis `split` has two parts, the second innermost."""
    loops = [Loop(axis, 0, False) for axis in stage.spatial]
    loops += [Loop(axis, 0, True) for axis in stage.reduce]
    if split is not None:
        loops.append(Loop(split, 1, False))
    return tuple(loops)


def vector_axis(stage: Stage) -> int | None:
    """The spatial axis that an untiled stage is vectorised over: its last."""
    return stage.spatial[-1] if stage.spatial else None


def own_loops(stage: Stage, shape: MultiLevelTile | StripMine | None) -> tuple[Loop, ...]:
    """Loops of a stage as tiled, strip-mined, or (attached to a host) split for the vector unit."""
    if isinstance(shape, MultiLevelTile):
        return tiled_loops(stage, shape.structure)
    if isinstance(shape, StripMine):
        return simple_loops(stage, shape.axis)
    return simple_loops(stage, vector_axis(stage))


@lru_cache(maxsize=64)
def lane_table(most: int, size: int) -> npt.NDArray[np.int32]:
    """`[size + 1]`: the largest divisor of each extent that is at most `most`."""
    table = np.ones(size + 1, dtype=np.int32)
    for lanes in range(2, most + 1):
        table[lanes::lanes] = lanes
    return table


def lanes(extent: int, most: int) -> int:
    """The largest divisor of `extent` that is at most `most`."""
    return int(lane_table(most, extent)[extent])
