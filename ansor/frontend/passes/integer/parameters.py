"""Scales and zero points: arrays if they are known, expressions if the network computes them.

Every parameter broadcasts against the tensor that it belongs to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax
from tvm.ir import GenericConst

from ansor.frontend.rewrite import Lookup, constant, static_shape

Array = npt.NDArray[Any]
Parameter = Any  # an array, or an expression

op = relax.op


def known(expr: Any, lookup: Lookup) -> Array | None:
    """The values of a constant; None for other expressions."""
    value = lookup(expr)
    return np.asarray(value.value.numpy()) if isinstance(value, GenericConst) else None


def parameter(expr: Any, dtype: str, shape: tuple[int, ...], lookup: Lookup) -> Parameter:
    """The parameter in another dtype and shape."""
    values = known(expr, lookup)
    if values is not None:
        return values.astype(dtype).reshape(shape)
    cast = expr if str(expr.ty.dtype) == dtype else op.astype(expr, dtype)
    return cast if static_shape(expr) == shape else op.reshape(cast, shape)


def shape_along(size: int, axis: int, rank: int) -> tuple[int, ...]:
    """The shape of a vector that broadcasts along an axis; () of a single value."""
    if size == 1:
        return ()
    return tuple(size if place == axis else 1 for place in range(rank))


def is_known(value: Parameter) -> bool:
    """Whether the values are known."""
    return isinstance(value, np.ndarray | np.generic)


def is_zero(value: Parameter) -> bool:
    """Whether all values are known to be zero."""
    return is_known(value) and not np.any(value)


def is_single(value: Parameter) -> bool:
    """Whether one value belongs to the whole tensor."""
    shape = np.shape(value) if is_known(value) else static_shape(value)
    return shape is not None and int(np.prod(shape)) == 1


def single(value: Parameter) -> Parameter:
    """The one value of a parameter, without dimensions."""
    if is_known(value):
        return value.reshape(())
    return value if static_shape(value) == () else op.reshape(value, ())


def times(a: Parameter, b: Parameter) -> Parameter:
    """The product of two parameters of one dtype."""
    if is_known(a) and is_known(b):
        return np.asarray(np.multiply(a, b))
    return op.multiply(expression(a), expression(b))


def expression(value: Parameter) -> Any:
    """The parameter as an expression."""
    return constant(value) if is_known(value) else value


def expanded(value: Parameter, rank: int) -> Parameter:
    """A known value without dimensions as an array that is an argument of a function.

    A constant without dimensions would be a part of the code: layers that differ in it alone would
    be different functions.
    """
    is_scalar = is_known(value) and np.ndim(value) == 0
    return np.reshape(value, (1,) * rank) if is_scalar else value


def operand(value: Parameter, rank: int) -> Any:
    """The parameter as an expression, see `expanded`."""
    return expression(expanded(value, rank))
