"""Reading at positions, sums of windows, and bits in another dtype."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm import te, tirx

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import HALF, dtype_of, is_float, shape_of
from ansor.frontend.importers.from_onnx.converters.context import (
    Context,
    Converter,
    dtype_from_onnx,
)
from ansor.frontend.importers.operators.grid_sample import Sampling
from ansor.frontend.importers.operators.grid_sample import grid_sample as sample
from ansor.frontend.importers.operators.overlapping_windows import WindowAxis, sum_of_windows

_MODES = {"bilinear": "linear", "bicubic": "cubic"}  # the names of before version 20


def grid_sample(c: Context) -> Any:
    """Elements at the positions of a grid."""
    x, grid = c.operand(0), c.operand(1)
    dtype = dtype_of(x)
    if not is_float(dtype_of(x)):
        raise OperatorError(f"sampling of {dtype} is not supported")
    wide = "float32" if dtype in HALF else dtype
    mode = c.attr("mode", "linear")
    sampling = Sampling(
        _MODES.get(mode, mode), c.attr("padding_mode", "zeros"), bool(c.attr("align_corners", 0))
    )
    return c.cast(sample(c.bb, c.cast(x, wide), c.cast(grid, wide), sampling), dtype)


def col2im(c: Context) -> Any:
    """An image that is the sum of its windows."""
    extents, sizes = c.integers(1), c.integers(2)
    ones, pads = [1] * len(sizes), c.attr("pads", [0] * 2 * len(sizes))
    per_axis = zip(
        *(extents, sizes, c.attr("strides", ones), c.attr("dilations", ones)),
        *(pads[: len(sizes)], pads[len(sizes) :]),
        strict=True,
    )
    return sum_of_windows(c.bb, c.operand(0), [WindowAxis(*numbers) for numbers in per_axis])


def bit_cast(c: Context) -> Any:
    """The same bits in another dtype of the same size."""
    x, dtype = c.operand(0), dtype_from_onnx(int(c.attr("to")))
    given = dtype_of(x)
    if given == "bool" and dtype in ("int8", "uint8"):
        return c.cast(x, dtype)
    if "bool" in (given, dtype) or "bfloat16" in (given, dtype):
        raise OperatorError(f"the bits of {given} as {dtype} are not supported")
    if np.dtype(given).itemsize != np.dtype(dtype).itemsize:
        raise OperatorError(f"{given} and {dtype} differ in size")

    def define(data: Any) -> Any:
        return te.compute(
            shape_of(x), lambda *at: tirx.reinterpret(dtype, data(*at)), name="bit_cast"
        )

    return x if given == dtype else c.te(define, x, name="bit_cast")


CONVERTERS: Mapping[str, Converter] = {
    "BitCast": bit_cast,
    "Col2Im": col2im,
    "GridSample": grid_sample,
}
