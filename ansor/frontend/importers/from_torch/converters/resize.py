"""Resizing of images, and reading of them at positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from tvm import relax

from ansor.frontend.importers.conversion import shape_of
from ansor.frontend.importers.from_torch.converters.context import Context
from ansor.frontend.importers.from_torch.converters.elementwise import wide
from ansor.frontend.importers.from_torch.converters.registry import FUNCTIONS, converts
from ansor.frontend.importers.operators.grid_sample import Sampling, grid_sample
from ansor.frontend.rewrite import constant

op = relax.op


@converts("upsample_nearest2d.vec")
def nearest(context: Context, x: Any, output_size: Any, scale_factors: Any) -> Any:
    """Each element several times: the decomposition leaves whole factors only."""
    return _resized(context, x, "nearest_neighbor", "asymmetric")


@converts("upsample_bilinear2d.vec")
def bilinear(
    context: Context, x: Any, output_size: Any, align_corners: bool, scale_factors: Any
) -> Any:
    """Between the four nearest elements: the decomposition leaves whole factors only."""
    return _resized(context, x, "linear", "align_corners" if align_corners else "half_pixel")


def _resized(context: Context, x: Any, method: str, coordinates: str) -> Any:
    result = op.image.resize2d(
        context.cast(x, wide(context.dtype)),
        relax.ShapeExpr(list(context.shape[-2:])),
        layout="NCHW",
        method=method,
        coordinate_transformation_mode=coordinates,
        rounding_method="floor" if method == "nearest_neighbor" else "",
    )
    return context.cast(context.emit(result), context.dtype)


@converts("grid_sampler_2d.default", "grid_sampler_3d.default")
def sampled(
    context: Context,
    x: Any,
    grid: Any,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Any:
    """Elements at the positions of a grid."""
    dtype = wide(context.dtype)
    sampling = Sampling(
        ("linear", "nearest", "cubic")[interpolation_mode],
        ("zeros", "border", "reflection")[padding_mode],
        align_corners,
    )
    found = grid_sample(context.bb, context.cast(x, dtype), context.cast(grid, dtype), sampling)
    return context.cast(found, context.dtype)


def _smoothed(operator: Any) -> Any:
    """A resize with antialiasing: a product with a matrix of weights for each axis.

    The weights of one axis are what PyTorch makes of the unit vectors along it.
    """

    def convert(
        context: Context,
        x: Any,
        output_size: Any,
        align_corners: bool,
        scales_h: Any = None,
        scales_w: Any = None,
        scale_factors: Any = None,
    ) -> Any:
        if scale_factors:
            scales_h, scales_w = scale_factors
        dtype = wide(context.dtype)
        sizes = zip(shape_of(x)[-2:], context.shape[-2:], (scales_h, scales_w), strict=True)
        high, wide_ = (_weights(operator, *size, align_corners) for size in sizes)
        rows = context.emit(op.matmul(constant(high.numpy(), dtype), context.cast(x, dtype)))
        result = context.emit(op.matmul(rows, constant(wide_.T.numpy(), dtype)))
        return context.cast(result, context.dtype)

    return convert


def _weights(
    operator: Any, extent: int, out: int, scale: float | None, align_corners: bool
) -> torch.Tensor:
    """`[out, extent] float64`: weight of each element."""
    unit = torch.eye(extent, dtype=torch.float64)[None, None]
    return operator(unit, [out, extent], align_corners, scale, None)[0, 0]


for _kind in ("bilinear", "bicubic"):
    _operator = getattr(torch.ops.aten, f"_upsample_{_kind}2d_aa")
    FUNCTIONS[f"_upsample_{_kind}2d_aa.default"] = _smoothed(_operator.default)
    FUNCTIONS[f"_upsample_{_kind}2d_aa.vec"] = _smoothed(_operator.default)


def whole_factors(x: torch.Tensor, sizes: Sequence[int]) -> bool:
    """Whether an image's sides grow by whole factors."""
    return all(out % extent == 0 for out, extent in zip(sizes, x.shape[-2:], strict=True))
