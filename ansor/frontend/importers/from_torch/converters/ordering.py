"""Sorting and running sums."""

from __future__ import annotations

from typing import Any

from tvm import relax

from ansor.frontend.importers.from_torch.converters.context import (
    Context,
    axis_of,
    shape_of,
)
from ansor.frontend.importers.from_torch.converters.elementwise import wide
from ansor.frontend.importers.from_torch.converters.registry import converts

op = relax.op


@converts("cumsum.default")
def cumsum(context: Context, x: Any, dim: int) -> Any:
    """Running sum along an axis."""
    return _running(context, op.cumsum, x, dim)


@converts("cumprod.default")
def cumprod(context: Context, x: Any, dim: int) -> Any:
    """Running product along an axis."""
    return _running(context, op.cumprod, x, dim)


def _running(context: Context, function: Any, x: Any, dim: int) -> Any:
    dtype = wide(context.dtype)
    given = context.cast(x, dtype)
    if not shape_of(x):
        return context.cast(given, context.dtype)
    found = context.emit(function(given, axis_of(dim, len(shape_of(x))), dtype))
    return context.cast(found, context.dtype)
