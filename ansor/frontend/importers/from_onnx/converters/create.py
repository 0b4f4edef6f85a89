"""Tensors that are known when the network is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import numpy_helper

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import dtype_of, shape_of, supported_dtype
from ansor.frontend.importers.from_onnx.converters.context import (
    Context,
    Converter,
    dtype_from_onnx,
)
from ansor.frontend.rewrite import constant


def constant_(c: Context) -> Any:
    """The tensor that the node holds."""
    kinds = {"value_float": "float32", "value_floats": "float32"}
    for name, value in c.attributes.items():
        if name == "value":
            array = numpy_helper.to_array(value)
            return constant(array, supported_dtype(str(array.dtype)))
        if name in ("value_int", "value_ints", *kinds):
            return constant(np.asarray(value), kinds.get(name, "int64"))
    raise OperatorError("constants of strings or sparse tensors are not supported")


def filled(c: Context) -> Any:
    """A tensor of one value."""
    value = c.attr("value")
    one = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value)
    return constant(np.full(c.integers(0), one.reshape(-1)[0]), supported_dtype(str(one.dtype)))


def eye(c: Context) -> Any:
    """Ones on a diagonal, in the shape of the operand."""
    x = c.operand(0)
    rows, columns = shape_of(x)
    code = c.attr("dtype")
    dtype = dtype_of(x) if code is None else dtype_from_onnx(code)
    return constant(np.eye(rows, columns, c.attr("k", 0)), dtype)


def shape(c: Context) -> Any:
    """Extents of the operand."""
    whole = np.array(shape_of(c.operand(0)), np.int64)
    return constant(whole[c.attr("start", 0) : c.attr("end")])


def size(c: Context) -> Any:
    """Number of elements."""
    return constant(np.array(np.prod(shape_of(c.operand(0)), dtype=np.int64)))


CONVERTERS: Mapping[str, Converter] = {
    "Constant": constant_,
    "ConstantOfShape": filled,
    "EyeLike": eye,
    "Shape": shape,
    "Size": size,
}
