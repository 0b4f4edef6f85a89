"""A network whose convolutions, of images and volumes and transposed ones, are computed by minimal
filtering (Lavin and Gray, 2016)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import MappingProxyType
from typing import Any, NamedTuple

import tvm
from tvm import te, tirx
from tvm.ir import GenericConst

from ansor.frontend.passes.fusion_kind import FusionKind
from ansor.frontend.rewrite import constant, op_name, replace_calls, static_shape
from ansor.workloads.minimal_filtering.stages import DepthForm, Form, filtered, joined
from ansor.workloads.minimal_filtering.transformed_weights import transform_weight
from ansor.workloads.minimal_filtering.transforms import Transform, is_nearly_whole
from ansor.workloads.transposed import zeros_before
from ansor.workloads.workload import Array

Convert = Callable[[Array, Transform], Array]
TRANSPOSED = "relax.nn.conv2d_transpose"
_DTYPES = {"float32"}
_LAYOUTS = MappingProxyType(
    {
        "relax.nn.conv2d": ("NHWC", "HWIO", "NHWC"),
        "relax.nn.conv3d": ("NDHWC", "DHWIO", "NDHWC"),
        TRANSPOSED: ("NHWC", "HWIO", "NHWC"),
    }
)


def with_winograd(
    mod: tvm.IRModule, transforms: Collection[Transform], convert: Convert = transform_weight
) -> tvm.IRModule:
    """`mod` with minimal filtering in every suitable convolution.

    Suitable are convolutions with constant float32 weights and the stride of a transform, whose
    output consists almost of whole tiles. Without any, the result is `mod` itself.

    Args:
        mod: channels last, kernels in HWIO and DHWIO.
        transforms: one for each kernel and stride, and for transposed convolutions.
        convert: makes the transformed weights.
    """

    def chosen(call: Any) -> tuple[_Shapes, Transform] | None:
        transform = transform_for(call, transforms)
        return None if transform is None else (_shapes(call, transform), transform)

    def operands(call: Any, key: tuple[_Shapes, Transform]) -> list[Any]:
        return [call.args[0], constant(convert(call.args[1].value.numpy(), key[1]))]

    return replace_calls(
        mod,
        chosen,
        lambda key: f"winograd{key[1].tile}_{_stage_name(*key)}",
        lambda key: _definition(*key),
        operands,
    )


def transform_for(call: Any, transforms: Collection[Transform]) -> Transform | None:
    """The transform for a call, None if there is none."""
    return next((t for t in transforms if _is_eligible(call, t)), None)


def _is_eligible(call: Any, transform: Transform) -> bool:
    name, usual = op_name(call), _LAYOUTS.get(op_name(call))
    if usual is None or not isinstance(call.args[1], GenericConst):
        return False
    attrs, out, weight = call.attrs, static_shape(call), static_shape(call.args[1])
    layouts = (str(attrs.data_layout), str(attrs.kernel_layout), str(attrs.out_layout))
    dtypes = {str(value.ty.dtype) for value in (*call.args, call)}
    if layouts != usual or dtypes != _DTYPES or int(attrs.groups) != 1 or not out or not weight:
        return False
    (stride, *strides), (dilation, *dilations) = (
        [int(step) for step in steps[-2:]] for steps in (attrs.strides, attrs.dilation)
    )
    is_transposed = name == TRANSPOSED
    form = weight[-4:-2], stride, dilation, is_transposed
    alike = strides == [stride] and dilations == [dilation]
    padded = not is_transposed or all(int(p) == 1 for p in attrs.padding[:2])
    whole = is_nearly_whole(out[-3:-1], transform, dilation)
    return alike and padded and whole and transform.computes(*form)


class _Shapes(NamedTuple):
    """The parameters of a convolution's definition; equal ones share it."""

    data: tuple[int, ...]
    weight: tuple[int, ...]
    form: Form


def _shapes(call: Any, transform: Transform) -> _Shapes:
    data, weight, out = (static_shape(tensor) or () for tensor in (*call.args, call))
    attrs = call.attrs
    *front, top, left = (int(size) for size in attrs.padding[: len(attrs.padding) // 2])
    if transform.is_transposed:
        top, left = zeros_before(weight[:2], [transform.stride] * 2, [top, left])
    _, *depth, height, width, _ = out
    dilation = int(attrs.dilation[-1])
    along = None
    if depth:
        along = DepthForm(depth[0], int(attrs.strides[0]), int(attrs.dilation[0]), front[0])
    form = Form((top, left), (height, width), dilation=dilation, depth=along)
    return _Shapes(data, transform.shape_of(weight), form)


def _stage_name(shapes: _Shapes, transform: Transform) -> str:
    if shapes.form.depth is not None:
        return "conv3d"
    return "conv2d_transpose" if transform.is_transposed else "conv2d"


def _definition(shapes: _Shapes, transform: Transform) -> tirx.PrimFunc:
    data = te.placeholder(shapes.data, name="data")
    weight = te.placeholder(shapes.weight, name="weight")
    tiles = filtered(data, weight, transform, shapes.form)
    out = joined(tiles, shapes.form, _stage_name(shapes, transform))
    func = te.create_prim_func([data, weight, out], index_dtype_override="int64")  # as Relax's
    func = func.without_attr("global_symbol")  # private: several are in one module
    return func.with_attr({"op_pattern": int(FusionKind.BEFORE_ELEMENTWISE), "tirx.noalias": True})
