"""The arguments of a converter of one ATen operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from torch.utils import _pytree as pytree
from tvm import relax

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import (
    Conversion,
    axes_of,
    dtype_of,
    is_float,
    supported_dtype,
)
from ansor.frontend.rewrite import constant


@dataclass(frozen=True, eq=False)
class Context(Conversion):
    """A node that is being converted.

    Attributes:
        node: of the decomposed program.
        results: PyTorch's own description of the results, one fake tensor for each.
    """

    node: torch.fx.Node
    results: tuple[torch.Tensor, ...]

    @property
    def dtype(self) -> str:
        """Of the first result."""
        return dtype_from_torch(self.results[0].dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the first result."""
        return tuple(int(extent) for extent in self.results[0].shape)

    def cast(self, value: Any, dtype: str) -> Any:
        """A tensor or a number as an expression of the dtype."""
        if not isinstance(value, relax.Expr):
            return number(value, dtype)
        if dtype_of(value) == dtype:
            return value
        if dtype == "bool":
            return self.emit(differ(value, number(0, dtype_of(value))))
        return self.emit(relax.op.astype(value, dtype))

    def common_dtype(self, count: int = 2) -> str:
        """The dtype in which PyTorch compares the first `count` operands."""
        operands = [_described(arg) for arg in self.node.args[:count]]
        kind = ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
        return dtype_from_torch(elementwise_dtypes(*operands, type_promotion_kind=kind)[1])


def _described(arg: Any) -> Any:
    return pytree.tree_map(lambda a: a.meta["val"] if isinstance(a, torch.fx.Node) else a, arg)


def dtype_from_torch(dtype: torch.dtype) -> str:
    """NumPy's name of the dtype.

    Raises:
        OperatorError: a dtype that networks do not support.
    """
    return supported_dtype(str(dtype).removeprefix("torch."))


def number(value: Any, dtype: str) -> Any:
    """A constant of no dimensions; integers wrap around as PyTorch's do.

    Raises:
        OperatorError: the value is neither a plain number nor a truth value.
    """
    if not isinstance(value, bool | int | float):
        raise OperatorError(f"the number {value} is not known when the model is compiled")
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


def reduced_axes(axes: int | Sequence[int] | None, ndim: int) -> list[int]:
    """Axes counted from the beginning, in order; all for None and for an empty list."""
    if axes is None or (not isinstance(axes, int) and len(axes) == 0):
        return list(range(ndim))
    given = [axes] if isinstance(axes, int) else axes
    return sorted(axes_of(given, ndim)) if ndim else []
