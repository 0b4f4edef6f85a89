"""The step of instructions that multiply tiles of registers."""

from __future__ import annotations

from ansor.lowering.passes.tiles import PRODUCTS, TILE
from ansor.lowering.replay import Replay
from ansor.lowering.steps.apply import apply
from ansor.lowering.steps.tiling import split_root
from ansor.program.loop_structure import num_leading
from ansor.program.steps import DotTile


@apply.register
def dot_tile(step: DotTile, replay: Replay) -> None:
    """Splits the loops, and marks the innermost reduction level and the instruction's loops."""
    split_root(replay, step.stage, step)
    loops, stage = replay.loops[step.stage], replay.dag.stages[step.stage]
    instruction = len(loops) - len(step.matrix)
    reduction = instruction - num_leading(stage) - len(stage.reduce)
    replay.sch.annotate(loops[reduction], PRODUCTS, step.instruction)
    replay.sch.annotate(loops[instruction], TILE, step.instruction)
