"""Channels of 8-bit convolutions in whole groups.

Instructions multiply the integers of four neighbouring channels at once. A convolution of an image
has one or three. It gets further channels, whose weights are zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import GenericConst

from ansor.frontend.passes.channels_last import CHANNELS_LAST
from ansor.frontend.passes.integer.codes import EIGHT_BITS
from ansor.frontend.rewrite import Lookup, constant, op_name, rewrite_calls, static_shape

_GROUP = 4  # integers of 8 bits in a word of 32, which `vpdpbusd` and `sdot` take for each lane


def with_whole_channels(mod: tvm.IRModule) -> tvm.IRModule:
    """`mod` with zeros after the channels of convolutions whose channels fill no whole groups.

    This applies if the result is channels-last, the weights are constant, and there is one group
    of filters.
    """
    return rewrite_calls(mod, _whole)


def _whole(call: Any, lookup: Lookup) -> Any:
    if op_name(call) not in CHANNELS_LAST:
        return call
    data, weight = call.args[0], lookup(call.args[1])
    layouts = [call.attrs.data_layout, call.attrs.kernel_layout]
    shape = static_shape(data)
    if shape is None or layouts != CHANNELS_LAST[op_name(call)] or call.attrs.groups != 1:
        return call
    missing = -shape[-1] % _GROUP
    integers = {str(expr.ty.dtype) for expr in call.args} <= EIGHT_BITS
    if not missing or not integers or not isinstance(weight, GenericConst):
        return call
    widths = [0] * (2 * len(shape) - 1) + [missing]
    longer = relax.op.nn.pad(data, widths, "constant", 0.0)
    return relax.Call(call.op, [longer, _padded(weight, missing)], call.attrs, call.ty_args)


def _padded(weight: Any, missing: int) -> Any:
    """Weights with zeros after their input channels, the dimension before the last."""
    array = weight.value.numpy()
    widths = [(0, 0)] * (array.ndim - 2) + [(0, missing), (0, 0)]
    return constant(np.pad(array, widths))
