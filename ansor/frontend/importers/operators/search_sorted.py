"""Positions of elements in a sorted sequence."""

from __future__ import annotations

from typing import Any

from tvm import relax, te, tirx


def searchsorted(
    bb: relax.BlockBuilder, bounds: relax.Expr, data: relax.Expr, right: bool, dtype: str
) -> relax.Expr:
    """Number of bounds before each element. All bounds are compared, so that loops are plain.

    Args:
        bounds: `[N]`, or `[*rows, N]` for data `[*rows, M]`, sorted along the last axis, of the
            data's dtype.
        right: bounds that are equal to the element count, too.
        dtype: of the result.
    """

    def define(limits: Any, x: Any) -> Any:
        k = te.reduce_axis((0, limits.shape[-1]), name="k")

        def element(*at: Any) -> Any:
            limit = limits(*(at[:-1] if len(limits.shape) > 1 else ()), k)
            after = limit > x(*at) if right else limit >= x(*at)
            return te.sum(tirx.Select(after, tirx.const(0, dtype), tirx.const(1, dtype)), axis=k)

        return te.compute(x.shape, element, name="searchsorted")

    return bb.emit_te(define, bounds, data, primfunc_name_hint="searchsorted")
