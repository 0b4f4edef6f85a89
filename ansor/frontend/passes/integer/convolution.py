"""Convolutions of 8-bit integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ansor.frontend.importers.operators.by_rank import CONVOLUTIONS, SPATIAL
from ansor.frontend.passes.integer.codes import Codes, codes_of, of_dtype, signed
from ansor.frontend.passes.integer.epilogue import with_epilogue
from ansor.frontend.passes.integer.parameters import (
    Array,
    Parameter,
    is_known,
    is_single,
    is_zero,
    known,
    op,
    single,
    times,
)
from ansor.frontend.rewrite import Lookup, op_name, static_shape

NAMES = {f"relax.nn.conv{rank}d": rank for rank in CONVOLUTIONS}


def integer_convolution(
    call: Any, bias: Array | None, activations: str | None, lookup: Lookup
) -> Any | None:
    """A convolution of quantised tensors, and a bias `[1, C, 1, ...]`, in integers.

    The data has the dtype `activations`, or its own.

    None if an operand has no 8-bit integers, or if the range of the weights has no room for their
    zero point.
    """
    data, weight = (codes_of(arg, lookup) for arg in call.args)
    if data is None or weight is None or not _has_plain_layout(call):
        return None
    weight = signed(weight, lookup)
    values = known(weight.data, lookup)
    if values is None or not is_zero(weight.zero) or not _has_single_parameters(data):
        return None
    if (data.scale is None) != (weight.scale is None):
        return None
    data = of_dtype(data, activations or str(data.data.ty.dtype), lookup)
    total, term = _sums(call, data, weight, values)
    return with_epilogue(total, [term], _scale(data, weight, values.ndim), bias, values.ndim)


def _has_single_parameters(data: Codes) -> bool:
    return is_single(data.zero) and (data.scale is None or is_single(data.scale))


def _has_plain_layout(call: Any) -> bool:
    """Whether a convolution has the layouts of importers."""
    axes = SPATIAL[NAMES[op_name(call)]]
    layouts = [str(getattr(call.attrs, key)) for key in ("data_layout", "kernel_layout")]
    return layouts == [f"NC{axes}", f"OI{axes}"]


def _scale(data: Codes, weight: Codes, rank: int) -> Parameter | None:
    """The scale of the sums, `[]` or `[1, C, 1, ...]`."""
    if data.scale is None or weight.scale is None:
        return None
    own = weight.scale
    shape = () if is_single(own) else (1, -1, *[1] * (rank - 2))
    along = own.reshape(shape) if is_known(own) else op.reshape(own, shape)
    return times(single(data.scale), along)


def _sums(call: Any, data: Codes, weight: Codes, values: Array) -> tuple[Any, Parameter]:
    """The convolution, and the terms of its zero point; both `int32`.

    Padding has the zero point as its value if it is known. Otherwise padding is 0, and the constant
    has separate terms for the border.
    """
    padding = [int(size) for size in call.attrs.padding]
    zero = data.zero
    if not is_known(zero):
        correction = -_sums_of_weights(call, values, padding)
        return _convolved(call, data.data, weight.data, padding), times(correction, single(zero))
    point = int(zero.reshape(()))
    padded = data.data
    if point and any(padding):
        padded, padding = _padded(data.data, padding, point), [0] * len(padding)
    total = _convolved(call, padded, weight.data, padding)
    summed = values.reshape(len(values), -1).sum(axis=1, dtype=np.int32)
    return total, -point * summed.reshape(1, -1, *[1] * (values.ndim - 2))


def _padded(data: Any, padding: list[int], value: int) -> Any:
    half = len(padding) // 2
    sides = [side for pair in zip(padding[:half], padding[half:], strict=True) for side in pair]
    return op.nn.pad(data, [0, 0, 0, 0, *sides], pad_value=value)


def _convolved(call: Any, data: Any, weight: Any, padding: list[int]) -> Any:
    attrs = call.attrs
    strides, dilation = ([int(n) for n in sizes] for sizes in (attrs.strides, attrs.dilation))
    function = CONVOLUTIONS[NAMES[op_name(call)]]
    groups = int(attrs.groups)
    return function(data, weight, strides, padding, dilation, groups, out_dtype="int32")


def _sums_of_weights(call: Any, values: Array, padding: list[int]) -> Array:
    """For each point of the output, the sum of the weights that meet data; `[1, C, *spatial]`."""
    shape, out = static_shape(call.args[0]) or (), static_shape(call) or ()
    result = values.sum(axis=1, dtype=np.int32)
    sizes = zip(call.attrs.strides, call.attrs.dilation, padding, strict=False)
    for axis, (stride, dilation, before) in enumerate(sizes, 2):
        points = np.arange(out[axis]) * int(stride) - before
        places = points + np.arange(values.shape[axis])[:, None] * int(dilation)
        is_inside = (places >= 0) & (places < shape[axis])
        result = np.tensordot(result, is_inside.astype(np.int32), axes=(1, 0))
    return np.asarray(result[None], np.int32)
