"""Fourier transforms of ONNX: products with a constant matrix.

The last axis of a signal holds the real and the imaginary part; a real signal has the real part
alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax, te

from ansor.config import IMPORTS
from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import HALF, axis_of, dtype_of, shape_of
from ansor.frontend.importers.from_onnx.converters.context import Context, Converter
from ansor.frontend.importers.from_onnx.converters.linear import product
from ansor.frontend.rewrite import constant

Array = npt.NDArray[Any]


def dft(c: Context) -> Any:
    """The discrete Fourier transform along an axis, or its inverse."""
    x = c.operand(0)
    shape = shape_of(x)
    axis = axis_of(c.integers(2)[0] if c.has(2) else c.attr("axis", _default_axis(c)), len(shape))
    inverse, onesided = bool(c.attr("inverse", 0)), bool(c.attr("onesided", 0))
    returns_real = inverse and onesided
    usual = 2 * (shape[axis] - 1) if returns_real else shape[axis]
    points = c.integers(1)[0] if c.has(1) else usual
    matrix = _inverse_to_real(points) if returns_real else _matrix(points, inverse, onesided)
    given = points // 2 + 1 if returns_real else points
    return _transformed(c, _of_length(c, x, axis, given), axis, matrix)


def _default_axis(c: Context) -> int:
    return 1 if c.version < 20 else -2


def stft(c: Context) -> Any:
    """Fourier transforms of windows along a signal, `[batch, window, frequency, part]`."""
    x = c.operand(0)
    if len(shape_of(x)) == 2:
        x = c.reshape(x, (*shape_of(x), 1))
    step = c.integers(1)[0]
    length = _frame_length(c, shape_of(x)[1])
    frames = _frames(c, x, length, step)
    if c.has(2):
        window = c.reshape(c.cast(c.operand(2), dtype_of(x)), (1, 1, length, 1))
        frames = c.emit(relax.op.multiply(frames, window))
    return _transformed(c, frames, 2, _matrix(length, False, bool(c.attr("onesided", 1))))


def _frame_length(c: Context, signal: int) -> int:
    if c.has(3):
        return c.integers(3)[0]
    return shape_of(c.operand(2))[0] if c.has(2) else signal


def _frames(c: Context, x: Any, length: int, step: int) -> Any:
    """Windows of a signal `[batch, time, part]`, as `[batch, window, time, part]`."""
    batch, signal, parts = shape_of(x)
    if step < 1 or not 0 < length <= signal:
        raise OperatorError(f"no window of {length} by steps of {step} in {signal} points")
    count = (signal - length) // step + 1

    def define(data: Any) -> Any:
        return te.compute(
            (batch, count, length, parts),
            lambda b, w, t, p: data(b, w * step + t, p),
            name="frames",
        )

    return c.te(define, x, name="frames")


def _of_length(c: Context, x: Any, axis: int, points: int) -> Any:
    """The first points along an axis, zeros after the last one."""
    shape = shape_of(x)
    if points < shape[axis]:
        return c.emit(relax.op.strided_slice(x, [axis], [0], [points]))
    if points == shape[axis]:
        return x
    after = [*shape[:axis], points - shape[axis], *shape[axis + 1 :]]
    return c.emit(relax.op.concat([x, c.broadcast(c.number(0, x), after)], axis))


def _transformed(c: Context, x: Any, axis: int, matrix: Array) -> Any:
    """The product along an axis with a matrix `[point in, part in, point out, part out]`."""
    order = [*(a for a in range(len(shape_of(x)) - 1) if a != axis), axis, len(shape_of(x)) - 1]
    turned = c.emit(relax.op.permute_dims(x, order))
    *outer, points, parts = shape_of(turned)
    _, _, points_out, parts_out = matrix.shape
    dtype = dtype_of(x)
    weights = matrix[:, :parts].reshape(points * parts, points_out * parts_out)
    rows = c.reshape(turned, (int(np.prod(outer)), points * parts))
    exact = constant(weights, "float32" if dtype in HALF else dtype)
    found = c.cast(product(c, c.cast(rows, dtype_of(exact)), exact), dtype)
    parted = c.reshape(found, (*outer, points_out, parts_out))
    return relax.op.permute_dims(parted, _inverted(order))


def _inverted(order: Sequence[int]) -> list[int]:
    return [int(place) for place in np.argsort(order)]


def _matrix(points: int, inverse: bool, onesided: bool) -> Array:
    """Complex numbers in and out, each as a real and an imaginary part."""
    kept = points // 2 + 1 if onesided else points
    angle = _angles(points, points)[:, :kept] * (1 if inverse else -1)
    scale = 1 / points if inverse else 1.0
    real, imaginary = np.cos(angle) * scale, np.sin(angle) * scale
    rows = [np.stack([real, imaginary], -1), np.stack([-imaginary, real], -1)]
    return np.stack(rows, 1)


def _inverse_to_real(points: int) -> Array:
    """From the first half of a spectrum, whose other half is its conjugate, to real numbers."""
    given = points // 2 + 1
    angle = _angles(given, points)
    frequency = np.arange(given)[:, None]
    single = (frequency == 0) | (2 * frequency == points)
    weight = np.where(single, 1.0, 2.0) / points
    return np.stack([np.cos(angle) * weight, -np.sin(angle) * weight], 1)[..., None]


def _angles(rows: int, points: int) -> Array:
    most = IMPORTS.max_dft_points
    if not 0 < points <= most:
        raise OperatorError(f"transforms of {points} points are not supported, 1 to {most}")
    return 2 * np.pi * (np.outer(np.arange(rows), np.arange(points)) % points) / points


CONVERTERS: Mapping[str, Converter] = {"DFT": dft, "STFT": stft}
