"""Transposed convolutions computed channels last, without a multiplication by zero.

TVM's own definition puts zeros between the points of the input and convolves: with a stride of two,
three of four products are zero. It also supports only channels first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tvm
from tvm import te, tirx

from ansor.frontend.passes.fusion_kind import FusionKind
from ansor.frontend.passes.winograd_convolution import TRANSPOSED
from ansor.frontend.rewrite import op_name, replace_calls, static_shape
from ansor.workloads.transposed import transposed_convolution_tensor

LAYOUTS = ["NHWC", "HWIO"]


class _Shapes(NamedTuple):
    """The parameters of the definition; equal ones share it."""

    data: tuple[int, ...]
    weight: tuple[int, ...]
    out: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dtype: str


def can_spread(call: Any) -> bool:
    """Whether `transposed_convolution_tensor` can compute a call.

    The call has channels first, as importers leave it, a single group and no dilation. The kernel
    is a multiple of the stride, and larger than the padding.
    """
    attrs, weight = call.attrs, static_shape(call.args[1])
    if weight is None or None in (static_shape(call.args[0]), static_shape(call)):
        return False
    if (str(attrs.data_layout), str(attrs.kernel_layout)) != ("NCHW", "IOHW"):
        return False
    plain = int(attrs.groups) == 1 and all(int(d) == 1 for d in attrs.dilation)
    sizes = zip(weight[2:], map(int, attrs.strides), map(int, attrs.padding[:2]), strict=True)
    fits = all(kernel % stride == 0 and padding < kernel for kernel, stride, padding in sizes)
    dtypes = {str(value.ty.dtype) for value in (*call.args, call)}
    return plain and fits and len(dtypes) == 1


def with_spread(mod: tvm.IRModule) -> tvm.IRModule:
    """`mod` with our definition for every transposed convolution with channels last."""
    return replace_calls(
        mod,
        lambda call: _shapes(call) if _is_ours(call) else None,
        lambda _: "conv2d_transpose",
        _definition,
        lambda call, _: list(call.args),
    )


def _is_ours(call: Any) -> bool:
    return op_name(call) == TRANSPOSED and str(call.attrs.data_layout) == LAYOUTS[0]


def _shapes(call: Any) -> _Shapes:
    data, weight, out = (static_shape(tensor) or () for tensor in (*call.args, call))
    strides = tuple(int(stride) for stride in call.attrs.strides)
    padding = tuple(int(size) for size in call.attrs.padding[:2])
    return _Shapes(data, weight, out, strides, padding, str(call.ty.dtype))


def _definition(shapes: _Shapes) -> tirx.PrimFunc:
    data = te.placeholder(shapes.data, shapes.dtype, name="data")
    weight = te.placeholder(shapes.weight, shapes.dtype, name="weight")
    out = transposed_convolution_tensor(
        data, weight, shapes.strides, shapes.padding, shapes.out[1:3], "conv2d_transpose"
    )
    func = te.create_prim_func([data, weight, out], index_dtype_override="int64")  # as Relax's
    func = func.without_attr("global_symbol")  # private: several are in one module
    return func.with_attr({"op_pattern": int(FusionKind.BEFORE_ELEMENTWISE), "tirx.noalias": True})
