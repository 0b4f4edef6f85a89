"""Moves the scales of results into the scales of their operands.

`round((sums * a + other * b) / c)` is `round(sums * (a / c) + other * (b / c))`: one multiplication
for each operand, and none at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import GenericConst

from ansor.frontend.passes.integer.bindings import Bindings
from ansor.frontend.passes.integer.movement import DEQUANTIZE, QUANTIZE
from ansor.frontend.passes.integer.parameters import Array, op, operand
from ansor.frontend.rewrite import Lookup, constant, op_name, rewrite_calls, static_shape

MULTIPLY, DIVIDE, RELU = "relax.multiply", "relax.divide", "relax.nn.relu"
_LINEAR = frozenset(("relax.add", "relax.subtract", "relax.maximum", "relax.minimum"))


def with_unit_scales(mod: tvm.IRModule) -> tvm.IRModule:
    """Replaces the known scale of a `quantize` by 1, if its operand can be scaled instead.

    Only values with a single reader change. Others would be computed twice.
    """
    graph = Bindings.of(mod)

    def rule(call: Any, _: Lookup) -> Any:
        return _with_unit_scale(call, graph) if op_name(call) == QUANTIZE else call

    return rewrite_calls(mod, rule)


def _with_unit_scale(call: Any, graph: Bindings) -> Any:
    data, scale, zero = call.args
    if not isinstance(scale, GenericConst) or static_shape(scale) not in ((), (1,)):
        return call
    factor = np.float32(1) / scale.value.numpy().reshape(())
    found = _scaled(data, factor, len(static_shape(call) or ()), graph)
    if found is None:
        return call
    one = constant(np.ones((), np.float32))
    attrs = call.attrs
    return op.quantize(found, one, zero, int(attrs.axis), str(attrs.out_dtype))


def _scaled(expr: Any, factor: Array, rank: int, graph: Bindings) -> Any | None:
    """The expression times a positive factor without a further multiplication, None if
    impossible."""
    if isinstance(expr, GenericConst):
        return operand(expr.value.numpy() * factor, rank)
    call = graph.value(expr)
    name = op_name(call)
    if name in (MULTIPLY, DIVIDE):
        return _scaled_product(call, factor, rank)
    if name == DEQUANTIZE:
        return _scaled_codes(call, factor)
    if name == RELU:
        inner = _scaled(call.args[0], factor, rank, graph)
        return None if inner is None else op.nn.relu(inner)
    if name not in _LINEAR:
        return None
    parts = [_scaled(arg, factor, rank, graph) for arg in call.args]
    return None if None in parts else relax.Call(call.op, parts, call.attrs, call.ty_args)


def _scaled_product(call: Any, factor: Array, rank: int) -> Any | None:
    """A product with a constant, or a quotient by one."""
    a, b = call.args
    if not isinstance(b, GenericConst):
        return None
    values = b.value.numpy()
    own = values * factor if op_name(call) == MULTIPLY else factor / values
    return op.multiply(a, operand(own, rank))


def _scaled_codes(call: Any, factor: Array) -> Any | None:
    data, scale, zero = call.args
    if not isinstance(scale, GenericConst):
        return None
    moved = constant(scale.value.numpy() * factor, str(scale.ty.dtype))
    return op.dequantize(data, moved, zero, int(call.attrs.axis), str(call.attrs.out_dtype))
