"""The arguments of a converter of one ONNX node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import Conversion, dtype_of, scalar, supported_dtype
from ansor.frontend.importers.from_onnx.inputs import dtype_of_code
from ansor.frontend.rewrite import constant

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Context(Conversion):
    """A node that is being converted.

    Attributes:
        node: of the model, or of the body of a function.
        version: of ONNX's operator set.
        values: the operands: arrays where they are known, None where they are left out.
        attributes: of the node, as Python's values.
    """

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
            OperatorError: it is left out.
        """
        if not self.has(place):
            raise OperatorError(f"its input {place} is missing")
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
            OperatorError: they are computed when the network runs.
        """
        if not self.is_known(place):
            raise OperatorError(
                f"its input {self.node.input[place]!r} is not constant", "give it as an initializer"
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
        """Whether each result has a name."""
        return tuple(bool(name) for name in self.node.output)

    def cast(self, value: Any, dtype: str) -> Any:
        """The tensor in another dtype; a nonzero element is true."""
        if dtype_of(value) == dtype:
            return value
        if dtype == "bool":
            zero = constant(np.zeros((), np.float32), dtype_of(value))
            return self.emit(relax.op.not_equal(value, zero))
        return self.emit(relax.op.astype(value, dtype))

    def number(self, value: Any, like: Any) -> Any:
        """A constant without dimensions in the dtype of an expression."""
        return scalar(value, dtype_of(like))


def dtype_from_onnx(code: int) -> str:
    """The dtype of ONNX's number.

    Raises:
        OperatorError: networks do not compute in it.
    """
    return supported_dtype(dtype_of_code(code))


Result = Any  # an expression, or one for each result
Converter = Callable[[Context], Result]
