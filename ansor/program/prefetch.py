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

from tvm import sym, tirx

from ansor.program.accesses import path_to, position_of, read_indices, step_of, zero_of
from ansor.program.rewrite import replace_loops, substitute, with_llvm

LINE_BYTES = 64  # what a fetch brings; longer lines are asked for twice
_FETCH = "ansor_fetch"
_FETCH_TO_WRITE = "ansor_fetch_to_write"
# Fetches into all caches. LLVM takes any other call of its prefetch for one that may read what is
# being summed up, and stores sums before it.
_MEMORY = "memory(inaccessiblemem: readwrite)"
_FETCH_IR = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)" + "".join(
    f"""
define linkonce_odr void @{name}(ptr %line) alwaysinline nounwind {{
  call void @llvm.prefetch.p0(ptr %line, i32 {write}, i32 3, i32 1) {_MEMORY}
  ret void
}}
"""
    for name, write in ((_FETCH, 0), (_FETCH_TO_WRITE, 1))
)


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
    body = func.body
    for name, operand in wanted.items():
        found = path_to(body, name)
        buffer = func.params[operand.parameter]
        part = None if found is None else _part(*found, buffer, operand)
        if part is not None:
            body = _with_fetches(body, part, buffer)
    return with_fetching(func, body)


def _part(
    loops: Sequence[Any], realize: Any, buffer: Any, wanted: PrefetchedOperand
) -> _Part | None:
    """The largest part of a size that is asked for, or all that is read without a gap: found from
    the innermost loop outwards."""
    live = [loop for loop in loops if int(loop.extent) > 1]
    position = position_of(read_indices(realize, buffer, loops), buffer)
    least, most = wanted.elements
    run, repeats, repeated, streamed = 1, -1, None, None
    for number in reversed(range(len(live))):
        step = step_of(position, live, number)
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
    start = substitute(position, {x.loop_var: zero_of(x) for x in live[number:]})
    return _Part(live[number:], sym.Analyzer().simplify(start), elements, distance)


def _with_fetches(body: Any, part: _Part, buffer: Any) -> Any:
    """Asks for a line, or as many as are read, every so many iterations of the innermost loops."""
    serial = [loop for loop in part.loops if loop.kind == tirx.ForKind.SERIAL]
    per_line = LINE_BYTES // buffer.dtype.itemsize
    start, lines = part.first + part.distance, -(-part.elements // per_line)
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
        asked = [tirx.min(turn * together + line, lines - 1) for line in range(together)]
        fetches = [fetch(buffer, start + line * per_line) for line in asked]
        again = substitute(loop.body, {variable: outer * apart + inner})
        inside = tirx.For(inner, zero_of(loop), tirx.const(apart, dtype), loop.kind, again)
        count = tirx.const(int(loop.extent) // apart, dtype)
        return tirx.For(
            *(outer, zero_of(loop), count, loop.kind, tirx.SeqStmt([*fetches, inside])),
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


def with_fetching(func: tirx.PrimFunc, body: Any) -> tirx.PrimFunc:
    """`func` with another body, in which `fetch` was used; itself if the body is its own."""
    return func if body.same_as(func.body) else func.with_body(with_llvm(body, _FETCH_IR))


def fetch(buffer: Any, element: Any, to_write: bool = False) -> Any:
    """Asks for the line of an element of a buffer, by its number."""
    zeros = [0] * (len(buffer.shape) - 1)  # the last index may be any number from there
    address = tirx.address_of(tirx.BufferLoad(buffer, [*zeros, element]))
    name = _FETCH_TO_WRITE if to_write else _FETCH
    return tirx.Evaluate(tirx.call_extern("void", name, address))
