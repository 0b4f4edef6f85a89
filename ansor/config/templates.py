"""Schedules that users write."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TemplateConfig:
    """The run of a schedule that lists its knobs (`ansor.templates`)."""

    first_runs: int = 16  # runs with other values each, until one gives a legal schedule


TEMPLATES = TemplateConfig()
