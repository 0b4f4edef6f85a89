"""Normalisation layers and softmax."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm import relax

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import HALF, axes_of, axis_of, dtype_of, shape_of
from ansor.frontend.importers.from_onnx.converters.context import (
    Context,
    Converter,
    dtype_from_onnx,
)
from ansor.frontend.rewrite import constant

op = relax.op


def batch_norm(c: Context) -> Any:
    """Normalisation by the model's statistics."""
    if c.attr("training_mode", 0):
        raise OperatorError("is in training mode", "export the model in eval mode")
    if sum(c.is_result_used) > 1:
        raise OperatorError("its statistics as results are not supported")
    x, *parameters = c.operands
    wide = "float32" if dtype_of(x) in HALF else dtype_of(x)
    operands = [c.cast(value, wide) for value in (x, *parameters)]
    epsilon = c.attr("epsilon", 1e-5)
    found = c.emit(op.nn.batch_norm(*operands, 1, epsilon, training=False))
    return c.cast(c.emit(relax.TupleGetItem(found, 0)), dtype_of(x))


def layer_norm(c: Context) -> Any:
    """Over the last axes; further results are the mean and the inverse standard deviation."""
    x, scale = c.operand(0), c.operand(1)
    shape = shape_of(x)
    axis = axis_of(c.attr("axis", -1), len(shape))
    axes, epsilon = list(range(axis, len(shape))), c.attr("epsilon", 1e-5)
    stash = dtype_from_onnx(c.attr("stash_type", 1))
    wide = stash if dtype_of(x) in HALF else dtype_of(x)
    data = c.cast(x, wide)
    scale = c.broadcast(c.cast(scale, wide), shape[axis:])
    bias = c.cast(c.operand(2), wide) if c.has(2) else c.number(0, data)
    bias = c.broadcast(bias, shape[axis:])
    result = c.cast(c.emit(op.nn.layer_norm(data, scale, bias, axes, epsilon)), dtype_of(x))
    if sum(c.is_result_used) == 1:
        return result
    mean = c.emit(op.mean(data, axes, True))
    away = op.subtract(data, mean)
    spread = op.mean(op.multiply(away, away), axes, True)
    inverse = op.divide(c.number(1, data), op.sqrt(op.add(spread, c.number(epsilon, data))))
    return [result, c.cast(mean, stash), c.cast(c.emit(inverse), stash)][: len(c.node.output)]


def rms_norm(c: Context) -> Any:
    """Normalisation by the root of the mean of squares over the last axes."""
    x, scale = c.operand(0), c.operand(1)
    axis = axis_of(c.attr("axis", -1), len(shape_of(x)))
    axes = list(range(axis, len(shape_of(x))))
    stash = dtype_from_onnx(c.attr("stash_type", 1))
    data = c.cast(x, stash)
    square = op.mean(op.multiply(data, data), axes, True)
    root = op.sqrt(op.add(square, c.number(c.attr("epsilon", 1e-5), data)))
    normal = c.emit(op.divide(data, root))
    return op.multiply(c.cast(normal, dtype_of(x)), scale)


def instance_norm(c: Context) -> Any:
    """Each channel of each row by itself."""
    x, scale, bias = c.operands
    rank = len(shape_of(x))
    side = (1, shape_of(x)[1], *[1] * (rank - 2))
    normal = _normal(c, x, list(range(2, rank)), c.attr("epsilon", 1e-5))
    return op.add(op.multiply(normal, c.reshape(scale, side)), c.reshape(bias, side))


def _normal(c: Context, x: Any, axes: list[int], epsilon: float) -> Any:
    away = c.emit(op.subtract(x, op.mean(x, axes, True)))
    spread = op.mean(op.multiply(away, away), axes, True)
    return c.emit(op.divide(away, op.sqrt(op.add(spread, c.number(epsilon, x)))))


def group_norm(c: Context) -> Any:
    """Groups of channels by themselves; scale and bias are of channels, before 21 of groups."""
    x, scale, bias = c.operands
    shape, groups = shape_of(x), c.attr("num_groups")
    stash = dtype_from_onnx(c.attr("stash_type", 1)) if dtype_of(x) in HALF else dtype_of(x)
    parts = c.reshape(
        c.cast(x, stash), (shape[0], groups, shape[1] // groups, math.prod(shape[2:]))
    )
    normal = _normal(c, parts, [2, 3], c.attr("epsilon", 1e-5))
    if c.version < 21:
        side = (1, groups, 1, 1)
        scaled = op.multiply(normal, c.cast(c.reshape(scale, side), stash))
        return c.cast(
            c.reshape(c.emit(op.add(scaled, c.cast(c.reshape(bias, side), stash))), shape),
            dtype_of(x),
        )
    whole = c.cast(c.reshape(normal, shape), dtype_of(x))
    channels = (1, shape[1], *[1] * (len(shape) - 2))
    return op.add(op.multiply(whole, c.reshape(scale, channels)), c.reshape(bias, channels))


def lp_norm(c: Context) -> Any:
    """Normalisation by a norm along an axis."""
    x, p = c.operand(0), c.attr("p", 2)
    axis = axis_of(c.attr("axis", -1), len(shape_of(x)))
    if p == 1:
        norm = op.sum(op.abs(x), [axis], True)
    else:
        norm = op.sqrt(op.sum(op.multiply(x, x), [axis], True))
    norm = c.emit(norm)
    zero = c.number(0, x)
    return op.where(op.equal(norm, zero), zero, op.divide(x, norm))


def mean_variance(c: Context) -> Any:
    """Normalisation to mean 0 and variance 1 over axes."""
    x = c.operand(0)
    axes = axes_of(c.attr("axes") or [0, 2, 3], len(shape_of(x)))
    away = c.emit(op.subtract(x, op.mean(x, axes, True)))
    spread = op.sqrt(op.mean(op.multiply(away, away), axes, True))
    return op.divide(away, op.add(spread, c.number(1e-9, x)))


def _soft(function: Any) -> Converter:
    def convert(c: Context) -> Any:
        x = c.operand(0)
        shape = shape_of(x)
        wide = c.cast(x, "float32") if dtype_of(x) in HALF else x
        if c.version >= 13:
            axis = axis_of(c.attr("axis", -1), len(shape))
            return c.cast(c.emit(function(wide, axis)), dtype_of(x))
        axis = axis_of(c.attr("axis", 1), len(shape))
        if axis == len(shape) - 1:
            return c.cast(c.emit(function(wide, axis)), dtype_of(x))
        flat = c.reshape(wide, (math.prod(shape[:axis]), math.prod(shape[axis:])))
        return c.cast(c.reshape(c.emit(function(flat, 1)), shape), dtype_of(x))

    return convert


def hardmax(c: Context) -> Any:
    """One at the first of the largest elements along an axis, and zero for others."""
    x = c.operand(0)
    shape = shape_of(x)
    flat, axis = x, axis_of(c.attr("axis", -1 if c.version >= 13 else 1), len(shape))
    if c.version < 13:
        flat, axis = c.reshape(x, (math.prod(shape[:axis]), math.prod(shape[axis:]))), 1
    place = c.emit(op.argmax(flat, axis, True))
    extent = shape_of(flat)[axis]
    channels = [1] * len(shape_of(flat))
    channels[axis] = extent
    counted = constant(np.arange(extent).reshape(channels), dtype_of(place))
    chosen = c.emit(op.equal(counted, place))
    return c.reshape(c.cast(chosen, dtype_of(x)), shape)


CONVERTERS: Mapping[str, Converter] = {
    "BatchNormalization": batch_norm,
    "LayerNormalization": layer_norm,
    "RMSNormalization": rms_norm,
    "InstanceNormalization": instance_norm,
    "GroupNormalization": group_norm,
    "LpNormalization": lp_norm,
    "MeanVarianceNormalization": mean_variance,
    "Softmax": _soft(op.nn.softmax),
    "LogSoftmax": _soft(op.nn.log_softmax),
    "Hardmax": hardmax,
}
