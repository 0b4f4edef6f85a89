"""Activations of the dtype that a target's instructions multiply by `int8`.

Quantised networks have `uint8` or `int8`. Both represent the same numbers if zero points differ by
128, so that only constants change.
"""

from __future__ import annotations

from typing import Any

import tvm

from ansor.frontend.passes.integer.codes import EIGHT_BITS, moved, moved_back
from ansor.frontend.passes.integer.movement import DEQUANTIZE, QUANTIZE
from ansor.frontend.passes.integer.parameters import op
from ansor.frontend.rewrite import Lookup, op_name, rewrite_calls


def with_activations(mod: tvm.IRModule, dtype: str) -> tvm.IRModule:
    """`mod` whose tensors are quantised to `uint8` or to `int8`.

    Readers other than `dequantize` read them in their own dtype.
    """

    def quantized(call: Any, lookup: Lookup) -> Any:
        return _quantized(call, dtype, lookup) if op_name(call) == QUANTIZE else call

    def dequantized(call: Any, lookup: Lookup) -> Any:
        return _dequantized(call, dtype, lookup) if op_name(call) == DEQUANTIZE else call

    return rewrite_calls(rewrite_calls(mod, quantized), dequantized)


def _quantized(call: Any, dtype: str, lookup: Lookup) -> Any:
    data, scale, zero = call.args
    own = str(call.ty.dtype)
    if own == dtype or own not in EIGHT_BITS or str(zero.ty.dtype) != own:
        return call
    point = moved(zero, dtype, lookup)
    other = op.quantize(data, scale, point, int(call.attrs.axis), dtype)
    return moved(other, own, lookup)


def _dequantized(call: Any, dtype: str, lookup: Lookup) -> Any:
    data, scale, zero = call.args
    source = moved_back(data, dtype, lookup)
    if source is None or str(zero.ty.dtype) != str(data.ty.dtype):
        return call
    axis, result = int(call.attrs.axis), str(call.attrs.out_dtype)
    return op.dequantize(source, scale, moved(zero, dtype, lookup), axis, result)
