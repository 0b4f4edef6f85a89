"""What a converter of one ONNX node works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax

from ansor.errors import UnsupportedError
from ansor.frontend.importers.from_onnx.inputs import dtype_of as dtype_of_code
from ansor.frontend.rewrite import constant, static_shape

Array = npt.NDArray[Any]
HALF = ("float16", "bfloat16")
FLOATS = (*HALF, "float32", "float64")
KNOWN = frozenset(
    (
        *FLOATS,
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    )
)


@dataclass(frozen=True, eq=False)
class Context:
    """A node that is being converted.

    Attributes:
        bb: where expressions are bound.
        node: of the model, or of the body of a function.
        version: of ONNX's operator set.
        values: the operands: arrays where they are known, None where they are left out.
        attributes: of the node, as Python's values.
    """

    bb: relax.BlockBuilder
    node: Any
    version: int
    values: tuple[Any, ...]
    attributes: Mapping[str, Any]

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute; strings are text."""
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def has(self, place: int) -> bool:
        """Whether there is such an operand."""
        return place < len(self.values) and self.values[place] is not None

    def operand(self, place: int) -> Any:
        """An operand as an expression.

        Raises:
            UnsupportedError: it is left out.
        """
        if not self.has(place):
            raise UnsupportedError(f"its input {place} is missing")
        value = self.values[place]
        return constant(value) if isinstance(value, np.ndarray) else value

    @property
    def operands(self) -> list[Any]:
        """All operands as expressions."""
        return [self.operand(place) for place in range(len(self.values))]

    def is_known(self, place: int) -> bool:
        """Whether an operand's values are known."""
        return self.has(place) and isinstance(self.values[place], np.ndarray)

    def known(self, place: int) -> Array:
        """The values of an operand.

        Raises:
            UnsupportedError: they are computed when the network runs.
        """
        if not self.is_known(place):
            raise UnsupportedError(
                f"its input {self.node.input[place]!r} is not constant; give it as an initializer"
            )
        return np.asarray(self.values[place])

    def integers(self, place: int) -> list[int]:
        """The values of an operand of integers."""
        return [int(value) for value in self.known(place).reshape(-1)]

    def listed(self, place: int, name: str) -> list[int] | None:
        """Integers that newer versions take as an operand and older ones as an attribute."""
        if self.has(place):
            return self.integers(place)
        found = self.attr(name)
        return None if found is None else [int(value) for value in found]

    @property
    def is_result_used(self) -> tuple[bool, ...]:
        """Which of the results have a name."""
        return tuple(bool(name) for name in self.node.output)

    def emit(self, expr: Any) -> Any:
        """The expression bound to a variable, so that its type is known."""
        return self.bb.emit(expr)

    def te(self, function: Callable[..., Any], *args: Any, name: str) -> Any:
        """The result of a TE definition."""
        return self.bb.emit_te(function, *args, primfunc_name_hint=name)

    def cast(self, value: Any, dtype: str) -> Any:
        """The tensor in another dtype; truth is what is not zero."""
        if dtype_of(value) == dtype:
            return value
        if dtype == "bool":
            zero = constant(np.zeros((), np.float32), dtype_of(value))
            return self.emit(relax.op.not_equal(value, zero))
        return self.emit(relax.op.astype(value, dtype))

    def reshape(self, value: Any, shape: Sequence[int]) -> Any:
        """The tensor in another shape; itself if it has this one."""
        if shape_of(value) == tuple(shape):
            return value
        return self.emit(relax.op.reshape(value, list(shape)))

    def spread(self, value: Any, shape: Sequence[int]) -> Any:
        """The tensor broadcast to the shape."""
        if shape_of(value) == tuple(shape):
            return value
        return self.emit(relax.op.broadcast_to(value, list(shape)))

    def number(self, value: Any, like: Any) -> Any:
        """A constant without dimensions in the dtype of an expression."""
        return number(value, dtype_of(like))


def number(value: Any, dtype: str) -> Any:
    """A constant without dimensions."""
    return constant(np.asarray(value), dtype)


def dtype_of(expr: Any) -> str:
    """Dtype of a tensor expression."""
    return str(expr.ty.dtype)


def dtype_named(code: int) -> str:
    """The dtype of ONNX's number.

    Raises:
        UnsupportedError: networks do not compute in it.
    """
    return checked(dtype_of_code(code))


def checked(dtype: str) -> str:
    """The dtype.

    Raises:
        UnsupportedError: networks do not compute in it.
    """
    if dtype not in KNOWN:
        raise UnsupportedError(f"tensors of {dtype} are not supported")
    return dtype


def shape_of(expr: Any) -> tuple[int, ...]:
    """Shape of a tensor expression.

    Raises:
        UnsupportedError: not all extents are known.
    """
    shape = static_shape(expr)
    if shape is None:
        raise UnsupportedError("the shape of its operand depends on values")
    return shape


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front.

    Raises:
        UnsupportedError: there is no such axis.
    """
    if not -max(rank, 1) <= axis < max(rank, 1):
        raise UnsupportedError(f"its axis {axis} is none of {rank}")
    return axis % max(rank, 1)


def axes_of(axes: Sequence[int], rank: int) -> list[int]:
    """Axes counted from the front."""
    return [axis_of(int(axis), rank) for axis in axes]


def is_float(expr: Any) -> bool:
    """Whether the tensor holds floating-point numbers."""
    return dtype_of(expr) in FLOATS


Result = Any  # an expression, or one for each result
Converter = Callable[[Context], Result]
