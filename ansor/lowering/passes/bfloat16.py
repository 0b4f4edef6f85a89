"""Arrays of bfloat16 as arrays of their bits, rounded with a single instruction if there is one.

TVM turns an array of bfloat16 that a function allocates into an array of float32. An instruction
that reads groups of bfloat16 from memory then reads wrong data. TVM also rounds with five integer
operations for each number, and it does not convert values that are bound to variables. Here arrays
keep their 16 bits, and LLVM's `fptrunc` rounds. It becomes one instruction on processors with
AVX512-BF16 or ARM's BF16. Both round to nearest, ties to even.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tvm import ir, tirx
from tvm.target import codegen
from tvm_ffi import structural_map

from ansor.lowering.statements import collect

_DTYPE, _BITS, _WIDE = "bfloat16", "uint16", "float32"
_PREFIX = "ansor_bfloat16"
_NATIVE = ("avx512bf16", "bf16")  # LLVM's names of the instruction sets that round: x86, ARM


def keep_bfloat16(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with its arrays of bfloat16 in 16 bits; after loops have become vectors."""
    arrays = {a.buffer: a.buffer.with_dtype(_BITS) for a in _allocated(func)}
    if not arrays and not any(_is_bfloat16(param.dtype) for param in func.params):
        return func
    rewriter = _Rewriter(arrays)
    body = structural_map(
        func.body,
        [
            (tirx.AllocBuffer, rewriter.allocated),
            (ir.TensorLoad, rewriter.loaded),
            (tirx.Cast, rewriter.widened),
            (tirx.BufferStore, rewriter.stored),
            (ir.Call, _with_address),
        ],
    )
    if rewriter.lanes:
        target = func.attrs["target"]
        native = any(codegen.llvm_cpu_has_features(name, target) for name in _NATIVE)
        text = ir.StringImm(_rounding_functions(sorted(rewriter.lanes), native))
        body = tirx.AttrStmt(tirx.const(0, "int32"), "pragma_import_llvm", text, body)
    return func.with_body(body)


def _with_address(call: Any) -> Any:
    """The address of an element, which is that of its bits."""
    if _name(call) != "tirx.address_of" or not isinstance(call.args[0], ir.Call):
        return call
    return tirx.address_of(call.args[0].args[0])


def _allocated(func: tirx.PrimFunc) -> list[Any]:
    return [a for a in collect(func.body, tirx.AllocBuffer) if _is_bfloat16(a.buffer.dtype)]


def _is_bfloat16(dtype: Any) -> bool:
    return str(dtype).partition("x")[0] == _DTYPE


class _Rewriter:
    """Rewrites the accesses of arrays; `lanes` are the lengths of the vectors that are rounded."""

    def __init__(self, arrays: dict[Any, Any]) -> None:
        self.arrays = arrays
        self.lanes: set[int] = set()

    def allocated(self, stmt: Any) -> Any:
        array = self._bits_of(stmt.buffer)
        return stmt if array is None else tirx.AllocBuffer(array, stmt.annotations)

    def loaded(self, load: Any) -> Any:
        """A load of an array of bits, as numbers."""
        array = self._bits_of(load.source)
        if array is None:
            return load
        bits = tirx.BufferLoad(array, load.indices)
        return tirx.reinterpret(_with_lanes(_DTYPE, load), bits)

    def widened(self, cast: Any) -> Any:
        """A conversion to float32: the bits are the upper half of a word."""
        if not _is_bfloat16(cast.value.ty.dtype) or str(cast.ty.dtype).partition("x")[0] != _WIDE:
            return cast
        words = _with_lanes("uint32", cast)
        bits = tirx.Cast(words, self._bits(cast.value))
        shifted = bits << tirx.const(16, words)
        return tirx.reinterpret(str(cast.ty.dtype), shifted)

    def stored(self, store: Any) -> Any:
        """A store of bits, or of a rounded number to a parameter."""
        array = self._bits_of(store.buffer)
        if array is not None:
            return tirx.BufferStore(array, self._bits(store.value), store.indices)
        if not _is_bfloat16(store.buffer.dtype):
            return store
        value = tirx.reinterpret(_with_lanes(_DTYPE, store.value), self._bits(store.value))
        return tirx.BufferStore(store.buffer, value, store.indices)

    def _bits_of(self, buffer: Any) -> Any:
        return next((new for old, new in self.arrays.items() if old.same_as(buffer)), None)

    def _bits(self, value: Any) -> Any:
        """The bits of a number of bfloat16."""
        bits = _with_lanes(_BITS, value)
        if isinstance(value, tirx.Broadcast):
            return tirx.Broadcast(self._bits(value.value), value.lanes)
        if isinstance(value, tirx.Select):
            parts = [self._bits(part) for part in (value.true_value, value.false_value)]
            return tirx.Select(value.condition, *parts)
        if isinstance(value, tirx.Cast):
            return self._rounded(value.value)
        if isinstance(value, ir.TensorLoad):
            return tirx.reinterpret(bits, value)
        if isinstance(value, ir.Call) and _name(value) == "tirx.reinterpret":
            return (
                value.args[0]
                if str(value.args[0].ty.dtype) == bits
                else tirx.reinterpret(bits, value)
            )
        if isinstance(value, ir.Call) and _name(value) == "tirx.if_then_else":
            condition, *parts = value.args
            return tirx.if_then_else(condition, *(self._bits(part) for part in parts))
        return self._rounded(value)

    def _rounded(self, value: Any) -> Any:
        wide = tirx.Cast(_with_lanes(_WIDE, value), value)
        lanes = _lanes(value)
        self.lanes.add(lanes)
        return tirx.call_extern(_with_lanes(_BITS, value), f"{_PREFIX}_{lanes}", wide)


def _name(call: Any) -> str:
    return str(getattr(call.op, "name", ""))


def _lanes(value: Any) -> int:
    _, _, lanes = str(value.ty.dtype).partition("x")
    return int(lanes or 1)


def _with_lanes(dtype: str, value: Any) -> str:
    lanes = _lanes(value)
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def _rounding_functions(lanes: Iterable[int], native: bool) -> str:
    """Functions from float32 to the bits of bfloat16, in LLVM's language."""
    return "\n".join(_rounding_function(count, native) for count in lanes)


def _rounding_function(lanes: int, native: bool) -> str:
    def vector(element: str) -> str:
        return element if lanes == 1 else f"<{lanes} x {element}>"

    def splat(value: int) -> str:
        return str(value) if lanes == 1 else f"<{', '.join([f'i32 {value}'] * lanes)}>"

    head = f"define linkonce_odr {vector('i16')} @{_PREFIX}_{lanes}({vector('float')} %x)"
    if native:
        lines = [
            f"  %short = fptrunc {vector('float')} %x to {vector('bfloat')}",
            f"  %out = bitcast {vector('bfloat')} %short to {vector('i16')}",
        ]
    else:  # half a unit less one, plus one if the last kept bit is set
        words = vector("i32")
        lines = [
            f"  %bits = bitcast {vector('float')} %x to {words}",
            f"  %shifted = lshr {words} %bits, {splat(16)}",
            f"  %odd = and {words} %shifted, {splat(1)}",
            f"  %half = add {words} %odd, {splat(0x7FFF)}",
            f"  %sum = add {words} %bits, %half",
            f"  %number = lshr {words} %sum, {splat(16)}",
            f"  %nan = fcmp uno {vector('float')} %x, %x",
            f"  %quiet = or {words} %shifted, {splat(0x40)}",
            f"  %chosen = select {vector('i1')} %nan, {words} %quiet, {words} %number",
            f"  %out = trunc {words} %chosen to {vector('i16')}",
        ]
    body = "\n".join(lines)
    return f"{head} alwaysinline nounwind {{\n{body}\n  ret {vector('i16')} %out\n}}"
