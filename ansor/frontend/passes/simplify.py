"""Small rewrites for operators that layout conversion and fusion do not support."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import tvm
from tvm import relax, tirx

from ansor.frontend.rewrite import Lookup, op_name, rewrite_calls, static_shape

_NAMES = (
    "add subtract multiply divide floor_divide mod power maximum minimum "
    "equal not_equal greater greater_equal less less_equal"
)
ELEMENTWISE = frozenset(f"relax.{name}" for name in _NAMES.split())


def _scalar(arg: Any, dtype: str) -> Any:
    if isinstance(arg, tirx.FloatImm | tirx.IntImm):
        return relax.const(arg.value, dtype)
    return arg


def scalars_to_tensors(call: Any) -> Any:
    """Numbers among the operands become constant tensors: `ConvertLayout` crashes on numbers."""
    args = [_scalar(arg, str(arg.ty.dtype)) for arg in call.args]
    return relax.Call(call.op, args, call.attrs, call.ty_args)


def _bounds(call: Any) -> tuple[float, float]:
    low, high = (float(arg.value) for arg in call.args[1:])
    return low, high


def clip_to_min_max(call: Any) -> Any:
    """`clip` stops channels-last at a transpose on either side; minimum and maximum do not."""
    dtype = str(call.ty.dtype)
    low, high = _bounds(call)
    result = call.args[0]
    if not math.isinf(low):
        result = relax.op.maximum(result, relax.const(low, dtype))
    if not math.isinf(high):
        result = relax.op.minimum(result, relax.const(high, dtype))
    return result


def transpose_to_reshape(call: Any, lookup: Lookup) -> Any:
    """A transpose that only moves axes of extent one becomes a reshape."""
    shape, result = static_shape(call.args[0]), static_shape(call)
    axes = call.attrs.axes
    if shape is None or result is None or axes is None:
        return call
    order = [int(axis) % len(shape) for axis in axes]
    moved = [axis for axis in order if shape[axis] != 1]
    if moved != sorted(moved):  # non-negative axes: `ConvertLayout` knows no others
        return relax.op.permute_dims(call.args[0], order)
    return merge_reshapes(relax.op.reshape(call.args[0], result), lookup)


def merge_reshapes(call: Any, lookup: Lookup) -> Any:
    """Only the last of several reshapes in a row counts."""
    source = lookup(call.args[0])
    if op_name(source) != "relax.reshape":
        return call
    return relax.op.reshape(source.args[0], call.args[1])


def flatten_layer_norm(call: Any, _: Lookup) -> Any:
    """Replaces several axes by one, because `ConvertLayout` moves axes without the scale and the
    shift."""
    data, scale, shift = call.args
    shape, count = static_shape(data), len(call.attrs.axes)
    if count < 2 or shape is None:
        return call
    flat = relax.op.reshape(data, (*shape[:-count], -1))
    vectors = (relax.op.reshape(vector, (-1,)) for vector in (scale, shift))
    normal = relax.op.nn.layer_norm(flat, *vectors, [-1], float(call.attrs.epsilon))
    return relax.op.reshape(normal, shape)


def _simplify(call: Any, lookup: Lookup) -> Any:
    name = op_name(call)
    if name in ELEMENTWISE:
        return scalars_to_tensors(call)
    rule = RULES.get(name)
    return rule(call, lookup) if rule else call


RULES: Mapping[str, Callable[[Any, Lookup], Any]] = {
    "relax.clip": lambda call, _: clip_to_min_max(call),
    "relax.permute_dims": transpose_to_reshape,
    "relax.reshape": merge_reshapes,
    "relax.nn.layer_norm": flatten_layer_norm,
}


def simplify_calls(mod: tvm.IRModule) -> tvm.IRModule:
    """Applies every rule of this file, then removes unused bindings."""
    return rewrite_calls(mod, _simplify)
