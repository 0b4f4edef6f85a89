"""Sampling at positions that another tensor holds: ONNX's GridSample, PyTorch's `grid_sample`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import relax, te, tirx

from ansor.frontend.rewrite import static_shape

_FAR = 1e6  # positions are cut off here, so that they fit into an index
_CUBIC = -0.75  # the coefficient of both frameworks


@dataclass(frozen=True)
class Sampling:
    """How positions are read.

    Attributes:
        mode: "linear", "nearest" or "cubic".
        padding: "zeros", "border" or "reflection", for what lies outside.
        align_corners: whether -1 and 1 are the centres of the outer elements, or their edges.
    """

    mode: str
    padding: str
    align_corners: bool


def grid_sample(bb: relax.BlockBuilder, data: Any, grid: Any, sampling: Sampling) -> Any:
    """Elements of `data [N, C, *S]` at the positions of `grid [N, *O, len(S)]`: `[N, C, *O]`.

    Positions go from -1 to 1; that along the last axis of `data` comes first.
    """
    shape, positions = static_shape(data), static_shape(grid)
    assert shape is not None
    assert positions is not None
    sizes, outer = shape[2:], positions[1:-1]

    def define(source: Any, where: Any) -> Any:
        def element(image: Any, channel: Any, *at: Any) -> Any:
            axes = [
                _taps(where(image, *at, len(sizes) - 1 - axis), size, sampling)
                for axis, size in enumerate(sizes)
            ]
            terms = [
                _term(source, (image, channel), taps, sizes) for taps in itertools.product(*axes)
            ]
            total = terms[0]
            for term in terms[1:]:
                total = total + term
            return total

        return te.compute((*shape[:2], *outer), element, name="grid_sample")

    return bb.emit_te(define, data, grid, primfunc_name_hint="grid_sample")


Tap = tuple[Any, Any, Any]  # index, weight, whether the element counts


def _term(source: Any, before: Sequence[Any], taps: Sequence[Tap], sizes: Sequence[int]) -> Any:
    """One of the elements that a result is the sum of."""
    weight, counts = tirx.const(1, source.dtype), tirx.const(True)
    for _, factor, inside in taps:
        weight, counts = weight * factor, tirx.all(counts, inside)
    indices = [
        tirx.max(tirx.min(index, size - 1), 0)
        for (index, _, _), size in zip(taps, sizes, strict=True)
    ]
    zero = tirx.const(0, source.dtype)
    return tirx.if_then_else(counts, source(*before, *indices) * weight, zero)


def _taps(position: Any, size: int, sampling: Sampling) -> list[Tap]:
    """The elements along one axis that a position reads."""
    dtype = position.ty.dtype
    place = _place(position, size, sampling.align_corners)
    if sampling.mode != "cubic":
        place = _padded(place, size, sampling)
    place = tirx.max(tirx.min(place, tirx.const(_FAR, dtype)), tirx.const(-_FAR, dtype))
    if sampling.mode == "nearest":
        index = tirx.Cast("int32", tirx.nearbyint(place))
        return [(index, tirx.const(1, dtype), _counts(index, size, sampling))]
    floor = tirx.floor(place)
    first, rest = tirx.Cast("int32", floor), place - floor
    weights = _cubic(rest) if sampling.mode == "cubic" else [1 - rest, rest]
    offset = first - 1 if sampling.mode == "cubic" else first
    taps = []
    for number, weight in enumerate(weights):
        index = offset + number
        counts = _counts(index, size, sampling)
        if sampling.mode == "cubic" and sampling.padding != "zeros":
            moved = _padded(tirx.Cast(dtype, index), size, sampling)
            index = tirx.Cast("int32", tirx.nearbyint(moved))
        taps.append((index, weight, counts))
    return taps


def _place(position: Any, size: int, align_corners: bool) -> Any:
    """A position between -1 and 1 in elements."""
    if align_corners:
        return (position + 1) / 2 * (size - 1)
    return ((position + 1) * size - 1) / 2


def _counts(index: Any, size: int, sampling: Sampling) -> Any:
    """Whether an element is read; elements outside are zeros, or never asked for."""
    if sampling.padding != "zeros":
        return tirx.const(True)
    return tirx.all(index >= 0, index < size)


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


def _cubic(rest: Any) -> list[Any]:
    """Weights of the four elements around a place, `rest` behind the second."""
    return [_outer(1 + rest), _inner(rest), _inner(1 - rest), _outer(2 - rest)]


def _inner(x: Any) -> Any:
    return ((_CUBIC + 2) * x - (_CUBIC + 3)) * x * x + 1


def _outer(x: Any) -> Any:
    return ((_CUBIC * x - 5 * _CUBIC) * x + 8 * _CUBIC) * x - 4 * _CUBIC
