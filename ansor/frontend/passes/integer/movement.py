"""Data movement and maxima between quantised tensors, on their 8-bit integers.

They commute with `dequantize`, so that they read and write a quarter of the bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from ansor.frontend.passes.integer.parameters import known, op
from ansor.frontend.rewrite import Lookup, op_name, static_shape

DEQUANTIZE, QUANTIZE, CONCAT = "relax.dequantize", "relax.quantize", "relax.concat"
TRANSPOSE = "relax.permute_dims"
# They return some elements of their first operand, in some order.
_MOVES = frozenset(
    (
        *("relax.reshape", "relax.expand_dims", "relax.squeeze", "relax.flatten", TRANSPOSE),
        *("relax.broadcast_to", "relax.strided_slice", "relax.take"),
        *("relax.nn.max_pool1d", "relax.nn.max_pool2d", "relax.nn.max_pool3d"),
    )
)


def on_integers(call: Any, lookup: Lookup) -> Any:
    """`move(dequantize(x))` as `dequantize(move(x))`, without a `quantize` of the result."""
    name = op_name(call)
    if name in _MOVES:
        return _moved(call, lookup)
    if name == CONCAT:
        return _joined(call, lookup)
    return _quantized(call, lookup) if name == QUANTIZE else call


def _moved(call: Any, lookup: Lookup) -> Any:
    source = lookup(call.args[0])
    if op_name(source) != DEQUANTIZE:
        return call
    axis = _axis_after(call, source)
    if axis is None:
        return call
    data, *parameters = source.args
    moved = relax.Call(call.op, [data, *call.args[1:]], call.attrs, call.ty_args)
    return op.dequantize(moved, *parameters, axis, str(source.attrs.out_dtype))


def _axis_after(call: Any, source: Any) -> int | None:
    """The axis of the scale after the move; None if it is merged with another one."""
    if _is_single(source):
        return -1
    if op_name(call) != TRANSPOSE:
        return None
    rank, axes = len(static_shape(call) or ()), call.attrs.axes
    order = list(range(rank))[::-1] if axes is None else [int(axis) % rank for axis in axes]
    return order.index(int(source.attrs.axis) % rank)


def _is_single(call: Any) -> bool:
    """Whether `quantize` or `dequantize` has one scale and one zero point."""
    return all(static_shape(value) in ((), (1,)) for value in call.args[1:])


def _joined(call: Any, lookup: Lookup) -> Any:
    sources = [lookup(field) for field in _fields(call, lookup)]
    first = sources[0] if sources else None
    if not all(op_name(source) == DEQUANTIZE for source in sources) or first is None:
        return call
    if not _is_single(first) or not all(_agree(first, other, lookup) for other in sources[1:]):
        return call
    joined = op.concat([source.args[0] for source in sources], call.attrs.axis)
    return op.dequantize(joined, *first.args[1:], -1, str(first.attrs.out_dtype))


def _fields(call: Any, lookup: Lookup) -> list[Any]:
    return list(getattr(lookup(call.args[0]), "fields", ()))


def _agree(first: Any, second: Any, lookup: Lookup) -> bool:
    """Whether two calls map integers of the same dtype to the same numbers."""
    dtypes = {_integer_dtype(call) for call in (first, second)}
    pairs = [
        (known(a, lookup), known(b, lookup))
        for a, b in zip(first.args[1:], second.args[1:], strict=True)
    ]
    return len(dtypes) == 1 and all(
        a is not None and b is not None and np.array_equal(a, b) for a, b in pairs
    )


def _integer_dtype(call: Any) -> str:
    tensor = call if op_name(call) == QUANTIZE else call.args[0]
    return str(tensor.ty.dtype)


def _quantized(call: Any, lookup: Lookup) -> Any:
    """`quantize` without a conversion in both directions. Concatenated parts are quantised
    separately, in their functions."""
    source = lookup(call.args[0])
    if op_name(source) != CONCAT or not _is_single(call):
        return _part(call, call.args[0], lookup)
    parts = [_part(call, field, lookup) for field in _fields(source, lookup)]
    return op.concat(parts, source.attrs.axis)


def _part(call: Any, data: Any, lookup: Lookup) -> Any:
    """The data, quantised by the parameters of a call."""
    source = lookup(data)
    if op_name(source) == DEQUANTIZE and _is_single(call) and _agree(call, source, lookup):
        return source.args[0]
    return relax.Call(call.op, [data, *call.args[1:]], call.attrs, call.ty_args)
