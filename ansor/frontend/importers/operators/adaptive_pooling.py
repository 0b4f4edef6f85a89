"""Adaptive pooling: a given number of windows, of different sizes if necessary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax, te, tirx

from ansor.frontend.importers.operators.pooling import first_largest, nothing


def adaptive_max_pool(bb: relax.BlockBuilder, data: relax.Expr, out: Sequence[int]) -> relax.Expr:
    """The largest element of each window: `[N, C, *spatial]` to `[N, C, *out]`."""

    def define(x: Any) -> Any:
        axes = _axes(x, out)

        def element(n: Any, c: Any, *o: Any) -> Any:
            where, inside = _place(x, out, o, axes)
            return te.max(tirx.if_then_else(inside, x(n, c, *where), te.min_value(x.dtype)), axes)

        return te.compute([*x.shape[:2], *out], element, name="adaptive_max_pool")

    return bb.emit_te(define, data, primfunc_name_hint="adaptive_max_pool")


def adaptive_max_pool_indices(
    bb: relax.BlockBuilder, data: relax.Expr, out: Sequence[int]
) -> relax.Expr:
    """`int64` places of the largest elements in the flattened axes; the first of several."""

    def define(x: Any) -> Any:
        axes, shape = _axes(x, out), [*x.shape[:2], *out]
        reducer = te.comm_reducer(first_largest, nothing, name="place")

        def element(n: Any, c: Any, *o: Any) -> Any:
            where, inside = _place(x, out, o, axes)
            flat = tirx.const(0, "int64")
            for place, extent in zip(where, x.shape[2:], strict=True):
                flat = flat * tirx.Cast("int64", extent) + tirx.Cast("int64", place)
            place = tirx.Select(inside, flat, tirx.const(2**62, "int64"))
            value = tirx.if_then_else(inside, x(n, c, *where), te.min_value(x.dtype))
            return reducer((place, value), axis=axes)

        places, _ = te.compute(shape, element, name="places")
        return te.compute(shape, lambda *i: places(*i), name="adaptive_max_pool_indices")

    return bb.emit_te(define, data, primfunc_name_hint="adaptive_max_pool_indices")


def _axes(x: Any, out: Sequence[int]) -> list[Any]:
    """Over the largest window of each spatial axis."""
    sizes = [_largest(int(extent), count) for extent, count in zip(x.shape[2:], out, strict=True)]
    return [te.reduce_axis((0, size), name=f"k{i}") for i, size in enumerate(sizes)]


def _largest(extent: int, count: int) -> int:
    return max(-(-(i + 1) * extent // count) - i * extent // count for i in range(count))


def _place(
    x: Any, out: Sequence[int], at: Sequence[Any], axes: Sequence[Any]
) -> tuple[list[Any], Any]:
    """An element of a window, and whether it belongs to it."""
    where, inside = [], tirx.const(True, "bool")
    for o, k, extent, count in zip(at, axes, x.shape[2:], out, strict=True):
        first = tirx.floordiv(o * extent, count)
        last = tirx.floordiv((o + 1) * extent + count - 1, count)
        where.append(first + k)
        inside = tirx.all(inside, first + k < last)
    return where, inside
