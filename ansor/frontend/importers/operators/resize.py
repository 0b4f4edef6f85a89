"""Resizing along axes, with all modes of ONNX's Resize.

Each output position is a place in the input. The elements around that place and their weights are
computed once, axis by axis, when the network is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax, te

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import shape_of
from ansor.frontend.rewrite import constant

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ResizedAxis:
    """The resizing of an axis.

    Attributes:
        place: of the axis.
        extent: of the input.
        out: extent of the result.
        scale: ratio of growth; need not be `out / extent`.
        region: beginning and end of the cropped part, as shares of the extent.
    """

    place: int
    extent: int
    out: int
    scale: float
    region: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Method:
    """The combination of elements.

    Attributes:
        mode: "nearest", "linear" or "cubic".
        coordinates: ONNX's `coordinate_transformation_mode`.
        nearest: ONNX's `nearest_mode`.
        cubic: the coefficient of the cubic kernel.
        exclude_outside: elements outside have no weight.
        antialias: the kernel grows as the axis shrinks.
        outside: the result for places outside with "tf_crop_and_resize".
    """

    mode: str
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    outside: float = 0.0


def coordinates(axis: ResizedAxis, mode: str) -> Array:
    """`[out] float64`: places in the input.

    Raises:
        OperatorError: an unknown mode.
    """
    o, n, m, s = np.arange(axis.out, dtype=np.float64), axis.extent, axis.out, axis.scale
    first, last = axis.region
    by_mode: dict[str, Callable[[], Array]] = {
        "half_pixel": lambda: (o + 0.5) / s - 0.5,
        "pytorch_half_pixel": lambda: (o + 0.5) / s - 0.5 if m > 1 else 0 * o,
        "align_corners": lambda: o * (n - 1) / (m - 1) if m > 1 else 0 * o,
        "asymmetric": lambda: o / s,
        "half_pixel_symmetric": lambda: n / 2 * (1 - m / (s * n)) + (o + 0.5) / s - 0.5,
        "tf_crop_and_resize": lambda: (
            first * (n - 1) + o * (last - first) * (n - 1) / (m - 1)
            if m > 1
            else 0.5 * (first + last) * (n - 1) + 0 * o
        ),
    }
    if mode not in by_mode:
        raise OperatorError(f"its coordinates {mode} are not supported")
    return by_mode[mode]()


def nearest_places(places: Array, mode: str) -> Array:
    """Whole places."""
    by_mode: dict[str, Callable[[Array], Array]] = {
        "round_prefer_floor": lambda x: np.ceil(x - 0.5),
        "round_prefer_ceil": lambda x: np.floor(x + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    if mode not in by_mode:
        raise OperatorError(f"its rounding {mode} is not supported")
    # A place that is an integer up to rounding errors is an integer.
    whole = np.round(places * 2) / 2
    exact = np.where(np.abs(places - whole) < 1e-6, whole, places)
    return by_mode[mode](exact)


def _linear(distance: Array) -> Array:
    return np.maximum(0.0, 1.0 - np.abs(distance))


def _cubic(distance: Array, a: float) -> Array:
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def weights(axis: ResizedAxis, method: Method) -> tuple[Array, Array]:
    """`[out, K] int64` places of elements, and `[out, K] float64` weights."""
    x = coordinates(axis, method.coordinates)
    if method.mode == "nearest":
        places = np.clip(nearest_places(x, method.nearest), 0, axis.extent - 1)
        return places.astype(np.int64)[:, None], np.ones((axis.out, 1))
    is_linear = method.mode == "linear"
    shrink = min(axis.scale, 1.0) if method.antialias else 1.0
    if is_linear and not method.antialias:
        x = np.clip(x, 0, axis.extent - 1)
    reach = (1 if is_linear else 2) / shrink
    around = np.arange(int(np.floor(-reach)) + 1, int(np.ceil(reach)) + 1)
    taps = np.floor(x)[:, None] + around
    distance = (taps - x[:, None]) * shrink
    found = _linear(distance) if is_linear else _cubic(distance, method.cubic)
    outside = (taps < 0) | (taps > axis.extent - 1)
    if method.exclude_outside:
        found = np.where(outside, 0.0, found)
    if method.exclude_outside or method.antialias:
        found = found / found.sum(axis=1, keepdims=True)
    return np.clip(taps, 0, axis.extent - 1).astype(np.int64), found


def resize(bb: relax.BlockBuilder, data: Any, axes: list[ResizedAxis], method: Method) -> Any:
    """The tensor resized along axes, in its dtype."""
    for axis in axes:
        data = _along(bb, data, axis, method)
    if method.coordinates == "tf_crop_and_resize":
        return _cropped(bb, data, axes, method)
    return data


def _along(bb: relax.BlockBuilder, data: Any, axis: ResizedAxis, method: Method) -> Any:
    places, amounts = weights(axis, method)
    used = np.any(amounts != 0, axis=0)
    places, amounts = places[:, used], amounts[:, used]
    if places.shape[1] == 1 and np.all(amounts == 1):
        if places[:, 0].tolist() == list(range(axis.extent)):
            return data
        return bb.emit(relax.op.take(data, constant(places[:, 0]), axis.place))
    return _weighted(bb, data, axis.place, places, amounts)


def _weighted(bb: relax.BlockBuilder, data: Any, place: int, places: Array, amounts: Array) -> Any:
    shape = list(shape_of(data))
    shape[place] = places.shape[0]
    dtype = str(data.ty.dtype)

    def define(x: Any, index: Any, amount: Any) -> Any:
        k = te.reduce_axis((0, places.shape[1]), "k")

        def element(*at: Any) -> Any:
            tap = x(*at[:place], index[at[place], k], *at[place + 1 :])
            return te.sum(tap * amount[at[place], k], axis=k)

        return te.compute(shape, element, name="resize")

    tables = constant(places.astype(np.int32)), constant(amounts, dtype)
    return bb.emit_te(define, data, *tables, primfunc_name_hint="resize")


def _cropped(bb: relax.BlockBuilder, data: Any, axes: list[ResizedAxis], method: Method) -> Any:
    """Places outside the input have one value."""
    shape = shape_of(data)
    inside = np.ones([1] * len(shape), bool)
    for axis in axes:
        x = coordinates(axis, method.coordinates)
        side = [1] * len(shape)
        side[axis.place] = axis.out
        inside = inside & ((x >= 0) & (x <= axis.extent - 1)).reshape(side)
    if inside.all():
        return data
    value = constant(np.asarray(method.outside), str(data.ty.dtype))
    return bb.emit(relax.op.where(constant(inside), data, value))
