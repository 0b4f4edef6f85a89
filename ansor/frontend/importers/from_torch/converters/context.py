"""What a converter of one ATen operator works with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from torch.utils import _pytree as pytree
from tvm import relax

from ansor.errors import UnsupportedError
from ansor.frontend.rewrite import constant, static_shape

HALF = ("float16", "bfloat16")


@dataclass(frozen=True, eq=False)
class Context:
    """A node that is being converted.

    Attributes:
        bb: where expressions are bound.
        node: of the decomposed program.
        results: PyTorch's own description of the results, one fake tensor for each.
    """

    bb: relax.BlockBuilder
    node: torch.fx.Node
    results: tuple[torch.Tensor, ...]

    @property
    def dtype(self) -> str:
        """Of the first result."""
        return dtype_name(self.results[0].dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the first result."""
        return tuple(int(extent) for extent in self.results[0].shape)

    def emit(self, expr: Any) -> Any:
        """The expression bound to a variable, so that its type is known."""
        return self.bb.emit(expr)

    def te(self, function: Callable[..., Any], *args: Any, name: str) -> Any:
        """The result of a TE definition."""
        return self.bb.emit_te(function, *args, primfunc_name_hint=name)

    def cast(self, value: Any, dtype: str) -> Any:
        """A tensor or a number as an expression of the dtype."""
        if not isinstance(value, relax.Expr):
            return number(value, dtype)
        if dtype_of(value) == dtype:
            return value
        if dtype == "bool":
            return self.emit(differ(value, number(0, dtype_of(value))))
        return self.emit(relax.op.astype(value, dtype))

    def spread(self, value: Any, shape: Sequence[int]) -> Any:
        """The tensor broadcast to the shape."""
        if shape_of(value) == tuple(shape):
            return value
        return self.emit(relax.op.broadcast_to(value, list(shape)))

    def reshape(self, value: Any, shape: Sequence[int]) -> Any:
        """The tensor in another shape; none if it has this one."""
        if shape_of(value) == tuple(shape):
            return value
        return self.emit(relax.op.reshape(value, list(shape)))

    def common_dtype(self, count: int = 2) -> str:
        """The dtype in which PyTorch compares the first `count` operands."""
        operands = [_described(arg) for arg in self.node.args[:count]]
        kind = ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
        return dtype_name(elementwise_dtypes(*operands, type_promotion_kind=kind)[1])


def _described(arg: Any) -> Any:
    return pytree.tree_map(lambda a: a.meta["val"] if isinstance(a, torch.fx.Node) else a, arg)


def dtype_name(dtype: torch.dtype) -> str:
    """NumPy's name of the dtype.

    Raises:
        UnsupportedError: a dtype that networks do not compute in.
    """
    name = str(dtype).removeprefix("torch.")
    if dtype.is_complex or name not in KNOWN:
        raise UnsupportedError(f"tensors of {name} are not supported")
    return name


KNOWN = frozenset(
    (
        *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "bfloat16", "float32", "float64"),
    )
)


def dtype_of(expr: Any) -> str:
    """Dtype of a tensor expression."""
    return str(expr.ty.dtype)


def shape_of(expr: Any) -> tuple[int, ...]:
    """Shape of a tensor expression.

    Raises:
        UnsupportedError: not all extents are known.
    """
    shape = static_shape(expr)
    if shape is None:
        raise UnsupportedError("its operand's shape is not known")
    return shape


def number(value: Any, dtype: str) -> Any:
    """A constant of no dimensions; integers wrap around as PyTorch's do.

    Raises:
        UnsupportedError: what is neither a plain number nor a truth value.
    """
    if not isinstance(value, bool | int | float):
        raise UnsupportedError(f"the number {value} is not known when the model is compiled")
    if isinstance(value, int) and "int" in dtype:
        return constant(np.array(value, np.int64 if value < 2**63 else np.uint64).astype(dtype))
    return constant(np.array(value), dtype)


def differ(left: Any, right: Any) -> Any:
    """Whether elements of one dtype differ; NaN differs from everything, unlike in TVM."""
    found = relax.op.not_equal(left, right)
    if not is_float(dtype_of(left)):
        return found
    for operand in (left, right):
        if isinstance(operand, relax.Var):
            found = relax.op.logical_or(found, relax.op.isnan(operand))
    return found


def is_float(dtype: str) -> bool:
    """Whether the dtype is a floating-point one."""
    return "float" in dtype


def axis_of(axis: int, ndim: int) -> int:
    """The axis counted from the beginning; a tensor of no dimensions has axis 0 as well."""
    return axis % max(ndim, 1)


def axes_of(axes: int | Sequence[int] | None, ndim: int) -> list[int]:
    """Axes counted from the beginning, in order; all for None and for an empty list."""
    if axes is None or (not isinstance(axes, int) and len(axes) == 0):
        return list(range(ndim))
    given = [axes] if isinstance(axes, int) else axes
    return sorted(axis_of(axis, ndim) for axis in given) if ndim else []
