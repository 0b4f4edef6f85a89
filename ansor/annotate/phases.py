"""The order in which the steps of a sketch are replayed."""

from __future__ import annotations

from ansor.program.steps import Step


def in_phases(*steps: Step) -> tuple[Step, ...]:
    """The steps sorted by phase; those of one phase keep their order."""
    return tuple(sorted(steps, key=lambda step: step.phase))
