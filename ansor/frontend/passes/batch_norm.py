"""Batch normalisation with constant statistics is one multiply and one add per channel.

After a convolution with constant weights, both become part of its weights and its bias.
Deviation: TVM's `FoldBatchnormToConv2D` does the same, but not for a convolution with a bias, over
lines or volumes, or a transposed one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
from tvm import relax
from tvm.ir import GenericConst

from ansor.frontend.rewrite import Lookup, constant, op_name, rewrite_calls, static_shape

Array = npt.NDArray[np.float64]
# Convolutions as importers write them: layouts of the output and of the kernel.
_LAYOUTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "relax.nn.conv1d": ("NCW", "OIW"),
        "relax.nn.conv2d": ("NCHW", "OIHW"),
        "relax.nn.conv3d": ("NCDHW", "OIDHW"),
        "relax.nn.conv1d_transpose": ("NCW", "IOW"),
        "relax.nn.conv2d_transpose": ("NCHW", "IOHW"),
    }
)


@dataclass(frozen=True, eq=False)
class Affine:
    """`scale * x + shift` along one axis of x; both `[C] float64`, rounded once, at the end."""

    scale: Array
    shift: Array
    axis: int

    def along_axis(self, vector: Array, like: Any) -> Any:
        """The vector as a constant that broadcasts along the axis of `like`, in its dtype."""
        shape = [1] * len(like.ty.shape)
        shape[self.axis] = -1
        return constant(vector.reshape(shape), str(like.ty.dtype))


def _values(expr: Any) -> Array:
    return np.asarray(expr.value.numpy(), np.float64)


def affine_of(call: Any) -> Affine:
    """The affine map of a batch norm with constant operands."""
    gamma, beta, mean, variance = (_values(arg) for arg in call.args[1:])
    attrs = call.attrs
    scale = (gamma if attrs.scale else 1.0) / np.sqrt(variance + float(attrs.epsilon))
    shift = (beta if attrs.center else 0.0) - mean * scale
    return Affine(scale, shift, int(attrs.axis))


def _is_foldable_conv(expr: Any, affine: Affine) -> bool:
    layouts = _LAYOUTS.get(op_name(expr))
    if layouts is None or affine.axis != 1:
        return False
    if (str(expr.attrs.out_layout), str(expr.attrs.kernel_layout)) != layouts:
        return False
    grouped = int(expr.attrs.groups) > 1 and layouts[1].index("O") > 0
    return not grouped and isinstance(expr.args[1], GenericConst)


def _scaled_conv(conv: Any, scale: Array) -> Any:
    weight = conv.args[1]
    shape = [1] * len(weight.ty.shape)
    shape[_LAYOUTS[op_name(conv)][1].index("O")] = -1
    scaled = constant(_values(weight) * scale.reshape(shape), str(weight.ty.dtype))
    return relax.Call(conv.op, [conv.args[0], scaled], conv.attrs, conv.ty_args)


def _split_bias(expr: Any, affine: Affine, lookup: Lookup) -> tuple[Any, Array]:
    """The operand and the per-channel bias of `operand + bias`; a bias of zero if it is no sum."""
    nothing = expr, np.zeros_like(affine.shift)
    if op_name(expr) != "relax.add":
        return nothing
    operand, bias = (lookup(arg) for arg in expr.args)
    expected = (1, affine.shift.size, *[1] * (len(expr.ty.shape) - 2))
    if not isinstance(bias, GenericConst) or static_shape(bias) != expected:
        return nothing
    return operand, _values(bias).reshape(-1)


def _normalised(data: Any, affine: Affine, lookup: Lookup) -> Any:
    conv, bias = _split_bias(lookup(data), affine, lookup)
    if _is_foldable_conv(conv, affine):
        shift = affine.shift + bias * affine.scale
        return relax.op.add(_scaled_conv(conv, affine.scale), affine.along_axis(shift, data))
    scaled = relax.op.multiply(data, affine.along_axis(affine.scale, data))
    return relax.op.add(scaled, affine.along_axis(affine.shift, data))


def _fold(call: Any, lookup: Lookup) -> Any:
    if op_name(call) != "relax.nn.batch_norm" or call.attrs.training:
        return call
    if not all(isinstance(arg, GenericConst) for arg in call.args[1:]):
        return call
    result = _normalised(call.args[0], affine_of(call), lookup)
    return relax.Tuple([result, call.args[3], call.args[4]])


def fold_batch_norms(mod: tvm.IRModule) -> tvm.IRModule:
    """Folds every batch norm whose statistics are constant.

    Expects folded constants and bindings without tuples. A convolution with other readers is
    computed twice.
    """
    return rewrite_calls(mod, _fold)
