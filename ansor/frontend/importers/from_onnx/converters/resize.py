"""Resizing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tvm import relax

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import axes_of, dtype_of, is_float, shape_of
from ansor.frontend.importers.from_onnx.converters.context import Context, Converter
from ansor.frontend.importers.operators.resize import Method, ResizedAxis
from ansor.frontend.importers.operators.resize import resize as resize_axes


def resize(c: Context) -> Any:
    """Resizing by scales or to sizes."""
    x = c.operand(0)
    if c.version < 11:
        return _resized(c, x, _scaled(c, x, c.known(1).reshape(-1).tolist()), _old_method(c))
    mode = c.attr("coordinate_transformation_mode", "half_pixel")
    method = Method(
        c.attr("mode", "nearest"),
        mode,
        c.attr("nearest_mode", "round_prefer_floor"),
        c.attr("cubic_coeff_a", -0.75),
        bool(c.attr("exclude_outside", 0)),
        bool(c.attr("antialias", 0)),
        c.attr("extrapolation_value", 0.0),
    )
    return _resized(c, x, _axes(c, x), method)


def upsample(c: Context) -> Any:
    """Resizing by scales: an operator that Resize has replaced."""
    x = c.operand(0)
    scales = c.known(1).reshape(-1).tolist() if c.has(1) else list(c.attr("scales"))
    return _resized(c, x, _scaled(c, x, scales), _old_method(c))


def _old_method(c: Context) -> Method:
    mode = c.attr("mode", "nearest")
    return Method("linear" if mode == "bilinear" else mode, "asymmetric", "floor")


def _scaled(c: Context, x: Any, scales: Sequence[float]) -> list[ResizedAxis]:
    return [
        ResizedAxis(a, e, math.floor(e * s), s)
        for a, (e, s) in enumerate(zip(shape_of(x), scales, strict=True))
    ]


def _axes(c: Context, x: Any) -> list[ResizedAxis]:
    shape = shape_of(x)
    rank = len(shape)
    places = axes_of(c.attr("axes") or range(rank), rank)
    by_sizes = c.has(3) and c.known(3).size > 0
    scales = [] if by_sizes or not c.has(2) else c.known(2).reshape(-1).tolist()
    sizes = c.integers(3) if by_sizes else []
    if not scales and not sizes:
        raise OperatorError("it has neither scales nor sizes")
    extents = [shape[a] for a in places]
    if sizes:
        sizes, scales = _by_policy(c, extents, sizes)
    else:
        sizes = [math.floor(e * s) for e, s in zip(extents, scales, strict=True)]
    regions = _regions(c, len(places))
    rows = zip(places, extents, sizes, scales, regions, strict=True)
    return [ResizedAxis(a, e, int(n), float(s), r) for a, e, n, s, r in rows]


def _by_policy(c: Context, extents: list[int], sizes: list[int]) -> tuple[list[int], list[float]]:
    scales = [n / e for n, e in zip(sizes, extents, strict=True)]
    policy = c.attr("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return sizes, scales
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [math.floor(scale * e + 0.5) for e in extents], [scale] * len(extents)


def _regions(c: Context, count: int) -> list[tuple[float, float]]:
    if c.attr("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize":
        return [(0.0, 1.0)] * count
    roi = c.known(1).reshape(-1).tolist()
    return list(zip(roi[:count], roi[count:], strict=True))


def _resized(c: Context, x: Any, axes: list[ResizedAxis], method: Method) -> Any:
    """Along the axes whose extents change, or all that are cropped."""
    crops = method.coordinates == "tf_crop_and_resize"
    changed = [a for a in axes if crops or a.out != a.extent or a.scale != 1.0]
    if not changed:
        return x
    plain = _plain(x, changed, method)
    if plain is not None:
        return plain
    if is_float(dtype_of(x)) and dtype_of(x) in ("float32", "float64"):
        return resize_axes(c.bb, x, changed, method)
    if method.mode == "nearest":
        return resize_axes(c.bb, x, changed, method)
    found = resize_axes(c.bb, c.cast(x, "float32"), changed, method)
    if not is_float(dtype_of(x)):
        raise OperatorError("integers are resized with mode nearest only")
    return c.cast(found, dtype_of(x))


def _plain(x: Any, axes: list[ResizedAxis], method: Method) -> Any:
    """TVM's operator where it computes the same, which channels-last conversion knows."""
    whole = len(shape_of(x)) == 4 and all(a.place >= 2 for a in axes) and dtype_of(x) == "float32"
    if not whole or method.antialias:
        return None
    exact = all(a.out == a.extent * a.scale for a in axes)
    grows = exact and all(a.out % a.extent == 0 for a in axes)
    is_nearest = method.mode == "nearest" and method.nearest == "floor" and grows
    is_linear = method.mode == "linear" and exact and not method.exclude_outside
    sizes = list(shape_of(x)[2:])
    for axis in axes:
        sizes[axis.place - 2] = axis.out
    image = relax.op.image.resize2d
    if is_nearest and method.coordinates == "asymmetric":
        mode, how, rounding = "nearest_neighbor", "asymmetric", "floor"
    elif is_linear and method.coordinates == "half_pixel":
        mode, how, rounding = "linear", "half_pixel", ""
    else:
        return None
    return image(
        x, tuple(sizes), layout="NCHW", method=mode, coordinate_transformation_mode=how,
        rounding_method=rounding,
    )  # fmt: skip


CONVERTERS: Mapping[str, Converter] = {"Resize": resize, "Upsample": upsample}
