"""Functions in LLVM's language that add up the products of groups, for vectors of several widths.

A function takes the sums of its lanes, the group that all lanes share, and the groups of the lanes.
A group is a word of 32 bits. If the target has the instruction, the inlined function is this single
instruction (`ansor.lowering.dot_intrinsics`). Otherwise it computes the same with plain arithmetic,
so that a program is right on every processor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product, starmap

from ansor.lowering.dot_intrinsics import (
    LEAST_LANES,
    HasFeatures,
    native_form,
    types_of,
    vector,
)
from ansor.program.dot_instructions import (
    DOT_INSTRUCTIONS,
    DotInstruction,
    instruction_named,
)

_PREFIX = "ansor_dot"
_LANES = (16, 8, 4, 2, 1)  # of 32 bits: the registers of x86, and rests


@dataclass(frozen=True)
class DotFunction:
    """One function.

    Attributes:
        instruction: that it replaces.
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
    known = instruction_named(instruction)
    return DotFunction(known, 1, (shared, lanes) == known.operands)


def function_of(name: str) -> DotFunction | None:
    """The function of a symbol; None for other symbols."""
    return _functions().get(name)


@cache
def _functions() -> Mapping[str, DotFunction]:
    """All functions by their symbols."""
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
    declared: set[str] = set()
    defined = []
    for function in functions:
        lanes = max(function.lanes, LEAST_LANES)
        native = native_form(function.instruction, lanes, has)
        if native is None:
            defined.append(_definition(function, function.lanes, _plain(function)))
        else:
            declared.update(native.declarations)
            defined.append(_definition(function, lanes, native.lines))
    return "\n".join([*sorted(declared), *defined])


def _definition(function: DotFunction, lanes: int, lines: Iterable[str]) -> str:
    """A function whose groups are words.

    `%first` and `%second` have the elements of the instruction's operands in each lane.

    Args:
        lanes: number of computed lanes; the function's lanes are the lowest of them.
        lines: compute `%out` from `%sum`, `%first` and `%second`.
    """
    own_total, own_words, _ = types_of(function.instruction, function.lanes)
    total, words, elements = types_of(function.instruction, lanes)
    first, second = ("%all", "%groups") if function.shared_first else ("%groups", "%all")
    head = f"define linkonce_odr {own_total} @{function.name}"
    return "\n".join(
        [
            f"{head}({own_total} %sums, i32 %shared, {own_words} %along) alwaysinline nounwind {{",
            *_spread(lanes),
            _widened("%sum", "%sums", own_total, function.lanes, lanes),
            _widened("%groups", "%along", own_words, function.lanes, lanes),
            f"  %first = bitcast {words} {first} to {elements}",
            f"  %second = bitcast {words} {second} to {elements}",
            *lines,
            _lowest("%outs", "%out", total, function.lanes, lanes),
            f"  ret {own_total} %outs",
            "}",
        ]
    )


def _spread(lanes: int) -> list[str]:
    """The shared word in all lanes."""
    words = vector("i32", lanes)
    if lanes == 1:
        return ["  %all = bitcast i32 %shared to i32"]
    everywhere = f"<{lanes} x i32> zeroinitializer"
    return [
        f"  %one = insertelement {words} poison, i32 %shared, i64 0",
        f"  %all = shufflevector {words} %one, {words} poison, {everywhere}",
    ]


def _widened(name: str, value: str, kind: str, count: int, wide: int) -> str:
    """The elements of `value` at the lowest places of a vector of `wide` elements."""
    if count == wide:
        return f"  {name} = bitcast {kind} {value} to {kind}"
    if count == 1:
        return f"  {name} = insertelement <{wide} x {kind}> poison, {kind} {value}, i64 0"
    places = ", ".join(f"i32 {n}" if n < count else "i32 poison" for n in range(wide))
    return f"  {name} = shufflevector {kind} {value}, {kind} poison, <{wide} x i32> <{places}>"


def _lowest(name: str, value: str, kind: str, count: int, wide: int) -> str:
    """The lowest elements of a vector of `wide` elements."""
    if count == wide:
        return f"  {name} = bitcast {kind} {value} to {kind}"
    if count == 1:
        return f"  {name} = extractelement {kind} {value}, i64 0"
    places = ", ".join(f"i32 {n}" for n in range(count))
    return f"  {name} = shufflevector {kind} {value}, {kind} poison, <{count} x i32> <{places}>"


def _plain(function: DotFunction) -> list[str]:
    """Arithmetic on the elements of each word, the lowest first."""
    instruction = function.instruction
    total, _, _ = types_of(instruction, function.lanes)
    add, multiply = ("fadd", "fmul") if instruction.total == "float32" else ("add", "mul")
    dtypes = dict(zip(("first", "second"), instruction.operands, strict=True))
    lines, before = [], "%sum"
    for number in range(instruction.elements):
        for side, dtype in dtypes.items():
            lines += _element(function, side, dtype, number)
        last = number == instruction.elements - 1
        after = "%out" if last else f"%sum{number}"
        lines += [
            f"  %product{number} = {multiply} {total} %first{number}, %second{number}",
            f"  {after} = {add} {total} {before}, %product{number}",
        ]
        before = after
    return lines


def _element(function: DotFunction, side: str, dtype: str, number: int) -> list[str]:
    """One element of each word, as a number of the sum's dtype."""
    total, _, elements = types_of(function.instruction, function.lanes)
    count, lanes = function.instruction.elements, function.lanes
    extend = {"bfloat16": "fpext", "int8": "sext", "uint8": "zext"}[dtype]
    element = elements.split(" x ")[1].removesuffix(">")
    short, name = vector(element, lanes), f"%{side}{number}"
    if lanes == 1:
        taken = f"  {name}.short = extractelement {elements} %{side}, i64 {number}"
    else:
        order = ", ".join(f"i32 {count * lane + number}" for lane in range(lanes))
        both = f"{elements} %{side}, {elements} poison"
        taken = f"  {name}.short = shufflevector {both}, <{lanes} x i32> <{order}>"
    return [taken, f"  {name} = {extend} {short} {name}.short to {total}"]
