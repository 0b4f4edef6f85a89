"""Loads and stores of the vectors that functions in LLVM's language take and return.

During scheduling, a call names the first element of each operand. Arrays then have several
dimensions, and a vector may span two of them. Here arrays are flat, and an operand becomes the load
of a vector. TVM tells LLVM the array of each load, so that LLVM keeps sums in registers.
"""

from __future__ import annotations

from typing import Any

from tvm import ir, tirx
from tvm_ffi import structural_map

from ansor.lowering.dot_functions import DotFunction, function_of
from ansor.lowering.passes.dot_products import DOT_PRODUCTS
from ansor.lowering.passes.interleave import INTERLEAVE


def load_operands(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """A lowered function with vectors in place of the addresses of operands."""
    if DOT_PRODUCTS not in (func.attrs or {}):
        return func
    callbacks = [(ir.Call, _with_words), (tirx.Evaluate, _interleaved)]
    return func.with_body(structural_map(func.body, callbacks))


def _with_words(call: Any) -> Any:
    """The call of a `DotFunction` with the words of its groups."""
    function = function_of(_symbol(call))
    if function is None:
        return call
    name, own, shared, along = call.args
    words = _words(shared, function, 1), _words(along, function, function.lanes)
    return tirx.call_extern(function.dtype, name.value, own, *words)


def _words(address: Any, function: DotFunction, lanes: int) -> Any:
    bits = _vector("int32", lanes)
    return tirx.reinterpret(bits, _load(address, lanes * function.instruction.elements))


def _interleaved(stmt: Any) -> Any:
    """The store of the vector that interleaves others."""
    symbol = _symbol(stmt.value)
    if not symbol.startswith(INTERLEAVE):
        return stmt
    bits, rows, lanes = map(int, symbol.removeprefix(f"{INTERLEAVE}_").split("_"))
    name, target, *sources = stmt.value.args
    vectors = [tirx.reinterpret(_vector(f"uint{bits}", lanes), _load(s, lanes)) for s in sources]
    joined = tirx.call_extern(_vector(f"uint{bits}", rows * lanes), name.value, *vectors)
    place = target.args[0]
    value = tirx.reinterpret(_vector(str(place.source.dtype), rows * lanes), joined)
    return tirx.BufferStore(place.source, value, [_ramp(place.indices[0], rows * lanes)])


def _load(address: Any, lanes: int) -> Any:
    """The vector that begins at the address of an element."""
    first = address.args[0]
    return tirx.BufferLoad(first.source, [_ramp(first.indices[0], lanes)])


def _ramp(index: Any, lanes: int) -> Any:
    return index if lanes == 1 else tirx.Ramp(index, tirx.const(1, str(index.ty.dtype)), lanes)


def _vector(dtype: str, lanes: int) -> str:
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def _symbol(call: Any) -> str:
    """The name of the function that a call is for, "" for TVM's operators."""
    is_extern = (
        isinstance(call, ir.Call) and str(getattr(call.op, "name", "")) == "tirx.call_extern"
    )
    return str(call.args[0].value) if is_extern else ""
