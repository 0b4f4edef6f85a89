"""Normalisations, with the statistics that they return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax

from ansor.frontend.importers.conversion import shape_of
from ansor.frontend.importers.from_torch.converters.context import Context, dtype_from_torch, number
from ansor.frontend.importers.from_torch.converters.elementwise import wide
from ansor.frontend.importers.from_torch.converters.registry import converts
from ansor.frontend.rewrite import constant

op = relax.op
RELAX_DTYPES = ("float32", "float16")  # that TVM normalises layers and groups in


def _or_ones(vector: Any, shape: Sequence[int], dtype: str, fill: float = 1.0) -> Any:
    return constant(np.full(tuple(shape), fill), dtype) if vector is None else vector


@converts("_native_batch_norm_legit_no_training.default")
def batch_norm(
    context: Context,
    x: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    momentum: float,
    eps: float,
) -> list[Any]:
    """Normalisation by given statistics; nothing is returned of the batch's own."""
    channels, dtype = [shape_of(x)[1]], context.dtype
    vectors = (
        _or_ones(weight, channels, dtype),
        _or_ones(bias, channels, dtype, 0.0),
        running_mean,
        running_var,
    )
    given = [context.cast(vector, dtype) for vector in vectors]
    result = context.emit(op.nn.batch_norm(x, *given, axis=1, epsilon=eps, training=False))
    normal = context.emit(relax.TupleGetItem(result, 0))
    nothing = [constant(np.zeros(r.shape), dtype_from_torch(r.dtype)) for r in context.results[1:]]
    return [normal, *nothing]


@converts("native_layer_norm.default")
def layer_norm(
    context: Context, x: Any, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float
) -> list[Any]:
    """Normalisation over the last axes; with it each group's mean and reciprocal deviation."""
    axes = list(range(-len(normalized_shape), 0))
    scale = _or_ones(weight, normalized_shape, context.dtype)
    shift = _or_ones(bias, normalized_shape, context.dtype, 0.0)
    statistics = _statistics(context, x, axes, eps)
    if context.dtype in RELAX_DTYPES:
        normal = context.emit(op.nn.layer_norm(x, scale, shift, axes=axes, epsilon=eps))
    else:
        normal = _normalised(context, x, axes, eps, scale, shift)
    return [normal, *statistics]


@converts("native_group_norm.default")
def group_norm(
    context: Context,
    x: Any,
    weight: Any,
    bias: Any,
    N: int,  # noqa: N803
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    eps: float,
) -> list[Any]:
    """Normalisation over groups of channels; with it their means and reciprocal deviations."""
    scale = _or_ones(weight, [C], context.dtype)
    shift = _or_ones(bias, [C], context.dtype, 0.0)
    axes = list(range(2, len(shape_of(x))))
    rows = context.reshape(x, (N, group, C // group * HxW))
    statistics = _statistics(context, rows, [-1], eps)
    if context.dtype in RELAX_DTYPES:
        normal = op.nn.group_norm(x, scale, shift, group, channel_axis=1, axes=axes, epsilon=eps)
        return [context.emit(normal), *statistics]
    split = context.reshape(x, (N, group, C // group, HxW))
    columns = (1, group, C // group, 1)
    vectors = [context.reshape(vector, columns) for vector in (scale, shift)]
    normal = _normalised(context, split, [-2, -1], eps, *vectors)
    return [context.reshape(normal, context.shape), *statistics]


def _normalised(
    context: Context, x: Any, axes: list[int], eps: float, scale: Any, shift: Any
) -> Any:
    """`x` without its mean, by its deviation along the axes, scaled and shifted; in one dtype."""
    dtype = wide(context.dtype)
    _, factors, off = _moments(context, x, axes, eps)
    normal = context.emit(op.multiply(off, factors))
    scaled = context.emit(op.multiply(normal, context.cast(scale, dtype)))
    shifted = context.emit(op.add(scaled, context.cast(shift, dtype)))
    return context.cast(shifted, context.dtype)


def _moments(context: Context, x: Any, axes: list[int], eps: float) -> tuple[Any, Any, Any]:
    """Means, reciprocal deviations, and `x` without its means."""
    dtype = wide(context.dtype)
    given = context.cast(x, dtype)
    means = context.emit(op.mean(given, axes, keepdims=True))
    off = context.emit(op.subtract(given, means))
    variance = context.emit(op.mean(context.emit(op.multiply(off, off)), axes, keepdims=True))
    deviation = context.emit(op.add(variance, number(eps, dtype)))
    return means, context.emit(op.rsqrt(deviation)), off


def _statistics(context: Context, x: Any, axes: list[int], eps: float) -> list[Any]:
    """Means and reciprocal deviations, in the shapes and dtypes of the further results."""
    found = _moments(context, x, axes, eps)[:2]
    return [
        context.cast(context.reshape(part, tuple(result.shape)), dtype_from_torch(result.dtype))
        for part, result in zip(found, context.results[1:], strict=True)
    ]
