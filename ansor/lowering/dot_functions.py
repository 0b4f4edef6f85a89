"""Functions in LLVM's language that add up the products of groups, for vectors of several widths.

A function takes the sums of its lanes, the group that all lanes share, and the groups of the lanes;
a group is a word of 32 bits. Where the target has the instruction, the function is that instruction
and nothing else after inlining. Elsewhere it computes the same with plain arithmetic, so a program
is right on every processor. The signatures of the intrinsics are those of LLVM's
`IntrinsicsX86.td`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product, starmap

from ansor.program.dot_instructions import DOT_INSTRUCTIONS, DotInstruction

_PREFIX = "ansor_dot"
_LANES = (16, 8, 4, 2, 1)  # of 32 bits: the registers of x86, and what is left
_WORD_BITS = 32
_LEAST_BITS = 128  # of a register that the instructions take
_LLVM_TYPES = {"float32": "float", "int32": "i32"}
HasFeatures = Callable[[str], bool]  # whether a target has an instruction set, in LLVM's words


@dataclass(frozen=True)
class DotFunction:
    """One function.

    Attributes:
        instruction: that it stands for.
        lanes: of 32 bits.
        shared_first: whether the shared group is the first operand of the instruction.
    """

    instruction: DotInstruction
    lanes: int
    shared_first: bool

    @property
    def name(self) -> str:
        """The symbol of the function."""
        order = "shared_first" if self.shared_first else "lanes_first"
        return f"{_PREFIX}_{self.instruction.name}_{order}_{self.lanes}"

    @property
    def dtype(self) -> str:
        """Dtype of the sums, as TVM writes it."""
        total = self.instruction.total
        return total if self.lanes == 1 else f"{total}x{self.lanes}"


def scalar_function(instruction: str, shared: str, lanes: str) -> DotFunction:
    """The function of one lane, by the dtypes of the shared group and of the lanes' groups."""
    known = next(each for each in DOT_INSTRUCTIONS if each.name == instruction)
    return DotFunction(known, 1, (shared, lanes) == known.operands)


def function_of(name: str) -> DotFunction | None:
    """The function of a symbol; None for other symbols."""
    return _functions().get(name)


@cache
def _functions() -> Mapping[str, DotFunction]:
    """All functions by their symbols. A compiler asks for every call of a program."""
    found = starmap(DotFunction, product(DOT_INSTRUCTIONS, _LANES, (True, False)))
    return {function.name: function for function in found}


def widths(extent: int, most: int) -> list[int]:
    """Lanes of the functions that compute `extent` elements, the widest first.

    Args:
        most: lanes of a register.
    """
    found: list[int] = []
    for lanes in _LANES:
        if lanes <= most:
            count, extent = divmod(extent, lanes)
            found += [lanes] * count
    return found


def llvm_text(functions: Iterable[DotFunction], has: HasFeatures) -> str:
    """The definitions of functions for a target."""
    bodies = [(f, _intrinsic(f, has)) for f in functions]
    declared = {_declaration(f, name) for f, name in bodies if name}
    defined = [_definition(f, _native(f, name) if name else _plain(f)) for f, name in bodies]
    return "\n".join([*sorted(declared), *defined])


def _intrinsic(function: DotFunction, has: HasFeatures) -> str:
    """LLVM's intrinsic for a function, "" where the target has none."""
    bits = max(function.lanes * _WORD_BITS, _LEAST_BITS)
    short = bits == 512 or has("avx512vl")
    if function.instruction.name == "vdpbf16ps":
        known = has("avx512bf16") and short
        return f"llvm.x86.avx512bf16.dpbf16ps.{bits}" if known else ""
    known = (has("avx512vnni") and short) or (has("avxvnni") and bits < 512)
    return f"llvm.x86.avx512.vpdpbusd.{bits}" if known else ""


def _vector(element: str, count: int) -> str:
    return element if count == 1 else f"<{count} x {element}>"


def _types(function: DotFunction, lanes: int = 0) -> tuple[str, str, str]:
    """LLVM's types of the sums, of a vector of words, and of a vector of elements.

    Args:
        lanes: of the vectors; those of the function by default.
    """
    instruction, lanes = function.instruction, lanes or function.lanes
    bits = _WORD_BITS // instruction.elements
    element = "bfloat" if instruction.operands[0] == "bfloat16" else f"i{bits}"
    total = _vector(_LLVM_TYPES[instruction.total], lanes)
    return total, _vector("i32", lanes), _vector(element, lanes * instruction.elements)


def _lanes_of_register(function: DotFunction) -> int:
    """Lanes of the shortest register that holds the lanes of a function."""
    return max(function.lanes, _LEAST_BITS // _WORD_BITS)


def _declaration(function: DotFunction, intrinsic: str) -> str:
    total, _, elements = _types(function, _lanes_of_register(function))
    return f"declare {total} @{intrinsic}({total}, {elements}, {elements})"


def _definition(function: DotFunction, body: str) -> str:
    """A function whose groups are words; `%left` and `%right` have the elements of each lane."""
    total, words, elements = _types(function)
    head = (
        f"define linkonce_odr {total} @{function.name}({total} %sum, i32 %shared, {words} %along)"
    )
    return "\n".join(
        [
            f"{head} alwaysinline nounwind {{",
            *_spread(function),
            f"  %left = bitcast {words} %all to {elements}",
            f"  %right = bitcast {words} %along to {elements}",
            body,
            "}",
        ]
    )


def _spread(function: DotFunction) -> list[str]:
    """The shared word in all lanes."""
    _, words, _ = _types(function)
    if function.lanes == 1:
        return ["  %all = bitcast i32 %shared to i32"]
    everywhere = f"<{function.lanes} x i32> zeroinitializer"
    return [
        f"  %one = insertelement {words} poison, i32 %shared, i64 0",
        f"  %all = shufflevector {words} %one, {words} poison, {everywhere}",
    ]


def _native(function: DotFunction, intrinsic: str) -> str:
    """One instruction; the lanes fill the lowest part of a register."""
    lanes = _lanes_of_register(function)
    total, _, elements = _types(function, lanes)
    own_total, _, own_elements = _types(function)
    count = function.instruction.elements
    lines = [
        _widened("%sums", "%sum", own_total, function.lanes, lanes),
        _widened("%lefts", "%left", own_elements, count * function.lanes, count * lanes),
        _widened("%rights", "%right", own_elements, count * function.lanes, count * lanes),
    ]
    order = ("%lefts", "%rights") if function.shared_first else ("%rights", "%lefts")
    operands = ", ".join(f"{elements} {operand}" for operand in order)
    lines.append(f"  %all.sums = call {total} @{intrinsic}({total} %sums, {operands})")
    lines.append(_lowest("%out", "%all.sums", total, function.lanes))
    return "\n".join([*lines, f"  ret {own_total} %out"])


def _widened(name: str, value: str, kind: str, count: int, wide: int) -> str:
    """The elements of `value` at the lowest places of a vector of `wide` elements."""
    if count == 1:
        return f"  {name} = insertelement <{wide} x {kind}> poison, {kind} {value}, i64 0"
    places = ", ".join(f"i32 {n}" if n < count else "i32 poison" for n in range(wide))
    return f"  {name} = shufflevector {kind} {value}, {kind} poison, <{wide} x i32> <{places}>"


def _lowest(name: str, value: str, kind: str, count: int) -> str:
    """The lowest elements of a vector."""
    if count == 1:
        return f"  {name} = extractelement {kind} {value}, i64 0"
    places = ", ".join(f"i32 {n}" for n in range(count))
    return f"  {name} = shufflevector {kind} {value}, {kind} poison, <{count} x i32> <{places}>"


def _plain(function: DotFunction) -> str:
    """Arithmetic on the elements of each word, the lowest first."""
    total, _, _ = _types(function)
    floating = function.instruction.total == "float32"
    add, multiply = ("fadd", "fmul") if floating else ("add", "mul")
    sides = ("left", "right") if function.shared_first else ("right", "left")
    dtypes = dict(zip(sides, function.instruction.operands, strict=True))
    lines, before = [], "%sum"
    for number in range(function.instruction.elements):
        for side, dtype in dtypes.items():
            lines += _element(function, side, dtype, number)
        last = number == function.instruction.elements - 1
        after = "%out" if last else f"%sum{number}"
        lines += [
            f"  %product{number} = {multiply} {total} %left{number}, %right{number}",
            f"  {after} = {add} {total} {before}, %product{number}",
        ]
        before = after
    return "\n".join([*lines, f"  ret {total} %out"])


def _element(function: DotFunction, side: str, dtype: str, number: int) -> list[str]:
    """One element of each word, as a number of the sum's dtype."""
    total, _, elements = _types(function)
    count, lanes = function.instruction.elements, function.lanes
    extend = {"bfloat16": "fpext", "int8": "sext", "uint8": "zext"}[dtype]
    element = elements.split(" x ")[1].removesuffix(">")
    short, name = _vector(element, lanes), f"%{side}{number}"
    if lanes == 1:
        taken = f"  {name}.short = extractelement {elements} %{side}, i64 {number}"
    else:
        order = ", ".join(f"i32 {count * lane + number}" for lane in range(lanes))
        both = f"{elements} %{side}, {elements} poison"
        taken = f"  {name}.short = shufflevector {both}, <{lanes} x i32> <{order}>"
    return [taken, f"  {name} = {extend} {short} {name}.short to {total}"]
