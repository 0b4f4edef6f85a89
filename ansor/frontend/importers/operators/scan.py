"""Running sums, products, extremes: a loop in order along an axis, rows in parallel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import relax, te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as script

from ansor.frontend.importers.conversion import shape_of
from ansor.frontend.importers.operators.ordering import along

Combine = Callable[[Any, Any], Any]
Element = Callable[..., Any]


def cumsum(
    bb: relax.BlockBuilder,
    data: relax.Expr,
    axis: int,
    exclusive: bool = False,
    reverse: bool = False,
    dtype: str | None = None,
) -> relax.Expr:
    """Running sum along an axis, in `dtype` (the data's for None).

    Args:
        exclusive: the sum of the elements before, without the element itself.
        reverse: begins at the end of the axis.
    """
    return _running(bb, data, axis, exclusive, reverse, dtype, lambda a, b: a + b, 0, "cumsum")


def cumprod(
    bb: relax.BlockBuilder,
    data: relax.Expr,
    axis: int,
    exclusive: bool = False,
    reverse: bool = False,
    dtype: str | None = None,
) -> relax.Expr:
    """Running product along an axis, as `cumsum`."""
    return _running(bb, data, axis, exclusive, reverse, dtype, lambda a, b: a * b, 1, "cumprod")


def logcumsumexp(bb: relax.BlockBuilder, data: relax.Expr, axis: int) -> relax.Expr:
    """Logarithm of the running sum of exponentials along an axis of floats."""

    def combine(a: Any, b: Any) -> Any:
        far = tirx.max(a, b) + tirx.log1p(tirx.exp(-tirx.abs(a - b)))
        return tirx.Select(a == b, a + tirx.const(math.log(2), a.ty.dtype), far)

    return _running(bb, data, axis, False, False, None, combine, -math.inf, "logcumsumexp")


def cummax(bb: relax.BlockBuilder, data: relax.Expr, axis: int) -> tuple[relax.Expr, relax.Expr]:
    """Running maximum along an axis, and its `int64` place: the last of equal ones. NaN stays.

    The data is of integers, float32 or float64.
    """
    return _extreme(bb, data, axis, lambda new, old: new >= old, "cummax")


def cummin(bb: relax.BlockBuilder, data: relax.Expr, axis: int) -> tuple[relax.Expr, relax.Expr]:
    """Running minimum along an axis, as `cummax`."""
    return _extreme(bb, data, axis, lambda new, old: new <= old, "cummin")


def _running(
    bb: relax.BlockBuilder,
    data: relax.Expr,
    axis: int,
    exclusive: bool,
    reverse: bool,
    dtype: str | None,
    combine: Combine,
    neutral: float,
    name: str,
) -> relax.Expr:
    dtype = dtype or str(data.ty.dtype)
    if str(data.ty.dtype) != dtype:
        data = bb.emit(relax.op.astype(data, dtype))

    def following(x: Any, out: Any, before: Any, here: Any, *_: Any) -> Any:
        return combine(out[before], x[before if exclusive else here])

    def first(x: Any, here: Any) -> Any:
        return tirx.const(neutral, dtype) if exclusive else x[here]

    return _scan(bb, data, axis, reverse, dtype, first, following, name)


def _extreme(
    bb: relax.BlockBuilder, data: relax.Expr, axis: int, better: Combine, name: str
) -> tuple[relax.Expr, relax.Expr]:
    floats = "float" in str(data.ty.dtype)

    def following(x: Any, out: Any, before: Any, here: Any, place: Any, at: Any) -> Any:
        new, old = x[here], x[at(out[before])]
        wins = better(new, old)
        if floats:
            wins = tirx.any(tirx.isnan(new), tirx.all(tirx.Not(tirx.isnan(old)), wins))
        return tirx.Select(wins, place, out[before])

    def first(x: Any, here: Any) -> Any:
        return tirx.const(0, "int64")

    places = _scan(bb, data, axis, False, "int64", first, following, name)
    return along(bb, data, places, axis), places


def _scan(
    bb: relax.BlockBuilder,
    data: relax.Expr,
    axis: int,
    reverse: bool,
    dtype: str,
    first: Element,
    following: Element,
    name: str,
) -> relax.Expr:
    """A tensor of the data's shape, each element made from the one before along the axis.

    Args:
        first: (data, place) to the first element of a row.
        following: (data, result, place before, place, number along the axis, place of a number) to
            each other element.
    """
    shape = shape_of(data)
    if math.prod(shape) == 0:
        return bb.emit(relax.op.zeros(shape, dtype))
    rows = _Rows(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]), reverse)

    def define(x: Any) -> Any:
        return te.extern(
            [shape],
            [x],
            lambda ins, outs: rows.loops(ins[0], outs[0], first, following),
            dtype=dtype,
            out_buffers=[tirx.decl_buffer(shape, dtype, "out_buf")],
            name=name,
        )

    return bb.emit_te(define, data, primfunc_name_hint=name)


@dataclass(frozen=True)
class _Rows:
    """A tensor as `[outer, extent, inner]`, whose rows along the second axis are made in order."""

    outer: int
    extent: int
    inner: int
    reverse: bool

    def loops(self, source: Any, result: Any, first: Element, following: Element) -> Any:
        """The statement: a parallel loop over rows, and a serial one along each."""
        with IRBuilder() as builder:
            x, out = script.buffer_proxy(source), script.buffer_proxy(result)
            with script.parallel(0, self.outer * self.inner) as row:
                start = row // self.inner * (self.extent * self.inner) + row % self.inner

                def at(number: Any) -> Any:
                    step = self.extent - 1 - number if self.reverse else number
                    return start + step * self.inner

                out[at(0)] = first(x, at(0))
                with script.serial(0, self.extent - 1) as before:
                    here = before + 1
                    place = tirx.Cast("int64", here)
                    out[at(here)] = following(x, out, at(before), at(here), place, at)
            return builder.get()
