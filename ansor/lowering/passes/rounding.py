"""Conversions of rounded numbers to integers, as the single instruction of processors for both.

LLVM rounds first and then converts, because it does not know the range of the numbers.
"""

from __future__ import annotations

from typing import Any

from tvm import ir, tirx
from tvm_ffi import structural_map

_ROUNDING = "tirx.nearbyint"  # ties to even, as `llvm.lrint` has it
_INTRINSIC = "llvm.lrint"


def convert_rounded(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """A function with `llvm.lrint` where rounded float32 becomes int32, also in vectors."""
    return func.with_body(structural_map(func.body, [(tirx.Cast, _converted)]))


def _converted(cast: Any) -> Any:
    value = cast.value
    if not isinstance(value, ir.Call) or str(getattr(value.op, "name", "")) != _ROUNDING:
        return cast
    kinds = [str(each.ty.dtype).partition("x")[0] for each in (cast, value)]
    if kinds != ["int32", "float32"]:
        return cast
    return tirx.call_llvm_pure_intrin(str(cast.ty.dtype), _INTRINSIC, value.args[0])
