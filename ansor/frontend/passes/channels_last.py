"""Channels last: the layout in which convolutions read and write whole vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tvm
from tvm import relax

from ansor.frontend.passes.constant_folding import fold_constants
from ansor.frontend.passes.simplify import simplify_calls
from ansor.frontend.passes.transposed_convolution import LAYOUTS, can_spread
from ansor.frontend.passes.winograd_convolution import TRANSPOSED
from ansor.frontend.rewrite import Lookup, op_name, rewrite_calls, static_shape

CHANNELS_LAST = {
    "relax.nn.conv1d": ["NWC", "WIO"],
    "relax.nn.conv2d": ["NHWC", "HWIO"],
    "relax.nn.conv3d": ["NDHWC", "DHWIO"],
}


def channels_last(mod: tvm.IRModule) -> tvm.IRModule:
    """Convolutions and the operators between them in NHWC; kernels in HWIO.

    A module does not change if no convolution needs another layout, or if TVM's pass fails. It is
    right in any layout.
    """
    plain = rewrite_calls(mod, _normalise)
    if not _has_convolutions(plain):
        return mod
    try:
        converted = relax.transform.ConvertLayout({}, _layouts)(plain)
    except Exception:  # errors of C++ in operators that the pass does not expect, of many kinds
        return mod
    return fold_constants(simplify_calls(converted))


def _has_convolutions(mod: tvm.IRModule) -> bool:
    found: list[Any] = []

    def collect(call: Any, _: Lookup) -> Any:
        found.extend(_layouts(call))
        return call

    rewrite_calls(mod, collect)
    return bool(found)


def _layouts(call: Any) -> dict[str, list[str]]:
    """The layouts of data and weights for an operator; none to keep it."""
    name = op_name(call)
    if name == TRANSPOSED and can_spread(call):
        return {name: LAYOUTS}
    return {name: CHANNELS_LAST[name]} if name in CHANNELS_LAST else {}


def _normalise(call: Any, _: Lookup) -> Any:
    rule = _RULES.get(op_name(call))
    return rule(call) if rule and static_shape(call) is not None else call


def _squeeze(call: Any) -> Any:
    """Makes axes non-negative. The pass takes a negative axis for a position in the layout's
    text."""
    data, axes = call.args[0], call.attrs.axis
    shape = static_shape(data)
    if axes is None or shape is None:
        return call
    return relax.op.squeeze(data, sorted(int(axis) % len(shape) for axis in axes))


def _stack(call: Any) -> Any:
    """Corrects the result's layout. The pass gives it the layout of the operands, which have one
    axis less."""
    rank = len(static_shape(call) or ())
    axis = int(call.attrs.axis) % rank
    fields = getattr(call.args[0], "fields", None)
    if fields is None:
        return call
    return relax.op.concat([relax.op.expand_dims(field, axis) for field in fields], axis)


_RULES: Mapping[str, Callable[[Any], Any]] = {
    "relax.squeeze": _squeeze,
    "relax.stack": _stack,
}
