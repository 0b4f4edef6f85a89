"""Limits, sizes and rates, with unit and source, in frozen dataclasses.

The parameters of machines and the constants of the drafts are in `ansor.targets`.

Read `TuneConfig` first: it nests what a user may set. `QUICK` and `FULL` are the presets. The other
constants in capitals hold for every run.
"""

from __future__ import annotations

from ansor.config.codegen import PREFETCH, PrefetchConfig
from ansor.config.measuring import MeasureConfig
from ansor.config.search_space import GpuSketchConfig, SketchConfig
from ansor.config.tuning import (
    FULL,
    QUICK,
    CostModelConfig,
    EvolutionConfig,
    SchedulerConfig,
    TuneConfig,
)

__all__ = [
    "FULL",
    "PREFETCH",
    "QUICK",
    "CostModelConfig",
    "EvolutionConfig",
    "GpuSketchConfig",
    "MeasureConfig",
    "PrefetchConfig",
    "SchedulerConfig",
    "SketchConfig",
    "TuneConfig",
]
