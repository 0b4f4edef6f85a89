"""The step of a schedule that a user wrote."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.program.steps.base import Phase, Step


@dataclass(frozen=True)
class ScheduleByHand(Step):
    """A function that a user wrote schedules the whole definition.

    A record holds its name and the chosen values. The running process supplies the function.

    Attributes:
        name: of the function.
        holes: the decisions that the function reads, in the order of its first run.
    """

    phase = Phase.STRUCTURE

    name: str
    holes: tuple[str, ...]

    @property
    def distinguishing_holes(self) -> tuple[str, ...]:
        """All decisions, because the loops are not known before the function runs."""
        return self.holes
