"""Pooling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import is_float, shape_of
from ansor.frontend.importers.from_torch.converters.context import Context
from ansor.frontend.importers.from_torch.converters.elementwise import wide
from ansor.frontend.importers.from_torch.converters.registry import FUNCTIONS
from ansor.frontend.importers.operators import adaptive_pooling, pooling
from ansor.frontend.importers.operators.by_rank import ADAPTIVE_AVERAGE_POOLS, SPATIAL


def _each(values: int | Sequence[int], ndim: int) -> list[int]:
    given = [values] if isinstance(values, int) else list(values)
    return given * ndim if len(given) == 1 else given


def _windows(
    x: Any, ndim: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> pooling.Windows:
    sizes, pads = _each(kernel, ndim), _each(padding, ndim)
    steps = _each(stride, ndim) if stride else sizes
    return pooling.pooling_windows(
        shape_of(x)[-ndim:], sizes, steps, pads, pads, _each(dilation, ndim), ceil_mode=ceil_mode
    )


def _batched(context: Context, x: Any, ndim: int) -> Any:
    """`[N, C, …]`; a batch of one is added where there is none."""
    shape = shape_of(x)
    return x if len(shape) == ndim + 2 else context.reshape(x, (1, *shape))


def _max_pool(ndim: int, indices: bool) -> Callable[..., Any]:
    def convert(
        context: Context,
        x: Any,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        ceil_mode: bool,
    ) -> list[Any]:
        at = _windows(x, ndim, kernel_size, stride, padding, dilation, ceil_mode)
        data = _batched(context, x, ndim)
        found = [context.emit(pooling.max_pool(context.bb, data, at))]
        if indices:
            found.append(pooling.max_pool_indices(context.bb, data, at))
        return [context.reshape(part, context.shape) for part in found]

    return convert


def _average_pool(ndim: int) -> Callable[..., Any]:
    def convert(
        context: Context,
        x: Any,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: Any = None,
    ) -> Any:
        if not is_float(context.dtype):
            raise OperatorError("means of integers are not supported")
        at = _windows(x, ndim, kernel_size, stride, padding, 1, ceil_mode)
        data = context.cast(_batched(context, x, ndim), wide(context.dtype))
        result = context.emit(
            pooling.average_pool(
                context.bb,
                data,
                at,
                count_include_pad=count_include_pad,
                divisor=divisor_override,
            )
        )
        return context.cast(context.reshape(result, context.shape), context.dtype)

    return convert


def _adaptive_average(ndim: int) -> Callable[..., Any]:
    def convert(context: Context, x: Any, output_size: Any) -> Any:
        shape = shape_of(x)
        data = context.reshape(x, (math.prod(shape[:-ndim]), 1, *shape[-ndim:]))
        if len(shape) == ndim + 2:
            data = x
        data = context.cast(data, wide(context.dtype))
        size = list(context.shape[-ndim:])
        layout = f"NC{SPATIAL[ndim]}"
        result = context.emit(ADAPTIVE_AVERAGE_POOLS[ndim](data, size, layout=layout))
        return context.cast(context.reshape(result, context.shape), context.dtype)

    return convert


def _adaptive_max(ndim: int) -> Callable[..., Any]:
    def convert(context: Context, x: Any, output_size: Any) -> list[Any]:
        data, size = _batched(context, x, ndim), context.shape[-ndim:]
        found = [
            adaptive_pooling.adaptive_max_pool(context.bb, data, size),
            adaptive_pooling.adaptive_max_pool_indices(context.bb, data, size),
        ]
        return [context.reshape(part, context.shape) for part in found]

    return convert


for _ndim in (1, 2, 3):
    FUNCTIONS[f"adaptive_max_pool{_ndim}d.default"] = _adaptive_max(_ndim)
    FUNCTIONS[f"max_pool{_ndim}d.default"] = _max_pool(_ndim, indices=False)
    FUNCTIONS[f"max_pool{_ndim}d_with_indices.default"] = _max_pool(_ndim, indices=True)
    FUNCTIONS[f"avg_pool{_ndim}d.default"] = _average_pool(_ndim)
    FUNCTIONS[f"_adaptive_avg_pool{_ndim}d.default"] = _adaptive_average(_ndim)
    FUNCTIONS[f"adaptive_avg_pool{_ndim}d.default"] = _adaptive_average(_ndim)
