"""Constant operands, prefetched.

A stage reads a part of its weights again and again before it goes on to what lies after it in
memory. Only the first time does it wait for memory, and hardware does not look further. Here each
repetition asks for some of the lines of the next part, so that memory is busy all the time (after
Mowry, Lam and Gupta, "Design and Evaluation of a Compiler Algorithm for Prefetching", 1992). Where
no part is repeated, each step asks for the lines that are some way off: hardware stops at the end
of every page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import ir, sym, tirx
from tvm.s_tir import SBlockRealize

from ansor.program.rewrite import read_indices, replace_loops, substitute, with_llvm

_LINE_BYTES = 64  # what a fetch brings; longer lines are asked for twice
_FETCH = "ansor_fetch"
# A fetch for reading, into all caches. LLVM takes any other call of its prefetch for one that may
# read what is being summed up, and stores sums before it.
_FETCH_IR = f"""
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
define linkonce_odr void @{_FETCH}(ptr %line) alwaysinline nounwind {{
  call void @llvm.prefetch.p0(ptr %line, i32 0, i32 3, i32 1) memory(inaccessiblemem: readwrite)
  ret void
}}
"""


@dataclass(frozen=True)
class PrefetchedOperand:
    """Parts of a function's parameter of at least and at most so many elements are to be
    prefetched; of runs of at least `run` elements, what lies `distance` elements ahead."""

    parameter: int
    elements: tuple[int, int]
    run: int
    distance: int


@dataclass(frozen=True)
class _Part:
    """What is read without a gap.

    Attributes:
        loops: that read it, and may repeat it.
        first: number of its first element.
        elements: of the part.
        distance: of what is asked for, in elements.
    """

    loops: Sequence[Any]
    first: Any
    elements: int
    distance: int


def insert_prefetches(
    func: tirx.PrimFunc, wanted: Mapping[str, PrefetchedOperand]
) -> tirx.PrimFunc:
    """`func` with fetches of the parts that follow those in use.

    Args:
        wanted: for blocks by name; those whose reads soon jump in memory stay as they are.
    """
    body, asked = func.body, False
    for name, operand in wanted.items():
        found = _path(body, name, ())
        buffer = func.params[operand.parameter]
        part = None if found is None else _part(*found, buffer, operand)
        if part is not None:
            body, asked = _with_fetches(body, part, buffer), True
    return func.with_body(with_llvm(body, _FETCH_IR)) if asked else func


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
    loops: Sequence[Any], realize: Any, buffer: Any, wanted: PrefetchedOperand
) -> _Part | None:
    """The largest part of a size that is asked for, or all that is read without a gap: found from
    the innermost loop outwards."""
    live = [loop for loop in loops if int(loop.extent) > 1]
    position = _position(read_indices(realize, buffer, loops), buffer)
    least, most = wanted.elements
    run, repeats, repeated, streamed = 1, -1, None, None
    for number in reversed(range(len(live))):
        step = _step(position, live, number)
        kind, extent = int(live[number].kind), int(live[number].extent)
        if step == 0:
            repeats = number if kind == tirx.ForKind.SERIAL else repeats
        elif step != run:
            break
        else:
            if repeats >= 0 and least <= run <= most:
                repeated = repeats, run, run
            repeats, run = -1, run * extent
            if kind == tirx.ForKind.SERIAL and run >= wanted.run:
                streamed = number, run, wanted.distance
        if kind == tirx.ForKind.PARALLEL:
            break
    found = repeated or streamed
    if found is None:
        return None
    number, elements, distance = found
    start = substitute(position, {x.loop_var: _zero(x) for x in live[number:]})
    return _Part(live[number:], sym.Analyzer().simplify(start), elements, distance)


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
    """Asks for a line, or as many as are read, every so many iterations of the innermost loops."""
    serial = [loop for loop in part.loops if loop.kind == tirx.ForKind.SERIAL]
    lines = -(-part.elements * buffer.dtype.itemsize // _LINE_BYTES)
    steps = math.prod(int(loop.extent) for loop in serial)
    number, apart = _place([int(loop.extent) for loop in serial], steps / lines)
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
    """Asks for a line, counted from the first of what is asked for."""
    per_line = _LINE_BYTES // buffer.dtype.itemsize
    element = part.first + part.distance + line * per_line
    zeros = [0] * (len(buffer.shape) - 1)  # the last index may be any number from there
    address = tirx.address_of(tirx.BufferLoad(buffer, [*zeros, element]))
    return tirx.Evaluate(tirx.call_extern("void", _FETCH, address))
