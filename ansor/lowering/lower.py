"""Replays the steps of one program on a TensorIR schedule.

The first interpreter of the steps; the second is `ansor.program.nest`.
"""

from __future__ import annotations

from tvm import tirx

from ansor.errors import LoweringError
from ansor.lowering.after_scheduling import rewritten
from ansor.lowering.replay import Replay
from ansor.lowering.steps import (
    dot_products,
    dot_tiles,
    gpu,
    loop_annotations,
    structure,
    tensor_cores,
    tiling,
)
from ansor.lowering.steps.apply import apply
from ansor.program.program import Program

# Each registers its steps.
HANDLERS = (structure, tiling, loop_annotations, dot_products, dot_tiles, gpu, tensor_cores)


def lower(func: tirx.PrimFunc, program: Program) -> tirx.PrimFunc:
    """Returns `func` scheduled as `program` says; without steps, `func` itself.

    Raises:
        LoweringError: a step does not apply (the message names it).
    """
    if not program.steps:
        return func
    return rewritten(schedule(func, program))


def schedule(func: tirx.PrimFunc, program: Program) -> Replay:
    """The schedule after all steps, before the rewrites that follow it.

    Raises:
        LoweringError: a step does not apply (the message names it).
    """
    replay = Replay(func, program)
    for step in program.steps:
        try:
            apply(step, replay)
        except (RuntimeError, ValueError, LookupError, TypeError) as error:  # TVM's are the first
            reason = str(error).strip().splitlines()[-1:]
            raise LoweringError(f"{step}: {' '.join(reason)}") from error
    return replay
