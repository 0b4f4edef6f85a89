"""What TVM's ONNX importer writes at length, said plainly, so that layout conversion goes on."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
from tvm import relax
from tvm.ir import GenericConst

from ansor.frontend.rewrite import Lookup, constant, op_name, rewrite, static_shape

Array = npt.NDArray[Any]

# The operator and the bound that bounds nothing.
_BOUNDS = {"maximum": (relax.op.maximum, -np.inf), "minimum": (relax.op.minimum, np.inf)}
_REDUCED = {
    "relax.max": relax.op.maximum,
    "relax.min": relax.op.minimum,
    "relax.sum": relax.op.add,
}


def _take(call: Any, data: Array, indices: Array) -> Array:
    axis = call.attrs.axis
    taken: Array = np.take(data, indices, None if axis is None else int(axis), mode="wrap")
    return taken


# The arithmetic that makes indices non-negative and takes NaN out of bounds. Each evaluator takes
# the call and its constant operands.
EVALUATORS: Mapping[str, Callable[..., Array]] = {
    "relax.add": lambda _, a, b: np.add(a, b),
    "relax.isnan": lambda _, a: np.isnan(a),
    "relax.less": lambda _, a, b: np.less(a, b),
    "relax.take": _take,
    "relax.where": lambda _, a, b, c: np.asarray(np.where(a, b, c)),
}


def evaluate(call: Any, lookup: Lookup) -> Any:
    """A call of constants is a constant."""
    operands = [lookup(arg) for arg in call.args]
    if not all(isinstance(operand, GenericConst) for operand in operands):
        return call
    values = (operand.value.numpy() for operand in operands)
    result = EVALUATORS[op_name(call)](call, *values)
    return constant(result, str(call.ty.dtype))


def shape_to_constant(call: Any, lookup: Lookup) -> Any:
    """A static shape as a tensor is a constant."""
    shape = lookup(call.args[0])
    if op_name(shape) == "relax.shape_of":
        extents = static_shape(shape.args[0])
        return call if extents is None else constant(extents, "int64")
    return call


def take_to_slice(call: Any, lookup: Lookup) -> Any:
    """Taking one constant index is a slice: `ConvertLayout` crashes on an index without axes."""
    index, axis = lookup(call.args[1]), call.attrs.axis
    if not isinstance(index, GenericConst) or static_shape(index) != () or axis is None:
        return call
    first, place = int(index.value.numpy()), int(axis) % len(call.args[0].ty.shape)
    part = relax.op.strided_slice(call.args[0], [place], [first], [first + 1])
    return relax.op.squeeze(part, [place])


def squeeze_from_front(call: Any, _: Lookup) -> Any:
    """Squeezed axes are counted from the front: `ConvertLayout` crashes on negative ones."""
    axes = call.attrs.axis
    if axes is None:
        return call
    rank = len(call.args[0].ty.shape)
    return relax.op.squeeze(call.args[0], [int(axis) % rank for axis in axes])


def bound_to_operator(call: Any, lookup: Lookup) -> Any:
    """The importer makes Clip a kernel of its own, which stops channels-last; this does not."""
    name = re.fullmatch(r"(maximum|minimum)\d*", str(call.args[0].name_hint))
    operands = [lookup(field) for field in call.args[1].fields]
    if name is None or len(operands) != 2 or not isinstance(operands[1], GenericConst):
        return call
    operator, neutral = _BOUNDS[name[1]]
    if np.all(operands[1].value.numpy() == neutral):
        return call.args[1].fields[0]
    return operator(call.args[1].fields[0], operands[1])


def stack_to_pairs(call: Any, lookup: Lookup) -> Any:
    """Max, Min and Sum of several operands are stacked and reduced; pairs need no copies."""
    stacked = lookup(call.args[0])
    axes = [] if call.attrs.axis is None else [int(axis) for axis in call.attrs.axis]
    if op_name(stacked) != "relax.stack" or axes != [0] or int(stacked.attrs.axis or 0) != 0:
        return call
    operands = [_unbroadcast(f, lookup) for f in lookup(stacked.args[0]).fields]
    shapes = [shape for shape in map(static_shape, operands) if shape is not None]
    if len(shapes) < len(operands) or np.broadcast_shapes(*shapes) != static_shape(call):
        return call
    return functools.reduce(_REDUCED[op_name(call)], operands)


def _unbroadcast(field: Any, lookup: Lookup) -> Any:
    value = lookup(field)
    return value.args[0] if op_name(value) == "relax.broadcast_to" else field


def _take_rule(call: Any, lookup: Lookup) -> Any:
    result = evaluate(call, lookup)
    return take_to_slice(call, lookup) if result is call else result


RULES: Mapping[str, Callable[[Any, Lookup], Any]] = {
    **dict.fromkeys(EVALUATORS, evaluate),
    "relax.take": _take_rule,
    "relax.squeeze": squeeze_from_front,
    "relax.shape_to_tensor": shape_to_constant,
    "relax.call_tir": bound_to_operator,
    **dict.fromkeys(_REDUCED, stack_to_pairs),
}


def _rule(call: Any, lookup: Lookup) -> Any:
    rule = RULES.get(op_name(call))
    return rule(call, lookup) if rule else call


def tidy(mod: tvm.IRModule) -> tvm.IRModule:
    """Applies every rule of this file."""
    return rewrite(mod, _rule)
