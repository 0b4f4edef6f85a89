"""Prefetches of an operand's rows, one tile ahead.

A reduction that reads an operand tile by tile reads a few rows at once, each in its own pages. The
hardware prefetches a row only inside a page. The multiply-adds of the reduction fill the
out-of-order window of the core, so that it would wait at the beginning of each tile. Here each tile
prefetches the rows of the next tile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ansor.lowering.accesses import accesses, is_reducing, path_to
from ansor.lowering.prefetch.emit import spread_prefetches, turn_for, turn_of
from ansor.lowering.prefetch.footprint import Slab, slab_of
from ansor.lowering.statements import collect, substitute_variables
from ansor.program.steps import PrefetchOperands


@dataclass(frozen=True)
class FarOperands:
    """Large parameters that a block reduces tile by tile.

    Attributes:
        params: the parameters.
        step: sizes of the prefetches.
    """

    params: Sequence[Any]
    step: PrefetchOperands


def prefetch_ahead(body: Any, far: Mapping[str, FarOperands]) -> Any:
    """`body` with prefetches of the rows that the next tile reads.

    Args:
        far: operands of blocks by name.
    """
    for name, operands in far.items():
        found = path_to(body, name)
        if found is not None:
            body = _with_fetches(body, *found, operands)
    return body


def _with_fetches(body: Any, loops: tuple[Any, ...], realize: Any, far: FarOperands) -> Any:
    live = [loop for loop in loops if int(loop.extent) > 1]
    number = next((i for i, loop in enumerate(live) if is_reducing(loop, realize)), 0)
    steps = live[max(0, number - 1) : number + 1]  # from tile to tile, and inside a tile
    if len(steps) < 2 or any(loop.kind != tirx.ForKind.SERIAL for loop in steps):
        return body
    if turn_of(live[number]) is None:
        return body
    slabs = _next_slabs(far, live, number, realize, loops)
    wanted = [slab.lines(1.0, far.step.line_bytes) for slab in slabs]
    apart = turn_for(live[number], wanted) if wanted else None
    return body if apart is None else spread_prefetches(body, [live[number]], apart, wanted)


def _next_slabs(
    far: FarOperands, live: list[Any], number: int, realize: Any, loops: tuple[Any, ...]
) -> Iterator[Slab]:
    """Slabs of the parameters that the reduction reads in the next step of the loop around it.

    The loop must traverse more memory than the caches hold until its next traversal."""
    around, inside = live[number - 1], live[number:]
    variable = around.loop_var
    later = {variable: tirx.min(variable + 1, int(around.extent) - 1)}
    seen: list[Any] = []
    for buffer, indices, is_write in accesses(realize, loops):
        if is_write or _is_among(buffer, seen) or not _is_among(buffer, far.params):
            continue
        seen.append(buffer)
        moving = [x for index in indices for x in collect(index, tirx.Var)]
        extents = (int(loop.extent) for loop in inside if _is_among(loop.loop_var, moving))
        size = math.prod(extents) * buffer.dtype.itemsize
        is_far_way = size * int(around.extent) >= far.step.far_bytes
        if not (_is_among(variable, moving) and size <= far.step.tile_bytes and is_far_way):
            continue
        slab = slab_of(
            buffer, [substitute_variables(i, later) for i in indices], False, live, inside
        )
        if slab is not None:
            yield slab


def _is_among(node: Any, nodes: Sequence[Any]) -> bool:
    return any(node.same_as(other) for other in nodes)
