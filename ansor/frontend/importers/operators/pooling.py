"""Pooling over lines, areas and volumes: `[N, C, spatial axes]`, padding and ceil mode exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import relax, te, tirx, topi

from ansor.frontend.importers.operators.by_rank import AVERAGE_POOLS, MAX_POOLS


@dataclass(frozen=True)
class Windows:
    """Windows along the spatial axes of `[N, C, *extents]`, an entry per axis.

    Attributes:
        before: padding at the beginning of each axis.
        after: padding at its end.
        out: number of windows; the last ones may reach past the padding.
    """

    extents: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilation: tuple[int, ...]
    out: tuple[int, ...]

    @property
    def overhang(self) -> tuple[int, ...]:
        """Elements by which the last window of each axis exceeds the padding."""
        reach = [
            (o - 1) * s + (k - 1) * d + 1
            for o, s, k, d in zip(self.out, self.stride, self.kernel, self.dilation, strict=True)
        ]
        padded = zip(reach, self.extents, self.before, self.after, strict=True)
        return tuple(max(0, r - e - b - a) for r, e, b, a in padded)

    @property
    def is_plain(self) -> bool:
        """Whether no window reaches past the padding."""
        return not any(self.overhang)


def pooling_windows(
    extents: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
    dilation: Sequence[int],
    *,
    ceil_mode: bool,
) -> Windows:
    """The windows; in ceil mode the last one begins inside the tensor or the padding before it."""
    out = []
    for e, k, s, b, a, d in zip(extents, kernel, stride, before, after, dilation, strict=True):
        room = e + b + a - (k - 1) * d - 1
        count = math.ceil(room / s) + 1 if ceil_mode else room // s + 1
        if ceil_mode and (count - 1) * s >= e + b:
            count -= 1
        out.append(count)
    parts = (extents, kernel, stride, before, after, dilation, out)
    return Windows(*(tuple(map(int, part)) for part in parts))


def max_pool(bb: relax.BlockBuilder, data: relax.Expr, at: Windows) -> relax.Expr:
    """The largest element of each window."""
    ndim = len(at.extents)
    if at.is_plain and ndim in MAX_POOLS:
        return MAX_POOLS[ndim](
            data,
            list(at.kernel),
            list(at.stride),
            [*at.before, *at.after],
            list(at.dilation),
        )

    def define(x: Any) -> Any:
        padded = _padded(x, at, te.min_value(x.dtype))
        axes = _axes(at)
        return te.compute(
            _shape(x, at),
            lambda n, c, *o: te.max(padded(n, c, *_place(at, o, axes)), axis=axes),
            name="max_pool",
        )

    return bb.emit_te(define, data, primfunc_name_hint="max_pool")


def max_pool_indices(bb: relax.BlockBuilder, data: relax.Expr, at: Windows) -> relax.Expr:
    """`int64` places of the largest elements in the flattened axes; the first of several."""

    def define(x: Any) -> Any:
        padded = _padded(x, at, te.min_value(x.dtype))
        axes = _axes(at)
        reducer = te.comm_reducer(first_largest, nothing, name="place")

        def element(n: Any, c: Any, *o: Any) -> Any:
            where = _place(at, o, axes)
            return reducer((_flat(at, where), padded(n, c, *where)), axis=axes)

        places, _ = te.compute(_shape(x, at), element, name="places")
        return te.compute(_shape(x, at), lambda *i: places(*i), name="max_pool_indices")

    return bb.emit_te(define, data, primfunc_name_hint="max_pool_indices")


def average_pool(
    bb: relax.BlockBuilder,
    data: relax.Expr,
    at: Windows,
    *,
    count_include_pad: bool,
    divisor: int | None = None,
) -> relax.Expr:
    """The sum of each window by the number of its elements, or by a given divisor.

    Padding counts or not; elements past it never count.
    """
    ndim = len(at.extents)
    if at.is_plain and divisor is None and ndim in AVERAGE_POOLS:
        return AVERAGE_POOLS[ndim](
            data,
            list(at.kernel),
            list(at.stride),
            [*at.before, *at.after],
            list(at.dilation),
            count_include_pad=count_include_pad,
        )

    def define(x: Any) -> Any:
        padded = _padded(x, at, tirx.const(0, x.dtype))
        axes = _axes(at)
        total = te.compute(
            _shape(x, at),
            lambda n, c, *o: te.sum(padded(n, c, *_place(at, o, axes)), axis=axes),
            name="window_sum",
        )
        return te.compute(
            _shape(x, at),
            lambda n, c, *o: total(n, c, *o) / _count(at, o, x.dtype, count_include_pad, divisor),
            name="average_pool",
        )

    return bb.emit_te(define, data, primfunc_name_hint="average_pool")


def _padded(x: Any, at: Windows, value: Any) -> Any:
    before = [0, 0, *at.before]
    after = [0, 0, *(a + o for a, o in zip(at.after, at.overhang, strict=True))]
    return topi.nn.pad(x, before, after, pad_value=value) if any([*before, *after]) else x


def _axes(at: Windows) -> list[Any]:
    return [te.reduce_axis((0, k), name=f"k{i}") for i, k in enumerate(at.kernel)]


def _shape(x: Any, at: Windows) -> list[Any]:
    return [*x.shape[:2], *at.out]


def _place(at: Windows, out: Sequence[Any], axes: Sequence[Any]) -> list[Any]:
    parts = zip(out, at.stride, axes, at.dilation, strict=True)
    return [o * s + k * d for o, s, k, d in parts]


def _flat(at: Windows, where: Sequence[Any]) -> Any:
    """A place in the padded tensor as one of the tensor; padding comes after all others."""
    flat, inside = tirx.const(0, "int64"), tirx.const(True, "bool")
    for w, b, e in zip(where, at.before, at.extents, strict=True):
        flat = flat * e + tirx.Cast("int64", w - b)
        inside = tirx.all(inside, w >= b, w < b + e)
    return tirx.Select(inside, flat, tirx.const(2**62, "int64"))


def nothing(index_dtype: str, dtype: str) -> tuple[Any, Any]:
    """The smallest (place, value) of all."""
    return tirx.const(2**62, index_dtype), te.min_value(dtype)


def first_largest(a: Any, b: Any) -> tuple[Any, Any]:
    """The better one of two (place, value)."""
    chosen = tirx.any(a[1] > b[1], tirx.all(a[1] == b[1], a[0] < b[0]))
    return tirx.Select(chosen, a[0], b[0]), tirx.Select(chosen, a[1], b[1])


def _count(at: Windows, out: Sequence[Any], dtype: str, include: bool, divisor: int | None) -> Any:
    """The divisor of a window's sum."""
    if divisor is not None:
        return tirx.const(divisor, dtype)
    count = tirx.const(1, "int32")
    parts = zip(
        out, at.stride, at.kernel, at.before, at.after, at.extents, at.dilation, strict=True
    )
    for o, s, k, b, a, e, d in parts:
        first, low, high = o * s - b, -b if include else 0, e + a if include else e
        if d == 1:
            count = count * (tirx.min(first + k, high) - tirx.max(first, low))
            continue
        skipped = tirx.max(tirx.floordiv(low - first + d - 1, d), 0)
        reached = tirx.min(tirx.floordiv(high - 1 - first, d) + 1, k)
        count = count * (reached - skipped)
    return tirx.Cast(dtype, tirx.max(count, 1))
