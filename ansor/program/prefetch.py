"""Constant operands, prefetched.

A stage reads a part of its weights again and again before it goes on to what lies after it in
memory. Only the first time does it wait for memory, and hardware does not look further. Here each
repetition asks for some of the lines of the next part, so that memory is busy all the time (after
Mowry, Lam and Gupta, "Design and Evaluation of a Compiler Algorithm for Prefetching", 1992).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import ir, sym, tirx
from tvm.s_tir import SBlockRealize

from ansor.program.rewrite import read_indices, replace_loops, substitute

_LINE_BYTES = 64  # what a fetch brings; longer lines are asked for twice
_TOGETHER = 8  # lines asked for at a time; compilers keep no sums in registers across a fetch
_READ, _KEEP, _DATA = 0, 3, 1  # operands of llvm.prefetch: for reading, into all caches, no code


@dataclass(frozen=True)
class PrefetchedOperand:
    """Parts of a function's parameter of at least and at most so many elements are to be
    prefetched."""

    parameter: int
    elements: tuple[int, int]


@dataclass(frozen=True)
class _Part:
    """What is read again and again.

    Attributes:
        loops: the loops inside the next part's, from the one that repeats the part inwards.
        first: number of the part's first element.
        elements: of the part.
    """

    loops: Sequence[Any]
    first: Any
    elements: int


def insert_prefetches(
    func: tirx.PrimFunc, wanted: Mapping[str, PrefetchedOperand]
) -> tirx.PrimFunc:
    """`func` with fetches of the parts that follow those in use.

    Args:
        wanted: for blocks by name; those that read no part again, or whose next part does not lie
            right after it, stay as they are.
    """
    body = func.body
    for name, operand in wanted.items():
        found = _path(body, name, ())
        buffer = func.params[operand.parameter]
        part = None if found is None else _part(*found, buffer, operand.elements)
        if part is not None:
            body = _with_fetches(body, part, buffer)
    return func.with_body(body)


def _path(stmt: Any, name: str, loops: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any] | None:
    """The loops around a block, outermost first, and the block."""
    if isinstance(stmt, tirx.SeqStmt):
        return next((p for s in stmt.seq if (p := _path(s, name, loops)) is not None), None)
    if isinstance(stmt, tirx.For):
        return _path(stmt.body, name, (*loops, stmt))
    if not isinstance(stmt, SBlockRealize):
        return None
    if str(stmt.block.name_hint) == name:
        return loops, stmt
    return _path(stmt.block.body, name, loops)


def _part(
    loops: Sequence[Any], realize: Any, buffer: Any, elements: tuple[int, int]
) -> _Part | None:
    """The largest part of a size that is asked for: found from the innermost loop outwards."""
    live = [loop for loop in loops if int(loop.extent) > 1]
    position = _position(read_indices(realize, buffer, loops), buffer)
    run, repeats, found = 1, -1, None
    for number in reversed(range(len(live))):
        step = _step(position, live, number)
        kind, extent = int(live[number].kind), int(live[number].extent)
        if step == 0:
            repeats = number if kind == tirx.ForKind.SERIAL else repeats
        elif step != run:
            break
        else:
            if repeats >= 0 and elements[0] <= run <= elements[1]:
                start = substitute(position, {x.loop_var: _zero(x) for x in live[repeats:]})
                found = _Part(live[repeats:], sym.Analyzer().simplify(start), run)
            repeats, run = -1, run * extent
        if kind == tirx.ForKind.PARALLEL:
            break
    return found


def _position(indices: Sequence[Any], buffer: Any) -> Any:
    """Number of an element of a buffer."""
    position = tirx.const(0, str(indices[0].ty.dtype))
    for index, size in zip(indices, buffer.shape, strict=True):
        position = position * int(size) + index
    return position


def _step(position: Any, loops: Sequence[Any], number: int) -> int | None:
    """Elements that a loop goes on by; None where that varies.

    Of a parallel loop, which may be several fused, the first step.
    """
    analyzer, moved = sym.Analyzer(), loops[number]
    for loop in loops:
        analyzer.bind(loop.loop_var, ir.Range.from_min_extent(loop.min, loop.extent))

    def after(steps: int) -> int | None:
        values = (_zero(moved) + count for count in (0, steps))
        first, last = (substitute(position, {moved.loop_var: value}) for value in values)
        distance = analyzer.simplify(last - first)
        return int(distance) if isinstance(distance, tirx.IntImm) else None

    step, steps = after(1), int(moved.extent) - 1
    if moved.kind == tirx.ForKind.PARALLEL or step is None:
        return step
    return step if after(steps) == steps * step else None


def _zero(loop: Any) -> Any:
    return tirx.const(0, str(loop.loop_var.ty.dtype))


def _with_fetches(body: Any, part: _Part, buffer: Any) -> Any:
    """Asks for a few lines every so many iterations of the innermost loops."""
    serial = [loop for loop in part.loops if loop.kind == tirx.ForKind.SERIAL]
    lines = -(-part.elements * buffer.dtype.itemsize // _LINE_BYTES)
    steps = math.prod(int(loop.extent) for loop in serial)
    number, apart = _place([int(loop.extent) for loop in serial], _TOGETHER * steps / lines)
    rounds = math.prod(int(loop.extent) for loop in serial[: number + 1]) // apart
    together = -(-lines // rounds)

    def made(loop: Any, _: int) -> Any:
        variable = loop.loop_var
        dtype = str(variable.ty.dtype)
        outer, inner = (tirx.Var(f"{variable.name}_{level}", dtype) for level in "01")
        turn = tirx.const(0, dtype)
        for around in serial[:number]:
            turn = turn * int(around.extent) + around.loop_var
        turn = turn * (int(loop.extent) // apart) + outer
        fetches = [
            _fetch(buffer, part, tirx.min(turn * together + line, lines - 1))
            for line in range(together)
        ]
        again = substitute(loop.body, {variable: outer * apart + inner})
        inside = tirx.For(inner, _zero(loop), tirx.const(apart, dtype), loop.kind, again)
        count = tirx.const(int(loop.extent) // apart, dtype)
        return tirx.For(
            *(outer, _zero(loop), count, loop.kind, tirx.SeqStmt([*fetches, inside])),
            annotations=loop.annotations,
        )

    return replace_loops(body, {serial[number].loop_var: 0}, made)


def _place(extents: Sequence[int], most: float) -> tuple[int, int]:
    """Which of nested loops asks, and every how many of its iterations: after at most so many of
    the innermost loop's, where that can be."""
    inside, number = 1, len(extents) - 1
    while number > 0 and inside * extents[number] <= most:
        inside *= extents[number]
        number -= 1
    extent = extents[number]
    divisors = (n for n in range(1, extent + 1) if extent % n == 0)
    return number, max(n for n in divisors if n == 1 or n * inside <= most)


def _fetch(buffer: Any, part: _Part, line: Any) -> Any:
    """Asks for a line of the next part."""
    per_line = _LINE_BYTES // buffer.dtype.itemsize
    element = part.first + part.elements + line * per_line
    zeros = [0] * (len(buffer.shape) - 1)  # the last index may be any number from there
    address = tirx.address_of(tirx.BufferLoad(buffer, [*zeros, element]))
    options = (tirx.const(value, "int32") for value in (_READ, _KEEP, _DATA))
    return tirx.Evaluate(tirx.call_llvm_intrin("void", "llvm.prefetch", address, *options))
