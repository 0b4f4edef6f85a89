"""Replays the steps of one program on a TensorIR schedule.

The first interpreter of the steps; the second is `ansor.program.nest`.
"""

from __future__ import annotations

from typing import TypeVar

from tvm import tirx

from ansor.errors import LoweringError
from ansor.lowering.after_scheduling import rewritten
from ansor.lowering.replay import Replay
from ansor.lowering.steps import (
    by_hand,
    dot_products,
    dot_tiles,
    gpu,
    loop_annotations,
    structure,
    tensor_cores,
    tiling,
)
from ansor.lowering.steps.apply import apply
from ansor.program.hand_schedule import HandSchedule
from ansor.program.program import Program

R = TypeVar("R", bound=Replay)

# Each registers its steps.
HANDLERS = (
    *(structure, tiling, loop_annotations, dot_products, dot_tiles, gpu, tensor_cores),
    by_hand,
)


def lower(
    func: tirx.PrimFunc, program: Program, hand_schedule: HandSchedule | None = None
) -> tirx.PrimFunc:
    """Returns `func` scheduled as `program` says; without steps, `func` itself.

    Args:
        func: the definition.
        program: of the definition.
        hand_schedule: the schedule that the program names, where a user wrote it.

    Raises:
        LoweringError: a step does not apply (the message names it).
    """
    if not program.steps:
        return func
    return rewritten(schedule(func, program, hand_schedule))


def schedule(
    func: tirx.PrimFunc, program: Program, hand_schedule: HandSchedule | None = None
) -> Replay:
    """The schedule after all steps, before the rewrites that follow it.

    Raises:
        LoweringError: a step does not apply (the message names it).
    """
    return replayed(Replay(func, program, hand_schedule))


def replayed(replay: R) -> R:
    """A replay after all steps of its program.

    Raises:
        LoweringError: a step does not apply (the message names it).
    """
    for step in replay.steps:
        try:
            apply(step, replay)
        except (RuntimeError, ValueError, LookupError, TypeError) as error:  # TVM's are the first
            reason = str(error).strip().splitlines()[-1:]
            raise LoweringError(f"{step}: {' '.join(reason)}") from error
    return replay
