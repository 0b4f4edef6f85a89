"""A template-free auto-scheduler for tensor programs.

`auto_schedule(model, target)` searches for fast programs of every function of a network and returns
the compiled network. Function `auto_schedule_many` tunes several networks at once, and `tune` an
operator. Function `load` reads a saved network, and `apply_best` compiles a model with the best
programs of a log. Function `quantize` makes an 8-bit model of a float one, and `write_report` makes
a page of the results. Read `calls.py` first: it follows a model through all folders, in order.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ansor.errors import (
    AnsorError,
    ArgumentError,
    DatabaseError,
    GraphWarning,
    MeasureError,
    TemplateMismatchError,
    UnsupportedError,
)
from ansor.version import __version__ as __version__

if TYPE_CHECKING:
    from ansor.calls import apply_best, auto_schedule, auto_schedule_many, tune
    from ansor.diagnosis.doctor import doctor
    from ansor.diagnosis.finding import DoctorReport
    from ansor.measure.rpc_device import RpcDevice
    from ansor.quantization.quantize import quantize
    from ansor.report.write import write_report
    from ansor.run.tuned.saved import load
    from ansor.run.tuned.tuned_model import TunedModel
    from ansor.task_scheduler.objective import GeometricSpeedup, LatencyRequirement, total_latency
    from ansor.templates.imported_trace import import_trace
    from ansor.templates.schedule import Schedule
    from ansor.templates.template import template

__all__ = [
    "AnsorError",
    "ArgumentError",
    "DatabaseError",
    "DoctorReport",
    "GeometricSpeedup",
    "GraphWarning",
    "LatencyRequirement",
    "MeasureError",
    "RpcDevice",
    "Schedule",
    "TemplateMismatchError",
    "TunedModel",
    "UnsupportedError",
    "apply_best",
    "auto_schedule",
    "auto_schedule_many",
    "doctor",
    "import_trace",
    "load",
    "quantize",
    "template",
    "total_latency",
    "tune",
    "write_report",
]

# Measurement workers import this package too and need none of the below: it is loaded on demand.
_HOME = {
    "apply_best": "ansor.calls",
    "auto_schedule": "ansor.calls",
    "tune": "ansor.calls",
    "write_report": "ansor.report.write",
    "auto_schedule_many": "ansor.calls",
    "TunedModel": "ansor.run.tuned.tuned_model",
    "DoctorReport": "ansor.diagnosis.finding",
    "doctor": "ansor.diagnosis.doctor",
    "RpcDevice": "ansor.measure.rpc_device",
    "import_trace": "ansor.templates.imported_trace",
    "load": "ansor.run.tuned.saved",
    "quantize": "ansor.quantization.quantize",
    "GeometricSpeedup": "ansor.task_scheduler.objective",
    "LatencyRequirement": "ansor.task_scheduler.objective",
    "Schedule": "ansor.templates.schedule",
    "template": "ansor.templates.template",
    "total_latency": "ansor.task_scheduler.objective",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
