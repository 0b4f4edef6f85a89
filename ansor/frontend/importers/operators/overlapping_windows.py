"""Sums of windows that overlap: ONNX's Col2Im, PyTorch's `col2im`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax, te, tirx

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import shape_of


@dataclass(frozen=True)
class WindowAxis:
    """The windows along an axis of an image.

    Attributes:
        extent: of the image.
        window: elements of a window.
        stride: between the beginnings of two windows.
        dilation: between two elements of a window.
        before: padding before the image.
        after: padding after it.
    """

    extent: int
    window: int
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0

    @property
    def count(self) -> int:
        """Windows along the axis."""
        reach = self.dilation * (self.window - 1) + 1
        return (self.extent + self.before + self.after - reach) // self.stride + 1


def sum_of_windows(bb: relax.BlockBuilder, windows: Any, axes: Sequence[WindowAxis]) -> Any:
    """Images `[N, C, *extents]` from windows `[N, C * prod(window), prod(count)]`.

    Raises:
        OperatorError: the shape of the windows is another one.
    """
    sizes = [axis.window for axis in axes]
    counts = [axis.count for axis in axes]
    shape = shape_of(windows)
    batch, rows, columns = shape
    if rows % int(np.prod(sizes)) or columns != int(np.prod(counts)):
        raise OperatorError(f"windows of shape {shape} do not make this image: {list(axes)}")
    result = (batch, rows // int(np.prod(sizes)), *(axis.extent for axis in axes))

    def define(data: Any) -> Any:
        steps = [te.reduce_axis((0, size), name=f"k{place}") for place, size in enumerate(sizes)]

        def element(image: Any, channel: Any, *at: Any) -> Any:
            starts = [
                place + axis.before - step * axis.dilation
                for place, axis, step in zip(at, axes, steps, strict=True)
            ]
            numbers = [
                tirx.floordiv(start, axis.stride) for start, axis in zip(starts, axes, strict=True)
            ]
            hit = tirx.all(
                *(
                    tirx.all(
                        start >= 0, tirx.floormod(start, axis.stride) == 0, number < axis.count
                    )
                    for start, number, axis in zip(starts, numbers, axes, strict=True)
                )
            )
            row, column = channel, tirx.const(0, "int32")
            for step, size in zip(steps, sizes, strict=True):
                row = row * size + step
            for number, count in zip(numbers, counts, strict=True):
                column = column * count + number
            zero = tirx.const(0, data.dtype)
            return te.sum(tirx.if_then_else(hit, data(image, row, column), zero), axis=steps)

        return te.compute(result, element, name="sum_of_windows")

    return bb.emit_te(define, windows, primfunc_name_hint="sum_of_windows")
