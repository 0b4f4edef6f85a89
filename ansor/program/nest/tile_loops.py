"""The loops of a stage that an instruction on tiles computes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansor.program.loop_structure import num_leading
from ansor.program.nest.stage_nest import Column, StageNest


@dataclass(frozen=True)
class TileLoops:
    """Numbers of the innermost loops, level by level.

    Attributes:
        reduction: the loops during which results stay in registers.
        rows: of result tiles: all spatial axes but the last.
        lanes: the loop over result tiles along the last axis.
        instruction: of one instruction: rows, words along one axis or more, lanes.
    """

    reduction: range
    rows: range
    lanes: int
    instruction: range

    @classmethod
    def of(cls, nest: StageNest) -> TileLoops:
        """The loops of a stage with a `tile_instruction`."""
        end = len(nest.loops)
        first = end - nest.tile_depth
        results = range(first - num_leading(nest.stage), first)
        reduction = range(results.start - len(nest.stage.reduce), results.start)
        return cls(reduction, results[:-1], results[-1], range(first, end))


def result_tiles(nest: StageNest) -> tuple[Column, Column]:
    """`[P]` each: tiles of the left and of the right operand whose products are in registers at the
    same time."""
    loops = TileLoops.of(nest)
    rows: Column = np.prod(nest.extents[loops.rows], axis=0, dtype=np.int32)
    return rows, nest.extents[loops.lanes]
