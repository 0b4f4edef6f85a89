"""What a fused consumer reads and writes, prefetched.

After the reduction of a tile its consumer adds, say, a shortcut and stores the results. Both lie in
short rows that no hardware expects, and the reduction's multiply-adds fill the window in which the
core looks ahead: it would wait for every tile. Here the lines are asked for before the reduction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import sym, tirx

from ansor.program.accesses import accesses, path_to, position_of, step_of, zero_of
from ansor.program.prefetch import LINE_BYTES, fetch, with_fetching
from ansor.program.rewrite import replace_loops, sequence, substitute, with_loop_body

_MOST_BYTES = 16384  # of a tile, per operand: it stays in the first cache beside all else


@dataclass(frozen=True)
class _Rows:
    """An operand's share of a tile.

    Attributes:
        buffer: that lies outside the function.
        first: number of the tile's first element.
        elements: of a row, without a gap.
        loops: those from row to row, and elements that each goes on by.
        is_write: whether it is written.
    """

    buffer: Any
    first: Any
    elements: int
    loops: tuple[tuple[Any, int], ...]
    is_write: bool


def prefetch_tiles(func: tirx.PrimFunc, consumers: Mapping[str, Sequence[Any]]) -> tirx.PrimFunc:
    """`func` with fetches of the tiles that consumers read and write.

    Args:
        consumers: names of their blocks; variables of the loops inside the tile.
    """
    body = func.body
    for name, own in consumers.items():
        found = path_to(body, name)
        if found is None:
            continue
        loops, realize = found
        live = [loop for loop in loops if int(loop.extent) > 1]
        inside = [any(x.loop_var.same_as(v) for v in own) for x in live]
        outer = [loop for loop, is_own in zip(live, inside, strict=True) if not is_own]
        rows = list(_operands(func, live, inside, realize, loops))
        if outer and rows:
            body = _with_fetches(body, outer[-1], rows)
    return with_fetching(func, body)


def _operands(
    func: tirx.PrimFunc,
    live: Sequence[Any],
    inside: Sequence[bool],
    realize: Any,
    loops: Sequence[Any],
) -> Iterator[_Rows]:
    """What a consumer reads and writes element by element, outside the function."""
    elements = math.prod(int(x.extent) for x, own in zip(live, inside, strict=True) if own)
    for buffer, indices, is_write in accesses(realize, loops):
        if not any(buffer.same_as(param) for param in func.params):
            continue
        rows = _rows(buffer, position_of(indices, buffer), live, inside, is_write)
        if rows is None:
            continue
        count = rows.elements * math.prod(int(loop.extent) for loop, _ in rows.loops)
        if count == elements and count * buffer.dtype.itemsize <= _MOST_BYTES:
            yield rows


def _rows(
    buffer: Any, position: Any, live: Sequence[Any], inside: Sequence[bool], is_write: bool
) -> _Rows | None:
    run = 1
    between: list[tuple[Any, int]] = []
    for number in reversed(range(len(live))):
        if not inside[number]:
            continue
        step, extent = step_of(position, live, number), int(live[number].extent)
        if step is None:
            return None
        if step == run and not between:
            run *= extent
        elif step != 0:
            between.append((live[number], step))
    own = {x.loop_var: zero_of(x) for x, is_own in zip(live, inside, strict=True) if is_own}
    first = sym.Analyzer().simplify(substitute(position, own))
    return _Rows(buffer, first, run, tuple(reversed(between)), is_write)


def _with_fetches(body: Any, around: Any, operands: Sequence[_Rows]) -> Any:
    """Asks for all lines at the start of each iteration of a loop."""

    def made(loop: Any, _: int) -> Any:
        return with_loop_body(loop, sequence(*map(_fetches, operands), loop.body))

    return replace_loops(body, {around.loop_var: 0}, made)


def _fetches(rows: _Rows) -> Any:
    """A loop nest over the rows."""
    element, variables = rows.first, []
    for loop, step in rows.loops:
        variable = tirx.Var(f"{loop.loop_var.name}_row", str(loop.loop_var.ty.dtype))
        variables.append((variable, loop))
        element = element + variable * step
    size = rows.buffer.dtype.itemsize
    lines = range(0, rows.elements, LINE_BYTES // size)
    stmt = sequence(*(fetch(rows.buffer, element + line, rows.is_write) for line in lines))
    for variable, loop in reversed(variables):
        stmt = tirx.For(variable, zero_of(loop), loop.extent, tirx.ForKind.SERIAL, stmt)
    return stmt
