"""Maxima and minima that pass NaN on, as PyTorch's do.

LLVM compiles a maximum to `a > b ? a : b`, which is one instruction on x86 and gives `b` if either
operand is NaN. So a NaN in `b` is passed on, and a NaN in `a` is lost.
"""

from __future__ import annotations

import math
from typing import Any

from tvm import tirx
from tvm_ffi import structural_map

from ansor.lowering.statements import collect


def pass_nan(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with every maximum and minimum of floats giving NaN if an operand is NaN.

    - A constant operand comes first. The number of instructions does not change.
    - Otherwise the second operand is tested for NaN, and the first operand comes last. In a
      reduction, the first operand is the running value, so that the test is not part of the
      dependence chain of the steps.
    """
    if not collect(func.body, tirx.Max) and not collect(func.body, tirx.Min):
        return func
    return func.with_body(structural_map(func.body, ((tirx.Max, tirx.Min), _passing)))


def _passing(extreme: Any) -> Any:
    first, second = extreme.a, extreme.b
    if not str(extreme.ty.dtype).startswith("float") or _is_number(first):
        return extreme
    make = type(extreme)
    if _is_number(second):
        return make(second, first)
    value = tirx.Var("value", second.ty)
    number = tirx.EQ(value, value)  # false for NaN only
    return tirx.Let(value, second, tirx.Select(number, make(value, first), value))


def _is_number(expr: Any) -> bool:
    """Whether an expression is a constant, in each lane, that is not NaN."""
    if isinstance(expr, tirx.Broadcast):
        expr = expr.value
    return isinstance(expr, tirx.FloatImm) and not math.isnan(expr.value)
