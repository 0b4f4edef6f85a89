"""TVM's schedule without its look at the type of every argument of every call.

It takes a fifth of the time to schedule a program of many stages. What it would find are mistakes
of the caller's, which a type checker finds; whether a step applies TVM checks apart from it.
"""

from __future__ import annotations

import inspect

from tvm import s_tir


class UncheckedSchedule(s_tir.Schedule):  # type: ignore[misc]
    """A `Schedule` whose methods take their arguments as they are."""


for _name, _method in inspect.getmembers(s_tir.Schedule, inspect.isfunction):
    if hasattr(_method, "__wrapped__"):
        setattr(UncheckedSchedule, _name, _method.__wrapped__)
