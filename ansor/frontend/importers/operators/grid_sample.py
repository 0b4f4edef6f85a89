"""Sampling at positions that another tensor holds: ONNX's GridSample, PyTorch's `grid_sample`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import relax, te, tirx

from ansor.config import IMPORTS
from ansor.frontend.importers.conversion import shape_of


@dataclass(frozen=True)
class Sampling:
    """The interpretation of positions.

    Attributes:
        mode: "linear", "nearest" or "cubic".
        padding: "zeros", "border" or "reflection", for what lies outside.
        align_corners: whether -1 and 1 are the centres of the outer elements, or their edges.
        cubic: the coefficient of the cubic kernel; that of both frameworks.
    """

    mode: str
    padding: str
    align_corners: bool
    cubic: float = -0.75


def grid_sample(bb: relax.BlockBuilder, data: Any, grid: Any, sampling: Sampling) -> Any:
    """Elements of `data [N, C, *S]` at the positions of `grid [N, *O, len(S)]`: `[N, C, *O]`.

    Positions go from -1 to 1; that along the last axis of `data` comes first. Which elements
    a position reads, and their weights, are tensors of one axis each: all channels share them.
    """
    sizes = shape_of(data)[2:]
    outer = len(shape_of(grid)) - 2
    taps = [_axis_taps(bb, grid, axis, size, sampling) for axis, size in enumerate(sizes)]

    def define(source: Any, *tables: Any) -> Any:
        places, weights = tables[: len(sizes)], tables[len(sizes) :]
        counts = [int(table.shape[-1]) for table in places]
        steps = [te.reduce_axis((0, count), name=f"tap{axis}") for axis, count in enumerate(counts)]
        zero = tirx.const(0, source.dtype)

        def element(image: Any, channel: Any, *at: Any) -> Any:
            indices = [place(image, *at, step) for place, step in zip(places, steps, strict=True)]
            inside = tirx.all(*(index >= 0 for index in indices))
            value = source(image, channel, *indices)
            for weight, step in zip(weights, steps, strict=True):
                value = value * weight(image, *at, step)
            return te.sum(tirx.if_then_else(inside, value, zero), axis=steps)

        shape = (*source.shape[:2], *places[0].shape[1 : 1 + outer])
        return te.compute(shape, element, name="grid_sample")

    places, weights = zip(*taps, strict=True)
    return bb.emit_te(define, data, *places, *weights, primfunc_name_hint="grid_sample")


def _axis_taps(
    bb: relax.BlockBuilder, grid: Any, axis: int, size: int, sampling: Sampling
) -> tuple[Any, Any]:
    """Indices and weights `[N, *O, taps]` of the elements along an axis; -1 is a zero outside."""
    *outer, axes = shape_of(grid)
    count = {"nearest": 1, "linear": 2, "cubic": 4}[sampling.mode]

    def table(name: str, which: int) -> Any:
        def define(where: Any) -> Any:
            def element(*at: Any) -> Any:
                position = where(*at[:-1], axes - 1 - axis)
                return _tap(position, at[-1], size, sampling)[which]

            return te.compute((*outer, count), element, name=name)

        return bb.emit_te(define, grid, primfunc_name_hint=name)

    return table("sample_index", 0), table("sample_weight", 1)


def _tap(position: Any, number: Any, size: int, sampling: Sampling) -> tuple[Any, Any]:
    """Index and weight of one of the elements along an axis that a position reads."""
    dtype = position.ty.dtype
    place = _place(position, size, sampling.align_corners)
    if sampling.mode != "cubic":
        place = _padded(place, size, sampling)
    far = IMPORTS.max_position
    place = tirx.max(tirx.min(place, tirx.const(far, dtype)), tirx.const(-far, dtype))
    if sampling.mode == "nearest":
        index = tirx.Cast("int32", tirx.nearbyint(place))
        return _inside(index, size), tirx.const(1, dtype)
    floor = tirx.floor(place)
    first, rest = tirx.Cast("int32", floor), place - floor
    if sampling.mode == "linear":
        weight = tirx.Select(number == 0, 1 - rest, rest)
        return _inside(first + tirx.Cast("int32", number), size), weight
    index = first - 1 + tirx.Cast("int32", number)
    if sampling.padding != "zeros":
        moved = _padded(tirx.Cast(dtype, index), size, sampling)
        index = tirx.Cast("int32", tirx.nearbyint(moved))
    return _inside(index, size), _cubic(rest, number, sampling.cubic)


def _inside(index: Any, size: int) -> Any:
    """The index, or -1 for an element outside."""
    return tirx.Select(tirx.all(index >= 0, index < size), index, tirx.const(-1, "int32"))


def _place(position: Any, size: int, align_corners: bool) -> Any:
    """A position between -1 and 1 in elements."""
    if align_corners:
        return (position + 1) / 2 * (size - 1)
    return ((position + 1) * size - 1) / 2


def _padded(place: Any, size: int, sampling: Sampling) -> Any:
    """The place inside that stands for one outside."""
    if sampling.padding == "zeros":
        return place
    dtype = place.ty.dtype
    if sampling.padding == "reflection":
        place = _reflected(place, size, sampling.align_corners)
    return tirx.max(tirx.min(place, tirx.const(size - 1, dtype)), tirx.const(0, dtype))


def _reflected(place: Any, size: int, align_corners: bool) -> Any:
    """The place, reflected at the centres of the outer elements, or at their edges."""
    dtype = place.ty.dtype
    low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
    if not span:
        return tirx.const(0, dtype)
    distance = tirx.abs(place - tirx.const(low, dtype))
    times = tirx.floor(distance / tirx.const(span, dtype))
    rest = distance - times * tirx.const(span, dtype)
    is_even = tirx.floor(times / 2) * 2 >= times
    return tirx.Select(is_even, rest, tirx.const(span, dtype) - rest) + tirx.const(low, dtype)


def _cubic(rest: Any, number: Any, a: float) -> Any:
    """Weight of one of the four elements around a place, `rest` behind the second."""
    distance = tirx.abs(rest + 1 - tirx.Cast(rest.ty.dtype, number))
    return tirx.Select(tirx.any(number == 0, number == 3), _outer(distance, a), _inner(distance, a))


def _inner(x: Any, a: float) -> Any:
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _outer(x: Any, a: float) -> Any:
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
