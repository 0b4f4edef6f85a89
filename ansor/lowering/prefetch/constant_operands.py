"""Prefetches of constant operands.

A stage reads a part of its weights repeatedly before it reads the next part in memory. It waits for
memory only the first time, and the hardware does not prefetch the next part. Here each repetition
prefetches some lines of the next part, so that memory is always busy. See Mowry, Lam and Gupta,
"Design and Evaluation of a Compiler Algorithm for Prefetching", 1992. If no part is repeated, each
step prefetches lines at a distance, because the hardware stops at the end of every page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import sym, tirx

from ansor.lowering.accesses import path_to, position_of, read_indices, step_of, zero_of
from ansor.lowering.prefetch.emit import Lines, prefetch_line, spread_prefetches
from ansor.lowering.statements import substitute_variables


@dataclass(frozen=True)
class PrefetchedOperand:
    """A parameter of a function that is to be prefetched.

    Attributes:
        parameter: its position.
        elements: least and largest number of elements of a part that is prefetched as a whole.
        run: least number of contiguous elements that are prefetched at a distance.
        distance: of these prefetches, in elements.
        line_bytes: size of a cache line.
    """

    parameter: int
    elements: tuple[int, int]
    run: int
    distance: int
    line_bytes: int


@dataclass(frozen=True)
class _Part:
    """A contiguous part of an operand.

    Attributes:
        loops: that read the part, and may repeat it.
        first: number of its first element.
        elements: of the part.
        distance: of the prefetched elements, in elements.
    """

    loops: Sequence[Any]
    first: Any
    elements: int
    distance: int


def insert_prefetches(
    body: Any, wanted: Mapping[str, PrefetchedOperand], params: Sequence[Any]
) -> Any:
    """`body` with prefetches of the parts behind those in use.

    Args:
        wanted: for blocks by name; blocks without long contiguous reads do not change.
        params: of the function.
    """
    for name, operand in wanted.items():
        found = path_to(body, name)
        buffer = params[operand.parameter]
        part = None if found is None else _part(*found, buffer, operand)
        if part is not None:
            body = _with_fetches(body, part, buffer, operand.line_bytes)
    return body


def _part(
    loops: Sequence[Any], realize: Any, buffer: Any, wanted: PrefetchedOperand
) -> _Part | None:
    """The largest repeated part within the sizes, or else the whole contiguous run. The search goes
    from the innermost loop outwards."""
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
    start = substitute_variables(position, {x.loop_var: zero_of(x) for x in live[number:]})
    return _Part(live[number:], sym.Analyzer().simplify(start), elements, distance)


def _with_fetches(body: Any, part: _Part, buffer: Any, line_bytes: int) -> Any:
    """Prefetches all lines of the part at the distance, spread over the iterations of its loops."""
    serial = [loop for loop in part.loops if loop.kind == tirx.ForKind.SERIAL]
    per_line = line_bytes // buffer.dtype.itemsize
    start, lines = part.first + part.distance, -(-part.elements // per_line)
    wanted = Lines(lines, lambda number: prefetch_line(buffer, start + number * per_line))
    extents = [int(loop.extent) for loop in serial]
    number, apart = _place(extents, math.prod(extents) / lines)
    return spread_prefetches(body, serial[: number + 1], apart, [wanted])


def _place(extents: Sequence[int], most: float) -> tuple[int, int]:
    """The number of the nested loop that prefetches, and the number of its iterations between two
    prefetches. If possible, these are at most `most` iterations of the innermost loop."""
    inside, number = 1, len(extents) - 1
    while number > 0 and inside * extents[number] <= most:
        inside *= extents[number]
        number -= 1
    extent = extents[number]
    divisors = (n for n in range(1, extent + 1) if extent % n == 0)
    return number, max(n for n in divisors if n == 1 or n * inside <= most)
