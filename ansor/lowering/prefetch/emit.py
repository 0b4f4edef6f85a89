"""Statements that prefetch lines of memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ansor.config import PREFETCH
from ansor.lowering.accesses import zero_of
from ansor.lowering.statements import replace_loops, sequence, substitute_variables, with_llvm

_FETCH = "ansor_fetch"
_FETCH_TO_WRITE = "ansor_fetch_to_write"
# Fetches into all caches. LLVM assumes that any other form of its prefetch may read the running
# sums, and stores the sums before it.
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
class Lines:
    """Cache lines to prefetch.

    Attributes:
        count: number of lines.
        ask: returns the statement that prefetches a line, by its number.
        per_row: number of contiguous lines, a divisor of `count`.
        share: part of a loop's iterations over which the prefetches are spread.
    """

    count: int
    ask: Callable[[Any], Any]
    per_row: int = 1
    share: float = 1.0

    def all(self, dtype: str) -> Any:
        """A loop, row by row, that prefetches all lines; its variable has the dtype."""
        row, rows = tirx.Var("row", dtype), tirx.const(self.count // self.per_row, dtype)
        asked = [self.ask(row * self.per_row + line) for line in range(self.per_row)]
        zero = tirx.const(0, dtype)
        return tirx.For(row, zero, rows, tirx.ForKind.SERIAL, sequence(*asked))

    def together(self, turns: int) -> int:
        """Number of lines that each of `turns` turns of a loop prefetches."""
        return -(-self.count // max(1, math.floor(turns * self.share)))

    def some(self, turn: Any, together: int) -> list[Any]:
        """Statements that prefetch the lines of a turn; beyond the last line, they repeat it."""
        numbers = (turn * together + line for line in range(together))
        return [self.ask(tirx.min(number, self.count - 1)) for number in numbers]


def prefetch_line(buffer: Any, element: Any, to_write: bool = False) -> Any:
    """The statement that prefetches the line of an element of a buffer, by its number."""
    zeros = [0] * (len(buffer.shape) - 1)  # the last index may exceed its dimension
    address = tirx.address_of(tirx.BufferLoad(buffer, [*zeros, element]))
    name = _FETCH_TO_WRITE if to_write else _FETCH
    return tirx.Evaluate(tirx.call_extern("void", name, address))


def with_fetching(body: Any) -> Any:
    """A function's body with the definition of the function that `prefetch_line` calls."""
    return with_llvm(body, _FETCH_IR)


def turn_of(loop: Any) -> int | None:
    """Number of a loop's iterations between two groups of prefetches; None if it is too short."""
    extent = int(loop.extent)
    return next((n for n in range(PREFETCH.least_turn, extent // 2 + 1) if extent % n == 0), None)


def turn_for(loop: Any, wanted: Sequence[Lines]) -> int | None:
    """`turn_of` for prefetches of some lines; None also if a group would have too many."""
    apart = turn_of(loop)
    if apart is None:
        return None
    most = max(lines.together(int(loop.extent) // apart) for lines in wanted)
    return apart if most <= PREFETCH.most_lines else None


def spread_prefetches(body: Any, loops: Sequence[Any], apart: int, wanted: Sequence[Lines]) -> Any:
    """`body` with prefetches spread over the iterations of nested loops.

    A core tracks a few dozen missing lines. Many prefetches at once would delay reads from its own
    caches.

    Args:
        loops: serial loops of more than one iteration, outermost first; the last one prefetches.
        apart: iterations of the last loop between two groups, a divisor of its extent.
        wanted: the lines; a group has an equal part of each.
    """
    turns = math.prod(int(loop.extent) for loop in loops) // apart

    def made(loop: Any, _: int) -> Any:
        variable = loop.loop_var
        dtype = str(variable.ty.dtype)
        outer, inner = (tirx.Var(f"{variable.name}_{level}", dtype) for level in "01")
        turn = tirx.const(0, dtype)
        for around in loops[:-1]:
            turn = turn * int(around.extent) + around.loop_var
        turn = turn * (int(loop.extent) // apart) + outer
        asked = [x for lines in wanted for x in lines.some(turn, lines.together(turns))]
        again = substitute_variables(loop.body, {variable: outer * apart + inner})
        inside = tirx.For(inner, zero_of(loop), tirx.const(apart, dtype), loop.kind, again)
        count = tirx.const(int(loop.extent) // apart, dtype)
        return tirx.For(
            *(outer, zero_of(loop), count, loop.kind, tirx.SeqStmt([*asked, inside])),
            annotations=loop.annotations,
        )

    return replace_loops(body, {loops[-1].loop_var: 0}, made)
