"""Schedules that users write."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TemplateConfig:
    """Schedules that users write or import (`ansor.templates`)."""

    first_runs: int = 16  # attempts with different values to get a legal schedule
    imported_records: int = 4  # of each function, from a database of MetaSchedule


TEMPLATES = TemplateConfig()
