"""Instructions that add up the products of groups, as LLVM's intrinsics.

The signatures are those of LLVM's `IntrinsicsX86.td` and `IntrinsicsAArch64.td`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ansor.program.dot_instructions import DotInstruction

WORD_BITS = 32
LEAST_LANES = 4  # of a register that the instructions take
_LLVM_TYPES = {"float32": "float", "int32": "i32"}
HasFeatures = Callable[[str], bool]  # whether a target has an instruction set of LLVM's name


@dataclass(frozen=True)
class NativeForm:
    """Lines in LLVM's language that compute `%out` from `%sum`, `%first` and `%second`.

    Attributes:
        declarations: of the intrinsics that the lines call.
    """

    declarations: tuple[str, ...]
    lines: tuple[str, ...]


def native_form(instruction: DotInstruction, lanes: int, has: HasFeatures) -> NativeForm | None:
    """The instruction on registers of `lanes` lanes; None if the target lacks it."""
    return _FORMS[instruction.mnemonic](instruction, lanes, has)


def vector(element: str, count: int) -> str:
    """LLVM's type of a vector."""
    return element if count == 1 else f"<{count} x {element}>"


def types_of(instruction: DotInstruction, lanes: int) -> tuple[str, str, str]:
    """LLVM's types of the sums, of a vector of words, and of a vector of elements."""
    bits = WORD_BITS // instruction.elements
    element = "bfloat" if instruction.operands[0] == "bfloat16" else f"i{bits}"
    total = vector(_LLVM_TYPES[instruction.total], lanes)
    return total, vector("i32", lanes), vector(element, lanes * instruction.elements)


def _single(instruction: DotInstruction, lanes: int, intrinsic: str) -> NativeForm:
    """One call."""
    total, _, elements = types_of(instruction, lanes)
    operands = f"{total} %sum, {elements} %first, {elements} %second"
    return NativeForm(
        (f"declare {total} @{intrinsic}({total}, {elements}, {elements})",),
        (f"  %out = call {total} @{intrinsic}({operands})",),
    )


def _vdpbf16ps(instruction: DotInstruction, lanes: int, has: HasFeatures) -> NativeForm | None:
    bits = lanes * WORD_BITS
    if not has("avx512bf16") or not (bits == 512 or has("avx512vl")):
        return None
    return _single(instruction, lanes, f"llvm.x86.avx512bf16.dpbf16ps.{bits}")


def _vpdpbusd(instruction: DotInstruction, lanes: int, has: HasFeatures) -> NativeForm | None:
    bits = lanes * WORD_BITS
    wide = has("avx512vnni") and (bits == 512 or has("avx512vl"))
    if not wide and not (has("avxvnni") and bits < 512):
        return None
    return _single(instruction, lanes, f"llvm.x86.avx512.vpdpbusd.{bits}")


# By bits of a vector: the feature, then LLVM's names of `vpmaddubsw` and `vpmaddwd`.
_PAIRS = {
    128: ("avx2", "ssse3.pmadd.ub.sw.128", "sse2.pmadd.wd"),
    256: ("avx2", "avx2.pmadd.ub.sw", "avx2.pmadd.wd"),
    512: ("avx512bw", "avx512.pmaddubs.w.512", "avx512.pmaddw.d.512"),
}


def _vpmaddubsw(instruction: DotInstruction, lanes: int, has: HasFeatures) -> NativeForm | None:
    """Sums of two products in 16 bits, sums of two of these, and the addition."""
    feature, narrow, wide = _PAIRS[lanes * WORD_BITS]
    if not has(feature):
        return None
    total, _, elements = types_of(instruction, lanes)
    halves = vector("i16", 2 * lanes)
    ones = f"<{', '.join(['i16 1'] * 2 * lanes)}>"
    operands = f"{elements} %first, {elements} %second"
    return NativeForm(
        (
            f"declare {halves} @llvm.x86.{narrow}({elements}, {elements})",
            _pairs_declaration(wide, lanes),
        ),
        (
            f"  %pairs = call {halves} @llvm.x86.{narrow}({operands})",
            f"  %fours = call {total} @llvm.x86.{wide}({halves} %pairs, {halves} {ones})",
            f"  %out = add {total} %sum, %fours",
        ),
    )


def _vpmaddwd(instruction: DotInstruction, lanes: int, has: HasFeatures) -> NativeForm | None:
    """Even and odd elements in 16 bits, and an addition of the products of each.

    The operands are widened once for all sums of a tile, because LLVM finds equal expressions.
    """
    feature, _, wide = _PAIRS[lanes * WORD_BITS]
    if not has(feature):
        return None
    total, halves = vector("i32", lanes), vector("i16", 2 * lanes)
    lines = []
    for side, dtype in zip(("first", "second"), instruction.operands, strict=True):
        lines += _even_and_odd(side, dtype, lanes)
    for part, before, after in (("even", "%sum", "%most"), ("odd", "%most", "%out")):
        operands = f"{halves} %first.{part}, {halves} %second.{part}"
        lines += [
            f"  %{part}.products = call {total} @llvm.x86.{wide}({operands})",
            f"  {after} = add {total} {before}, %{part}.products",
        ]
    return NativeForm((_pairs_declaration(wide, lanes),), tuple(lines))


def _pairs_declaration(intrinsic: str, lanes: int) -> str:
    halves = vector("i16", 2 * lanes)
    return f"declare {vector('i32', lanes)} @llvm.x86.{intrinsic}({halves}, {halves})"


def _even_and_odd(side: str, dtype: str, lanes: int) -> list[str]:
    """Elements of 8 bits as two vectors of 16 bits."""
    halves, eights = vector("i16", 2 * lanes), f"<{', '.join(['i16 8'] * 2 * lanes)}>"
    shift = {"int8": "ashr", "uint8": "lshr"}[dtype]
    return [
        f"  %{side}.both = bitcast {vector('i8', 4 * lanes)} %{side} to {halves}",
        f"  %{side}.low = shl {halves} %{side}.both, {eights}",
        f"  %{side}.even = {shift} {halves} %{side}.low, {eights}",
        f"  %{side}.odd = {shift} {halves} %{side}.both, {eights}",
    ]


_NEON = {"sdot": "dotprod", "udot": "dotprod", "usdot": "i8mm", "bfdot": "bf16"}  # features


def _neon(instruction: DotInstruction, lanes: int, has: HasFeatures) -> NativeForm | None:
    if lanes != LEAST_LANES or not has(_NEON[instruction.name]):
        return None
    types = "v4f32.v8bf16" if instruction.total == "float32" else "v4i32.v16i8"
    return _single(instruction, lanes, f"llvm.aarch64.neon.{instruction.name}.{types}")


_FORMS: Mapping[str, Callable[[DotInstruction, int, HasFeatures], NativeForm | None]] = (
    MappingProxyType(
        {
            "vdpbf16ps": _vdpbf16ps,
            "vpdpbusd": _vpdpbusd,
            "vpmaddubsw": _vpmaddubsw,
            "vpmaddwd": _vpmaddwd,
            **dict.fromkeys(_NEON, _neon),
        }
    )
)
