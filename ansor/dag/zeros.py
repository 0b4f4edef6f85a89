"""Reads off a stage's statement where it writes zeros."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tvm import ir, tirx

from ansor.dag.expression import Reader
from ansor.dag.stage import Span


def nonzero_spans(reader: Reader, value: Any) -> tuple[Span, ...]:
    """Where a value can be anything but zero: for each axis that matters the span of it.

    Nothing for a value that is not simply zero where a conjunction of bounds does not hold.
    """
    if not isinstance(value, ir.Call) or not _is_condition(value):
        return ()
    condition, _, other = value.args
    if not isinstance(other, tirx.IntImm | tirx.FloatImm) or float(other.value) != 0:
        return ()
    spans: dict[int, tuple[int, int]] = {}
    for term in _conjunction(condition):
        bound = _bound(reader, term)
        if bound is None:
            continue  # it only makes more of the values zero
        axis, first, end = bound
        low, high = spans.get(axis, (0, reader.extents[axis]))
        spans[axis] = max(low, first), min(high, end)
    return tuple((axis, *span) for axis, span in spans.items())


def _is_condition(call: Any) -> bool:
    return hasattr(call.op, "name") and str(call.op.name).endswith("if_then_else")


def _conjunction(condition: Any) -> Iterator[Any]:
    if isinstance(condition, tirx.And):
        yield from _conjunction(condition.a)
        yield from _conjunction(condition.b)
    else:
        yield condition


def _bound(reader: Reader, term: Any) -> tuple[int, int, int] | None:
    """The span of an axis that a comparison with a constant allows."""
    kinds = {tirx.LT: (1, 1), tirx.LE: (1, 0), tirx.GT: (-1, 1), tirx.GE: (-1, 0)}
    if type(term) not in kinds:
        return None
    sign, strict = kinds[type(term)]
    left, right = reader.index(term.a), reader.index(term.b)
    if left is None or right is None:
        return None
    if sign < 0:
        left, right = right, left  # now left is below right
    if not left.terms and (axis := right.single_axis) is not None:
        return axis, left.const - right.const + strict, reader.extents[axis]
    if not right.terms and (axis := left.single_axis) is not None:
        return axis, 0, right.const - left.const + 1 - strict
    return None
