"""The reference for checks: the definition, with loops in an order that a compiler can use.

The reference has no sketch, no tile and no approximation. Every element is summed up in the order
of the definition, so the result is the same to the last bit. With `in_float64`, it is the result of
the definition with negligible rounding errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
from tvm import s_tir, tirx
from tvm.s_tir import SBlockRealize

from ansor.dag.from_tir.read import REDUCE, block_names
from ansor.lowering.statements import with_body

_REINTERPRET = '"tirx.reinterpret"'  # of a number's bits, which depend on its dtype
_SAMPLED = "sampled"  # annotation of a loop: number of its iterations that are run


@dataclass(frozen=True, eq=False)
class Reference:
    """A definition in an order that compilers can use.

    Attributes:
        func: with the parameters of the definition.
        rows: of parameters with only some computed elements, by position: the numbers of the
            computed rows. Elements of a row differ in their last index alone.
    """

    func: tirx.PrimFunc
    rows: Mapping[int, npt.NDArray[np.int64]] = field(default_factory=dict)


def reference_of(func: tirx.PrimFunc, most: float = math.inf) -> Reference:
    """`func` with the last spatial axis of each block innermost and the first ones parallel.

    With naive loops, a convolution of some gigaflops takes half a minute.

    Args:
        most: largest number of iterations of a block that writes an output. A longer block
            computes only a sample of the output, and does not write its other elements. This
            applies if the spatial axes of the block are the output's dimensions, in order.
    """
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    sch = s_tir.Schedule(module, error_render_level="none")
    outputs = _outputs(sch, block_names(func))
    rows: dict[int, npt.NDArray[np.int64]] = {}
    for name in block_names(func):
        block, written = sch.get_sblock(name), outputs.get(name, [])
        made = _order(sch, block, most if written and _in_place(sch.get(block)) else math.inf)
        if made is not None:
            rows |= dict.fromkeys(written, made)
    ordered = sch.mod["main"]
    return Reference(ordered.with_body(_sampled(ordered.body)), rows)


def in_float64(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The same definition with float64 instead of float32, parameters included.

    A definition that reads the bits of numbers does not change.
    """
    text = str(tvm.ir.save_json(func))
    if _REINTERPRET in text:
        return func
    return tvm.ir.load_json(text.replace('"float32"', '"float64"'))


def _outputs(sch: Any, names: list[str]) -> dict[str, list[int]]:
    """Positions of the results of each block that only writes results that no block reads."""
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


def _in_place(block: Any) -> bool:
    """Whether the spatial axes of a block, in order, are the indices of its written element."""
    spatial = [axis.var for axis in block.iter_vars if int(axis.iter_type) != REDUCE]
    indices = [[part.min for part in write.region] for write in block.writes]
    return all(
        len(own) == len(spatial) and all(i.same_as(v) for i, v in zip(own, spatial, strict=True))
        for own in indices
    )


def _order(sch: Any, block: Any, most: float) -> npt.NDArray[np.int64] | None:
    """Orders the loops of a block; returns which iterations of its outer loop are to be run, if not
    all are."""
    loops = sch.get_loops(block)
    kinds = [int(axis.iter_type) for axis in sch.get(block).iter_vars]
    if len(loops) != len(kinds):  # a definition without dimensions has an axis without a loop
        return None
    reduce = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == REDUCE]
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind != REDUCE]
    iterations = math.prod(int(sch.get(loop).extent) for loop in loops)
    made = None
    if len(spatial) > 1:
        sch.reorder(*spatial[:-1], *reduce, spatial[-1])
        outer = sch.fuse(*spatial[:-1], preserve_unit_iters=True)
        sch.parallel(outer)
        if iterations > most:
            extent = int(sch.get(outer).extent)
            count = max(1, int(extent * most / iterations))
            sch.annotate(outer, _SAMPLED, count)
            made = _places(extent, count)
    if reduce:
        sch.decompose_reduction(block, reduce[0])
    return made


def _places(whole: int, count: int) -> npt.NDArray[np.int64]:
    """The values that `_spread` gives a loop of `whole` iterations."""
    numbers, part = np.arange(count), whole // count
    places = numbers * part + numbers % part
    places[-1] = whole - 1
    return places


def _sampled(stmt: Any) -> Any:
    """The statement with loops reduced to their sampled iterations."""
    if isinstance(stmt, tirx.SeqStmt):
        return tirx.SeqStmt([_sampled(child) for child in stmt.seq])
    if isinstance(stmt, SBlockRealize):
        body = _sampled(stmt.block.body)
        return SBlockRealize(stmt.iter_values, stmt.predicate, with_body(stmt.block, body))
    if isinstance(stmt, tirx.For) and _SAMPLED in stmt.annotations:
        return _spread(stmt, int(stmt.annotations[_SAMPLED]))
    return stmt


def _spread(loop: Any, count: int) -> Any:
    """`count` iterations of a loop: one from each of as many equal parts, at varying places, and
    the last iteration."""
    whole, number = int(loop.extent), tirx.Var("number", loop.loop_var.ty)
    part = whole // count
    place = number * part + number % part
    value = tirx.Select(number == count - 1, tirx.const(whole - 1, place.ty.dtype), place)
    body = tirx.SeqStmt([tirx.Bind(loop.loop_var, value), loop.body])
    return tirx.For(number, loop.min, tirx.const(count, place.ty.dtype), loop.kind, body)
