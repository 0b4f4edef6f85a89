"""TVM's schedule without the type checks of the arguments of every call.

These checks take a fifth of the time to schedule a program of many stages. A type checker finds the
same mistakes. TVM checks separately whether a step applies.
"""

from __future__ import annotations

import inspect

from tvm import s_tir


class UncheckedSchedule(s_tir.Schedule):  # type: ignore[misc]
    """A `Schedule` whose methods do not check the types of arguments."""


for _name, _method in inspect.getmembers(s_tir.Schedule, inspect.isfunction):
    if hasattr(_method, "__wrapped__"):
        setattr(UncheckedSchedule, _name, _method.__wrapped__)
