"""The definition as it was written, in an order of loops that a compiler can use.

What tuned programs are checked against: no sketch, no tile, no approximation. Every element is
still summed up in the order of the definition, so the result is the same to the last bit; and with
`in_float64` it is what the definition means, but for rounding that no program of it can see.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import s_tir, tirx
from tvm.s_tir import SBlockRealize

from ansor.dag.from_tir import REDUCE, block_names
from ansor.program.rewrite import with_body

_REINTERPRET = '"tirx.reinterpret"'  # of a number's bits: they are those of its dtype
_SAMPLED = "sampled"  # annotation of a loop: how many of its iterations are run


@dataclass(frozen=True, eq=False)
class Reference:
    """A definition in an order that compilers can use.

    Attributes:
        func: with the parameters of the definition.
        partial: positions of the parameters of which only some elements are computed.
    """

    func: tirx.PrimFunc
    partial: frozenset[int] = frozenset()


def reference_of(func: tirx.PrimFunc, most: float = math.inf) -> Reference:
    """`func` with the last spatial axis of each block innermost and the first ones parallel.

    As naive loops stand, a convolution over gigaflops takes half a minute.

    Args:
        most: iterations of a block that makes an output; of a longer one only as many are run,
            spread over the output, whose other elements are left as they are.
    """
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    sch = s_tir.Schedule(module, error_render_level="none")
    outputs = _outputs(sch, block_names(func))
    partial: set[int] = set()
    for name in block_names(func):
        written = outputs.get(name, [])
        if _order(sch, sch.get_sblock(name), most if written else math.inf):
            partial.update(written)
    ordered = sch.mod["main"]
    return Reference(ordered.with_body(_sampled(ordered.body)), frozenset(partial))


def in_float64(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The same definition with float64 wherever it says float32, parameters included.

    One that looks at the bits of numbers stays as it is.
    """
    text = str(tvm.ir.save_json(func))
    if _REINTERPRET in text:
        return func
    return tvm.ir.load_json(text.replace('"float32"', '"float64"'))


def _outputs(sch: Any, names: list[str]) -> dict[str, list[int]]:
    """Positions of the results of each block that writes nothing but results no block reads."""
    blocks = {name: sch.get(sch.get_sblock(name)) for name in names}
    read = [region.source for block in blocks.values() for region in block.reads]
    params = enumerate(sch.mod["main"].params)
    results = [(i, p) for i, p in params if not any(p.same_as(r) for r in read)]
    found = {}
    for name, block in blocks.items():
        written = [i for write in block.writes for i, p in results if write.source.same_as(p)]
        if len(written) == len(block.writes):
            found[name] = written
    return found


def _order(sch: Any, block: Any, most: float) -> bool:
    """Orders the loops of a block; returns whether only some of its iterations are to be run."""
    loops = sch.get_loops(block)
    kinds = [int(axis.iter_type) for axis in sch.get(block).iter_vars]
    reduce = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == REDUCE]
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind != REDUCE]
    iterations = math.prod(int(sch.get(loop).extent) for loop in loops)
    sampled = len(spatial) > 1 and iterations > most
    if len(spatial) > 1:
        sch.reorder(*spatial[:-1], *reduce, spatial[-1])
        outer = sch.fuse(*spatial[:-1], preserve_unit_iters=True)
        sch.parallel(outer)
        if sampled:
            extent = int(sch.get(outer).extent)
            sch.annotate(outer, _SAMPLED, max(1, int(extent * most / iterations)))
    if reduce:
        sch.decompose_reduction(block, reduce[0])
    return sampled


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
