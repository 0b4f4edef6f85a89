"""A network whose convolutions are computed by minimal filtering (Lavin and Gray, 2016), and
transposed ones."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import tvm
from tvm import te, tirx
from tvm.ir import GenericConst

from ansor.frontend.rewrite import constant, op_name, replace_calls, static_shape
from ansor.workloads.minimal_filtering import filtered, joined, transform_weight
from ansor.workloads.transforms import Transform, is_nearly_whole
from ansor.workloads.transposed import zeros_before
from ansor.workloads.workload import Array

Convert = Callable[[Array, Transform], Array]
OP_PATTERN = 4  # of TVM's fusion: elementwise operators may follow
TRANSPOSED = "relax.nn.conv2d_transpose"
_DTYPES = {"float32"}


def with_winograd(
    mod: tvm.IRModule, transforms: Collection[Transform], convert: Convert = transform_weight
) -> tvm.IRModule:
    """`mod` with every convolution that minimal filtering can compute computed by it.

    Those with constant float32 weights, and the stride of a transform, whose output is nearly whole
    tiles. Without any, it is `mod` itself.

    Args:
        mod: channels last, kernels in HWIO.
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
        lambda key: f"winograd{key[1].tile}_{_stage_name(key[1])}",
        lambda key: _definition(*key),
        operands,
    )


def transform_for(call: Any, transforms: Collection[Transform]) -> Transform | None:
    """The one that computes a call, None where none does."""
    return next((t for t in transforms if _is_eligible(call, t)), None)


def _is_eligible(call: Any, transform: Transform) -> bool:
    operator = TRANSPOSED if transform.is_transposed else "relax.nn.conv2d"
    if op_name(call) != operator or not isinstance(call.args[1], GenericConst):
        return False
    attrs, out = call.attrs, static_shape(call)
    layouts = (str(attrs.data_layout), str(attrs.kernel_layout), str(attrs.out_layout))
    unit = all(int(s) == 1 for s in (*attrs.dilation, attrs.groups))
    form = static_shape(call.args[1])[:2], int(attrs.strides[0]), transform.is_transposed  # type: ignore[index]
    fitting = len(set(attrs.strides)) == 1 and transform.computes(*form)
    padded = not transform.is_transposed or all(int(p) == 1 for p in attrs.padding[:2])
    fits = out is not None and is_nearly_whole(out[1:3], transform)
    dtypes = {str(value.ty.dtype) for value in (*call.args, call)}
    usual = layouts == ("NHWC", "HWIO", "NHWC") and dtypes == _DTYPES
    return usual and unit and fitting and padded and fits


class _Shapes(NamedTuple):
    """What a convolution's definition depends on: equal ones share it."""

    data: tuple[int, ...]
    weight: tuple[int, ...]
    out: tuple[int, ...]
    before: tuple[int, ...]


def _shapes(call: Any, transform: Transform) -> _Shapes:
    data, weight, out = (static_shape(tensor) or () for tensor in (*call.args, call))
    before = [int(size) for size in call.attrs.padding[:2]]
    if transform.is_transposed:
        before = zeros_before(weight[:2], [transform.stride] * 2, before)
    return _Shapes(data, weight, out, tuple(before))


def _stage_name(transform: Transform) -> str:
    return "conv2d_transpose" if transform.is_transposed else "conv2d"


def _definition(shapes: _Shapes, transform: Transform) -> tirx.PrimFunc:
    data = te.placeholder(shapes.data, name="data")
    weight = te.placeholder(transform.shape_of(shapes.weight), name="weight")
    _, height, width, _ = shapes.out
    tiles = filtered(data, weight, transform, shapes.before, (height, width))
    out = joined(tiles, height, width, _stage_name(transform))
    func = te.create_prim_func([data, weight, out], index_dtype_override="int64")  # as Relax's
    return func.with_attr({"op_pattern": OP_PATTERN, "tirx.noalias": True})
