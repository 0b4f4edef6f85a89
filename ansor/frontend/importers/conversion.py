"""Functions for the converters of every importer: bound expressions, and the types of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from ansor.errors import OperatorError
from ansor.frontend.rewrite import constant, static_shape
from ansor.frontend.signature import DTYPES

HALF = ("float16", "bfloat16")
FLOATS = (*HALF, "float32", "float64")


@dataclass(frozen=True, eq=False)
class Conversion:
    """A node that is being converted.

    Attributes:
        bb: where expressions are bound.
    """

    bb: relax.BlockBuilder

    def emit(self, expr: Any) -> Any:
        """The expression bound to a variable, so that its type is known."""
        return self.bb.emit(expr)

    def te(self, function: Callable[..., Any], *args: Any, name: str) -> Any:
        """The result of a TE definition."""
        return self.bb.emit_te(function, *args, primfunc_name_hint=name)

    def reshape(self, value: Any, shape: Sequence[int]) -> Any:
        """The tensor in another shape; itself if it has this one."""
        if shape_of(value) == tuple(shape):
            return value
        return self.emit(relax.op.reshape(value, list(shape)))

    def broadcast(self, value: Any, shape: Sequence[int]) -> Any:
        """The tensor broadcast to the shape; itself if it has this one."""
        if shape_of(value) == tuple(shape):
            return value
        return self.emit(relax.op.broadcast_to(value, list(shape)))


def scalar(value: Any, dtype: str) -> Any:
    """A constant without dimensions."""
    return constant(np.asarray(value), dtype)


def dtype_of(expr: Any) -> str:
    """Dtype of a tensor expression."""
    return str(expr.ty.dtype)


def is_float(dtype: str) -> bool:
    """Whether the dtype is a floating-point one."""
    return dtype in FLOATS


def supported_dtype(dtype: str) -> str:
    """The dtype.

    Raises:
        OperatorError: networks do not support it.
    """
    if dtype not in DTYPES:
        raise OperatorError(f"tensors of {dtype} are not supported")
    return dtype


def shape_of(expr: Any) -> tuple[int, ...]:
    """Shape of a tensor expression.

    Raises:
        OperatorError: not all extents are known.
    """
    shape = static_shape(expr)
    if shape is None:
        raise OperatorError("the shape of its operand depends on values")
    return shape


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front; a tensor without dimensions has axis 0, too.

    Raises:
        OperatorError: there is no such axis.
    """
    if not -max(rank, 1) <= axis < max(rank, 1):
        raise OperatorError(f"its axis {axis} is none of {rank}")
    return axis % max(rank, 1)


def axes_of(axes: Sequence[int], rank: int) -> list[int]:
    """Axes counted from the front, in the given order."""
    return [axis_of(int(axis), rank) for axis in axes]
