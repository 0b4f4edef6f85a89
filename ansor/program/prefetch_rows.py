"""Rows that are packed, prefetched.

A copy for packing reads short rows that lie far apart. Hardware follows a walk through memory only
inside a page, so each row would be waited for; here each one asks for the row some way on.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from tvm import ir, sym, tirx

from ansor.program.accesses import path_to, position_of, read_indices, step_of, zero_of
from ansor.program.fetch import LINE_BYTES, fetch, with_fetching
from ansor.program.rewrite import (
    collect,
    replace_loops,
    sequence,
    substitute,
    with_loop_body,
)

_AHEAD_BYTES = 8192  # between a row and the one that it asks for; of 1 to 8 KB the best, on Zen 5
_FAR_BYTES = 1024  # from one row to the next: nearer ones are found by hardware
_LEAST_BYTES = 32  # of a row


@dataclass(frozen=True)
class _Rows:
    """What a copy reads.

    Attributes:
        loop: goes from row to row.
        first: number of a row's first element in `buffer`.
        elements: of a row, without a gap.
    """

    loop: Any
    buffer: Any
    first: Any
    elements: int


def prefetch_rows(func: tirx.PrimFunc, copies: Collection[str]) -> tirx.PrimFunc:
    """`func` with fetches of the rows that copies read; of others it stays as it is.

    Args:
        copies: names of their blocks.
    """
    body = func.body
    for name in copies:
        found = path_to(body, name)
        rows = None if found is None else _rows(*found)
        if rows is not None:
            body = _with_fetches(body, rows)
    return with_fetching(func, body)


def _rows(loops: tuple[Any, ...], realize: Any) -> _Rows | None:
    """What a copy reads, if that is in rows which lie far apart."""
    stored = realize.block.body
    loads = collect(stored, ir.TensorLoad)
    if len(loads) != 1 or not isinstance(stored, tirx.BufferStore):
        return None
    buffer = loads[0].source
    size = buffer.dtype.itemsize
    live = [loop for loop in loops if int(loop.extent) > 1]
    position = position_of(read_indices(realize, buffer, loops), buffer)
    run = 1
    for number in reversed(range(len(live))):
        loop, step = live[number], step_of(position, live, number)
        if step == run:
            run *= int(loop.extent)
            continue
        if step is None or loop.kind != tirx.ForKind.SERIAL or run * size < _LEAST_BYTES:
            return None
        if step * size < _FAR_BYTES or int(loop.extent) * run * size <= _AHEAD_BYTES:
            return None
        inner = {x.loop_var: zero_of(x) for x in live[number + 1 :]}
        first = sym.Analyzer().simplify(substitute(position, inner))
        return _Rows(loop, buffer, first, run)
    return None


def _with_fetches(body: Any, rows: _Rows) -> Any:
    """Each row asks for all lines of a later one; the last ones for the last."""
    size = rows.buffer.dtype.itemsize
    ahead = -(-_AHEAD_BYTES // (rows.elements * size))
    variable, last = rows.loop.loop_var, int(rows.loop.extent) - 1
    later = tirx.min(variable + ahead, last)
    first = substitute(rows.first, {variable: later})
    lines = range(0, rows.elements, LINE_BYTES // size)

    def made(loop: Any, _: int) -> Any:
        fetches = [fetch(rows.buffer, first + element) for element in lines]
        return with_loop_body(loop, sequence(*fetches, loop.body))

    return replace_loops(body, {variable: 0}, made)
