"""Prefetches of the data that a fused consumer reads and writes.

After the reduction of a tile, its consumer adds a shortcut, for example, and stores the results.
Both arrays have short rows, which the hardware does not predict. The multiply-adds of the reduction
fill the out-of-order window of the core, so that it would wait for every tile. Here the lines are
prefetched before the reduction. Lines of a large array delay other lines that the reduction needs.
A long reduction therefore prefetches them in small groups while it runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ansor.config import PREFETCH
from ansor.lowering.accesses import accesses, is_reducing, path_to
from ansor.lowering.prefetch.emit import spread_prefetches, turn_for
from ansor.lowering.prefetch.footprint import Slab, buffer_bytes, slab_of
from ansor.lowering.statements import replace_loops, sequence, with_loop_body
from ansor.program.steps import PrefetchConsumer


@dataclass(frozen=True)
class TileConsumer:
    """A stage that is computed for each tile of another stage, the host.

    Attributes:
        host: name of the host's block.
        variables: of the loops inside the tile.
        step: sizes of the prefetches.
    """

    host: str
    variables: Sequence[Any]
    step: PrefetchConsumer


def prefetch_tiles(body: Any, consumers: Mapping[str, TileConsumer], params: Sequence[Any]) -> Any:
    """`body` with fetches of the tiles that consumers read and write.

    Args:
        consumers: by the names of their blocks.
        params: of the function; other arrays are small, or have just been written.
    """
    for name, consumer in consumers.items():
        found = path_to(body, name)
        if found is None:
            continue
        loops, realize = found
        live = [loop for loop in loops if int(loop.extent) > 1]
        inside = [x for x in live if any(x.loop_var.same_as(v) for v in consumer.variables)]
        outer = [x for x in live if not any(x is loop for loop in inside)]
        slabs = [
            slab
            for slab in _slabs(params, live, inside, realize, loops)
            if slab.size_bytes <= consumer.step.tile_bytes
        ]
        if outer and slabs:
            body = _with_fetches(body, outer[-1], consumer, slabs)
    return body


def _slabs(
    params: Sequence[Any],
    live: Sequence[Any],
    inside: Sequence[Any],
    realize: Any,
    loops: Sequence[Any],
) -> Iterator[Slab]:
    """Slabs of the function's parameters that a consumer reads and writes element by element."""
    elements = math.prod(int(loop.extent) for loop in inside)
    for buffer, indices, is_write in accesses(realize, loops):
        if any(buffer.same_as(param) for param in params):
            slab = slab_of(buffer, indices, is_write, live, inside)
            if slab is not None and slab.count == elements:
                yield slab


def _with_fetches(body: Any, around: Any, consumer: TileConsumer, slabs: Sequence[Slab]) -> Any:
    """Prefetches all lines in each iteration of a loop: at its start, or spread over the iterations
    of the host's outermost loop inside."""
    step = consumer.step
    wanted = [slab.lines(PREFETCH.reduction_share, step.line_bytes) for slab in slabs]
    if any(buffer_bytes(slab.buffer) >= step.far_bytes for slab in slabs):
        inside, steps = _host_loops(body, around, consumer.host)
        apart = turn_for(inside[0], wanted) if steps >= PREFETCH.long_reduction else None
        if apart is not None:
            return spread_prefetches(body, inside[:1], apart, wanted)

    def made(loop: Any, _: int) -> Any:
        asked = (lines.all(str(loop.loop_var.ty.dtype)) for lines in wanted)
        return with_loop_body(loop, sequence(*asked, loop.body))

    return replace_loops(body, {around.loop_var: 0}, made)


def _host_loops(body: Any, around: Any, host: str) -> tuple[list[Any], int]:
    """The serial loops around a block inside another loop, and the number of the block's reduction
    steps there."""
    found = path_to(body, host)
    if found is None:
        return [], 0
    loops, realize = iter(found[0]), found[1]
    any(loop.loop_var.same_as(around.loop_var) for loop in loops)  # the following loops are inside
    serial = [x for x in loops if x.kind == tirx.ForKind.SERIAL and int(x.extent) > 1]
    return serial, math.prod(int(loop.extent) for loop in serial if is_reducing(loop, realize))
