"""Maxima and minima that pass NaN on, as PyTorch's do.

LLVM makes `a > b ? a : b` of a maximum, which is one instruction on x86 and gives `b` where either
operand is NaN. So a NaN in `b` is passed on, and one in `a` is lost.
"""

from __future__ import annotations

import math
from typing import Any

from tvm import tirx
from tvm_ffi import structural_map

from ansor.lowering.statements import collect


def pass_nan(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with every maximum and minimum of floats giving NaN if an operand is NaN.

    - With a constant operand, the constant comes first: the instructions stay the same in number.
    - Otherwise the second operand is tested for NaN and the first comes last. In a reduction the
      first is the running value, so the test is not part of the chain from step to step.
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
