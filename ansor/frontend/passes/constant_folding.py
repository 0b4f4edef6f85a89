"""Constant folding with NumPy.

`relax.transform.FoldConstant` compiles and runs a kernel for every folded operator. This takes
seconds for a network's batch norms and weight layouts. NumPy needs milliseconds for the same
operators. TVM's pass folds operators that are not in the table below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
from tvm import relax, tirx
from tvm.ir import GenericConst

from ansor.frontend.rewrite import Lookup, constant, op_name, rewrite_calls, static_shape

Array = npt.NDArray[Any]


def _permute(call: Any, data: Array) -> Array:
    axes = call.attrs.axes
    return np.transpose(data, None if axes is None else [int(axis) for axis in axes])


def _elementwise(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda call, *operands: function(*operands)


def _reshape(call: Any, data: Array, *_: Array) -> Array:
    return data.reshape(static_shape(call))


def _full(call: Any, value: Array) -> Array:
    return np.full(static_shape(call) or (), value)


def _concat(call: Any, *parts: Array) -> Array:
    axis = call.attrs.axis
    return np.concatenate([part.ravel() if axis is None else part for part in parts], axis or 0)


def _strided_slice(call: Any, data: Array) -> Array:
    axes, *bounds = ([int(number) for number in part.fields] for part in call.args[1:])
    spans: dict[int, slice] = {}
    for axis, *span in zip(axes, *bounds, strict=True):
        spans[axis % data.ndim] = slice(*span)
    return data[tuple(spans.get(axis, slice(None)) for axis in range(data.ndim))]


# Each evaluator takes the call and its constant operands.
EVALUATORS: Mapping[str, Callable[..., Array]] = {
    "relax.add": _elementwise(np.add),
    "relax.subtract": _elementwise(np.subtract),
    "relax.multiply": _elementwise(np.multiply),
    "relax.divide": _elementwise(np.divide),
    "relax.sqrt": _elementwise(np.sqrt),
    "relax.rsqrt": _elementwise(lambda x: 1 / np.sqrt(x)),
    "relax.negative": _elementwise(np.negative),
    "relax.astype": _elementwise(lambda x: x),
    "relax.permute_dims": _permute,
    "relax.reshape": _reshape,
    "relax.expand_dims": _reshape,
    "relax.squeeze": _reshape,
    "relax.full": _full,
    "relax.concat": _concat,
    "relax.strided_slice": _strided_slice,
}


def _fold(call: Any, lookup: Lookup) -> Any:
    name = op_name(call)
    if name not in EVALUATORS or static_shape(call) is None:
        return call
    operands = [lookup(tensor) for arg in call.args for tensor in _tensors(lookup(arg))]
    if not all(isinstance(operand, GenericConst) for operand in operands):
        return call
    value = EVALUATORS[name](call, *(operand.value.numpy() for operand in operands))
    return constant(value, str(call.ty.dtype))


def _tensors(arg: Any) -> list[Any]:
    """The operands in an argument: those of a tuple; none in a shape, in numbers."""
    parts = list(arg.fields) if isinstance(arg, relax.Tuple) else [arg]
    return [part for part in parts if not isinstance(part, relax.ShapeExpr | tirx.IntImm)]


def fold_constants(mod: tvm.IRModule) -> tvm.IRModule:
    """Evaluates expressions of constants, if NumPy has the operators."""
    return rewrite_calls(mod, _fold)
