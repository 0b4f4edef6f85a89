"""Tensors that depend on a shape alone, and constants."""

from __future__ import annotations

from typing import Any

from tvm import relax

from ansor.frontend.importers.from_torch.converters.context import Context, number
from ansor.frontend.importers.from_torch.converters.registry import converts

op = relax.op


@converts("full.default", "full_like.default", "new_full.default")
def full(context: Context, fill_value: Any, x: Any = None, size: Any = None) -> Any:
    """A tensor of one number."""
    return op.full(list(context.shape), number(fill_value, context.dtype), context.dtype)


@converts("empty.memory_format", "empty_like.default", "new_empty.default")
@converts("empty_strided.default", "new_empty_strided.default", "empty_permuted.default")
@converts("zeros.default", "zeros_like.default", "new_zeros.default")
def zeros(
    context: Context,
    x: Any = None,
    size: Any = None,
    stride: Any = None,
    physical_layout: Any = None,
) -> Any:
    """Zeros, which undefined elements are as well."""
    return op.zeros(list(context.shape), context.dtype)


@converts("ones.default", "ones_like.default", "new_ones.default")
def ones(context: Context, x: Any = None, size: Any = None) -> Any:
    """Ones everywhere."""
    return op.ones(list(context.shape), context.dtype)
