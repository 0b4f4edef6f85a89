"""A template-free auto-scheduler for tensor programs.

`auto_schedule(model, target)` searches for fast programs of every function of a network (or of one
operator) and returns it compiled; `load` brings a saved one back. Read `tune.py` first: it follows
a model through all folders, in order.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ansor.errors import AnsorError, ArgumentError, DatabaseError, MeasureError, UnsupportedError

if TYPE_CHECKING:
    from ansor.tune import auto_schedule
    from ansor.tuned import TunedModel, load

__version__ = "0.1.0"

__all__ = [
    "AnsorError",
    "ArgumentError",
    "DatabaseError",
    "MeasureError",
    "TunedModel",
    "UnsupportedError",
    "auto_schedule",
    "load",
]

# Measurement workers import this package too and need none of the below: it is loaded on demand.
_HOME = {"auto_schedule": "ansor.tune", "TunedModel": "ansor.tuned", "load": "ansor.tuned"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
