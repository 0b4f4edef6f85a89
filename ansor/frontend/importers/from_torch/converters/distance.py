"""Distances between rows."""

from __future__ import annotations

import math
from typing import Any

import torch
from tvm import relax

from ansor.frontend.importers.conversion import shape_of
from ansor.frontend.importers.from_torch.converters.context import Context, number
from ansor.frontend.importers.from_torch.converters.registry import converts
from ansor.frontend.rewrite import constant

op = relax.op


@converts("_cdist_forward.default")
def cdist(context: Context, x1: Any, x2: Any, p: float, compute_mode: Any) -> Any:
    """Each row of one tensor from each row of the other; the mode is a matter of speed."""
    if shape_of(x1)[-1] == 0:
        return op.zeros(list(context.shape), context.dtype)
    left = context.reshape(x1, (*shape_of(x1)[:-1], 1, shape_of(x1)[-1]))
    right = context.reshape(x2, (*shape_of(x2)[:-2], 1, *shape_of(x2)[-2:]))
    return _norm(context, context.emit(op.subtract(left, right)), p)


@converts("_pdist_forward.default")
def pdist(context: Context, x: Any, p: float) -> Any:
    """Each row from each later one."""
    first, second = torch.triu_indices(shape_of(x)[0], shape_of(x)[0], 1)
    rows = [
        context.emit(op.take(x, constant(i.numpy()), axis=0, mode="clip")) for i in (first, second)
    ]
    return _norm(context, context.emit(op.subtract(*rows)), p)


def _norm(context: Context, off: Any, p: float) -> Any:
    """The p-norm along the last axis."""
    size = context.emit(op.abs(off))
    if p == 0:
        zero = number(0, context.dtype)
        return op.sum(context.cast(context.emit(op.not_equal(size, zero)), context.dtype), [-1])
    if p == 1:
        return op.sum(size, [-1])
    if math.isinf(p):
        return op.max(size, [-1])
    if p == 2:
        return op.sqrt(op.sum(op.multiply(size, size), [-1]))
    powers = op.sum(op.power(size, number(p, context.dtype)), [-1])
    return op.power(powers, number(1 / p, context.dtype))
