"""Narrow operands: integers of 8 bits whose values have 7.

An instruction that adds two products of `uint8` and `int8` in 16 bits is exact for them:
`2 * 255 * 64 < 2 ** 15`. The promise is an attribute of a function, so it is a part of a task's
definition and of its key.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import tirx

NARROW = "ansor.narrow"  # attribute of a PrimFunc: positions of its narrow parameters
_LIMIT = 64  # of the absolute value


def is_narrow(values: npt.NDArray[Any]) -> bool:
    """Whether an array is narrow."""
    is_inside = np.abs(values.astype(np.int16)).max(initial=0) <= _LIMIT
    return values.dtype == np.int8 and bool(is_inside)


def narrow_parameters(func: tirx.PrimFunc) -> frozenset[int]:
    """Positions of the parameters that a function declares as narrow."""
    return frozenset(int(position) for position in (func.attrs or {}).get(NARROW, ()))


def with_narrow(func: tirx.PrimFunc, positions: Collection[int]) -> tirx.PrimFunc:
    """A function whose callers promise that the parameters at these positions are narrow."""
    if positions:
        return func.with_attr(NARROW, sorted(positions))
    return func.without_attr(NARROW) if narrow_parameters(func) else func
