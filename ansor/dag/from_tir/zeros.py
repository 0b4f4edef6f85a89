"""Derives from a stage's statement where it writes zeros, and what share of a table is zero."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from tvm import ir, sym, tirx
from tvm_ffi import structural_map

from ansor.config import DAG
from ansor.dag.from_tir.expression import Reader
from ansor.dag.stage import Span


class Nonzero(NamedTuple):
    """The spans of axes where a value may be nonzero, and whether other conditions make further
    values zero."""

    spans: tuple[Span, ...] = ()
    masked: bool = False


def nonzero(reader: Reader, value: Any) -> Nonzero:
    """The part of the domain where a value may be nonzero.

    There are spans only for a value that is zero unless a conjunction of bounds holds.
    """
    if not isinstance(value, ir.Call) or not is_condition(value):
        return Nonzero()
    condition, _, other = value.args
    if not is_zero(other):
        return Nonzero()
    spans: dict[int, tuple[int, int]] = {}
    bounds = [_bound(reader, term) for term in _conjunction(condition)]
    for axis, first, end in (bound for bound in bounds if bound is not None):
        low, high = spans.get(axis, (0, reader.extents[axis]))
        spans[axis] = max(low, first), min(high, end)
    return Nonzero(tuple((axis, *span) for axis, span in spans.items()), None in bounds)


def density(reader: Reader, value: Any) -> float:
    """The share of a table of constants that is not zero; 1 if the table is larger, or empty."""
    count = math.prod(reader.extents)
    if not 0 < count <= DAG.max_table:
        return 1.0
    entries = (_entry(reader, value, at) for at in product(*map(range, reader.extents)))
    return 1 - sum(is_zero(entry) for entry in entries) / count


def _entry(reader: Reader, value: Any, at: tuple[int, ...]) -> Any:
    """A value at one point of the stage's domain."""

    def literal(variable: Any) -> Any:
        pairs = zip(reader.axes, at, strict=True)
        found = (tirx.const(i, axis.ty.dtype) for axis, i in pairs if axis.same_as(variable))
        return next(found, variable)

    return sym.Analyzer().simplify(structural_map(value, (tirx.Var, literal)))


def is_zero(value: Any) -> bool:
    """Whether a value is the constant zero."""
    return isinstance(value, tirx.IntImm | tirx.FloatImm) and float(value.value) == 0


def is_condition(call: Any) -> bool:
    """Whether a call chooses one of two values, and evaluates only that one."""
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
