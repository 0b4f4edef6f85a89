"""The definition as it was written, in an order of loops that a compiler can use.

What tuned programs are checked against: no sketch, no tile, no approximation. Every element is
still summed up in the order of the definition, so the result is the same to the last bit.
"""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import s_tir, tirx
from tvm.s_tir import SBlockRealize

from ansor.dag.from_tir import REDUCE, block_names
from ansor.program.tail import with_body

_SAMPLED = "sampled"  # annotation of a loop: how many of its iterations are run


def reference_of(func: tirx.PrimFunc, most: float = math.inf) -> tirx.PrimFunc:
    """`func` with the last spatial axis of each block innermost and the first ones parallel.

    As naive loops stand, a convolution over gigaflops takes half a minute.

    Args:
        most: iterations of a block that makes an output; of a longer one only as many are run,
            spread over the output, whose other elements are left as they are.
    """
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    sch = s_tir.Schedule(module, error_render_level="none")
    outputs = _outputs(sch, block_names(func))
    for name in block_names(func):
        _order(sch, sch.get_sblock(name), most if name in outputs else math.inf)
    ordered = sch.mod["main"]
    return ordered.with_body(_sampled(ordered.body)) if most < math.inf else ordered


def _outputs(sch: Any, names: list[str]) -> set[str]:
    """Blocks that write nothing but results that no block reads."""
    blocks = {name: sch.get(sch.get_sblock(name)) for name in names}
    read = [region.source for block in blocks.values() for region in block.reads]
    results = [p for p in sch.mod["main"].params if not any(p.same_as(r) for r in read)]
    return {
        name
        for name, block in blocks.items()
        if all(any(write.source.same_as(r) for r in results) for write in block.writes)
    }


def _order(sch: Any, block: Any, most: float) -> None:
    loops = sch.get_loops(block)
    kinds = [int(axis.iter_type) for axis in sch.get(block).iter_vars]
    reduce = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == REDUCE]
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind != REDUCE]
    if len(spatial) > 1:
        iterations = math.prod(int(sch.get(loop).extent) for loop in loops)
        sch.reorder(*spatial[:-1], *reduce, spatial[-1])
        outer = sch.fuse(*spatial[:-1], preserve_unit_iters=True)
        sch.parallel(outer)
        if iterations > most:
            extent = int(sch.get(outer).extent)
            sch.annotate(outer, _SAMPLED, max(1, int(extent * most / iterations)))
    if reduce:
        sch.decompose_reduction(block, reduce[0])


def _sampled(stmt: Any) -> Any:
    """The statement with loops cut down to what is run of them."""
    if isinstance(stmt, tirx.SeqStmt):
        return tirx.SeqStmt([_sampled(child) for child in stmt.seq])
    if isinstance(stmt, SBlockRealize):
        body = _sampled(stmt.block.body)
        return SBlockRealize(stmt.iter_values, stmt.predicate, with_body(stmt.block, body))
    if isinstance(stmt, tirx.For) and _SAMPLED in stmt.annotations:
        return _spread(stmt, int(stmt.annotations[_SAMPLED]))
    return stmt


def _spread(loop: Any, count: int) -> Any:
    """`count` iterations of a loop: of each of as many equal parts one, at another place in each;
    and the very last."""
    whole, number = int(loop.extent), tirx.Var("number", loop.loop_var.ty)
    part = whole // count
    place = number * part + number % part
    value = tirx.Select(number == count - 1, tirx.const(whole - 1, place.ty.dtype), place)
    body = tirx.SeqStmt([tirx.Bind(loop.loop_var, value), loop.body])
    return tirx.For(number, loop.min, tirx.const(count, place.ty.dtype), loop.kind, body)
