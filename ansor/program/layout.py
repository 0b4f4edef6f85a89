"""Packed layouts of constant operands: what `LayoutRewrite` does to shapes, indices and arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ansor.program.program import Program
from ansor.program.steps import LayoutRewrite

Array = npt.NDArray[Any]


def packings(program: Program) -> dict[str, int]:
    """Buffers that the program wants packed, with the width of the packed dimension."""
    return {
        step.buffer: program.values[step.hole][0]
        for step in program.steps
        if isinstance(step, LayoutRewrite) and program.values[step.hole][0] > 0
    }


def pack(array: Array, width: int) -> Array:
    """``[..., n] -> [n / width, ..., width]``, contiguous."""
    split = array.reshape(*array.shape[:-1], array.shape[-1] // width, width)
    return np.ascontiguousarray(np.moveaxis(split, -2, 0))


def packed_arrays(program: Program, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays as the program wants them, by buffer name, in the same order."""
    widths = packings(program)
    return {
        name: pack(array, widths[name]) if name in widths else array
        for name, array in arrays.items()
    }
