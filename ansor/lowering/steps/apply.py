"""The replay of a step, by its class; the other modules of this package register the classes."""

from __future__ import annotations

from functools import singledispatch

from ansor.errors import LoweringError
from ansor.lowering.replay import Replay
from ansor.program.steps import Step


@singledispatch
def apply(step: Step, replay: Replay) -> None:
    """Replays one step on the schedule of `replay`.

    Raises:
        LoweringError: no module has registered the class of the step.
    """
    raise LoweringError(f"the lowering does not know the step {step}")
