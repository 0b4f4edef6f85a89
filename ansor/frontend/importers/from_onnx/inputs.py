"""Inputs of ONNX models: their dtypes, and static shapes for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ansor.errors import ArgumentError
from ansor.frontend.convert import check_array, is_torch_tensor
from ansor.frontend.signature import InputSpec

_DTYPES = {"float": "float32", "double": "float64"}  # the other names are NumPy's in capitals


def dtype_of(code: int) -> str:
    """NumPy's name of ONNX's number of a dtype."""
    name = str(onnx.TensorProto.DataType.Name(code)).lower()
    return _DTYPES.get(name, name)


def fix_shapes(inputs: list[Any], example_inputs: object) -> list[Any]:
    """The inputs' declarations with static shapes.

    Raises:
        ArgumentError: a dynamic dimension without `example_inputs`, or inputs that do not fit.
    """
    if example_inputs is None:
        _check_static(inputs)
        return inputs
    several = isinstance(example_inputs, list | tuple)
    arrays: Any = example_inputs if several else (example_inputs,)
    if len(arrays) != len(inputs):
        names = ", ".join(value.name for value in inputs)
        raise ArgumentError("example_inputs", len(arrays), f"give {len(inputs)} arrays: {names}")
    sizes: dict[str, int] = {}
    return [_fixed(*pair, sizes) for pair in enumerate(zip(inputs, arrays, strict=True))]


def _check_static(inputs: list[Any]) -> None:
    dynamic = [text for value in inputs for text in _dynamic(value)]
    if dynamic:
        remedy = f"give arrays that fix the shapes: {'; '.join(dynamic)}"
        raise ArgumentError("example_inputs", None, remedy)


def _dynamic(value: Any) -> Iterator[str]:
    """What is not static in the shape of an input."""
    if not value.type.tensor_type.HasField("shape"):
        yield f"input {value.name!r} has no known shape"
    for axis, dim in enumerate(value.type.tensor_type.shape.dim):
        if dim.dim_value < 1:
            symbol = dim.dim_param or "unnamed"
            yield f"input {value.name!r}: dimension {axis} is dynamic ({symbol})"


def _fixed(index: int, pair: tuple[Any, Any], sizes: dict[str, int]) -> Any:
    """The declaration of an input with the shape of an array; `sizes` are of symbols seen so far.

    Raises:
        ArgumentError: no array, or one that does not fit.
    """
    value, array = pair
    argument, ty = f"example_inputs[{index}]", value.type.tensor_type
    if not (isinstance(array, np.ndarray) or is_torch_tensor(array)):
        remedy = "give NumPy arrays or torch tensors"
        raise ArgumentError(argument, type(array).__name__, remedy)
    given = tuple(int(size) for size in array.shape)
    dims = ty.shape.dim if ty.HasField("shape") else [None] * len(given)
    if len(dims) != len(given):
        raise ArgumentError(argument, given, f"input {value.name!r} has {len(dims)} dimensions")
    shape = tuple(_extent(dim, size, sizes) for dim, size in zip(dims, given, strict=True))
    check_array(array, InputSpec(argument, shape, dtype_of(ty.elem_type)))
    return helper.make_tensor_value_info(value.name, ty.elem_type, shape)


def _extent(dim: Any, given: int, sizes: dict[str, int]) -> int:
    """The size of a dimension: its own, its symbol's, or that of the array."""
    if dim is not None and dim.dim_value > 0:
        return int(dim.dim_value)
    symbol = dim.dim_param if dim is not None else ""
    return sizes.setdefault(symbol, given) if symbol else given
