"""The replay of a schedule that a user wrote."""

from __future__ import annotations

from ansor.errors import LoweringError
from ansor.lowering.replay import Replay
from ansor.lowering.steps.apply import apply
from ansor.program.steps import ScheduleByHand


@apply.register
def schedule_by_hand(step: ScheduleByHand, replay: Replay) -> None:
    by_hand = replay.by_hand
    if by_hand is None or by_hand.name != step.name:
        raise LoweringError(
            f"the schedule {step.name!r} is not at hand; give it in templates=[...]"
        )
    replay.start_from(by_hand.apply(replay.func, replay.values))
