"""Inputs of ONNX models: their dtypes, and static shapes for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ansor.errors import ArgumentError
from ansor.frontend.deploy.convert import check_array, is_torch_tensor
from ansor.frontend.importers.sizes import Sizes
from ansor.frontend.signature import InputSpec

_DTYPES = {"float": "float32", "double": "float64"}  # the other names are NumPy's in capitals


def dtype_of_code(code: int) -> str:
    """NumPy's name of ONNX's number of a dtype."""
    name = str(onnx.TensorProto.DataType.Name(code)).lower()
    return _DTYPES.get(name, name)


def fix_shapes(inputs: list[Any], example_inputs: object, sizes: Sizes) -> list[Any]:
    """The inputs' declarations with static shapes.

    Raises:
        ArgumentError: a dynamic dimension without `example_inputs` or a size, or inputs or sizes
            that do not fit.
    """
    inputs = _sized(inputs, sizes)
    if example_inputs is None:
        inputs = [_with_default(value, sizes.default) for value in inputs]
        _check_static(inputs)
        return inputs
    several = isinstance(example_inputs, list | tuple)
    arrays: Any = example_inputs if several else (example_inputs,)
    if len(arrays) != len(inputs):
        names = ", ".join(value.name for value in inputs)
        raise ArgumentError("example_inputs", len(arrays), f"give {len(inputs)} arrays: {names}")
    found: dict[str, int] = {}
    return [_fixed(*pair, found) for pair in enumerate(zip(inputs, arrays, strict=True))]


def _sized(inputs: list[Any], sizes: Sizes) -> list[Any]:
    """The declarations with the sizes that a user gives."""
    symbols = [dim.dim_param for value in inputs for dim in value.type.tensor_type.shape.dim]
    sizes.check_names([value.name for value in inputs], list(filter(None, dict.fromkeys(symbols))))
    return [_with_sizes(value, sizes) for value in inputs] if sizes else inputs


def _with_sizes(value: Any, sizes: Sizes) -> Any:
    ty = value.type.tensor_type
    dims = [dim.dim_value or sizes.dims.get(dim.dim_param, dim.dim_param) for dim in ty.shape.dim]
    given = sizes.shapes.get(value.name)
    if given is not None:
        known = ty.HasField("shape")
        fits = [not isinstance(d, int) or d == g for d, g in zip(dims, given, strict=False)]
        if known and (len(dims) != len(given) or not all(fits)):
            raise ArgumentError("shapes", {value.name: tuple(given)}, f"must fit {dims}")
        dims = list(given)
    return helper.make_tensor_value_info(value.name, ty.elem_type, dims)


def _with_default(value: Any, size: int | None) -> Any:
    """The declaration with this size for its dynamic dimensions, if its rank is known."""
    ty = value.type.tensor_type
    if size is None or not ty.HasField("shape"):
        return value
    dims = [dim.dim_value if dim.HasField("dim_value") else size for dim in ty.shape.dim]
    return helper.make_tensor_value_info(value.name, ty.elem_type, dims)


def examples_of(example_inputs: object) -> tuple[Any, ...] | None:
    """The arrays that a user gives, for NumPy."""
    if example_inputs is None:
        return None
    several = isinstance(example_inputs, list | tuple)
    arrays: Any = example_inputs if several else (example_inputs,)
    return tuple(np.asarray(a.detach().cpu() if is_torch_tensor(a) else a) for a in arrays)


def _check_static(inputs: list[Any]) -> None:
    dynamic = [text for value in inputs for text in _dynamic(value)]
    if dynamic:
        remedy = f"give arrays that fix the shapes: {'; '.join(dynamic)}"
        raise ArgumentError("example_inputs", None, remedy)


def _dynamic(value: Any) -> Iterator[str]:
    """The dynamic dimensions of an input."""
    if not value.type.tensor_type.HasField("shape"):
        yield f"input {value.name!r} has no known shape"
    for axis, dim in enumerate(value.type.tensor_type.shape.dim):
        if not dim.HasField("dim_value") or dim.dim_value < 0:
            symbol = dim.dim_param or "unnamed"
            yield f"input {value.name!r}: dimension {axis} is dynamic ({symbol})"


def _fixed(index: int, pair: tuple[Any, Any], sizes: dict[str, int]) -> Any:
    """The declaration of an input with the shape of an array; `sizes` are of symbols seen so far.

    Raises:
        ArgumentError: no array, or a wrong one.
    """
    value, array = pair
    argument, ty = f"example_inputs[{index}]", value.type.tensor_type
    if not (isinstance(array, np.ndarray) or is_torch_tensor(array)):
        remedy = "give NumPy arrays or torch tensors"
        raise ArgumentError(argument, type(array).__name__, remedy)
    given = tuple(int(size) for size in array.shape)
    dims = ty.shape.dim if ty.HasField("shape") else [None] * len(given)
    if len(dims) != len(given):
        raise ArgumentError(
            argument, given, f"input {value.name!r} has {len(dims)} dimensions; give as many"
        )
    shape = tuple(_extent(dim, size, sizes) for dim, size in zip(dims, given, strict=True))
    check_array(array, InputSpec(argument, shape, dtype_of_code(ty.elem_type)))
    return helper.make_tensor_value_info(value.name, ty.elem_type, shape)


def _extent(dim: Any, given: int, sizes: dict[str, int]) -> int:
    """The size of a dimension: its own, its symbol's, or that of the array."""
    if dim is not None and dim.dim_value > 0:
        return int(dim.dim_value)
    symbol = dim.dim_param if dim is not None else ""
    return sizes.setdefault(symbol, given) if symbol else given
