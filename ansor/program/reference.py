"""The definition as it was written, in an order of loops that a compiler can use.

What tuned programs are checked against: no sketch, no tile, no approximation. Every element is
still summed up in the order of the definition, so the result is the same to the last bit.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import s_tir, tirx

from ansor.dag.from_tir import REDUCE, block_names


def reference_of(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """`func` with the last spatial axis of each block innermost and the first one parallel.

    As naive loops stand, a convolution over gigaflops takes half a minute.
    """
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    sch = s_tir.Schedule(module, error_render_level="none")
    for name in block_names(func):
        _order(sch, sch.get_sblock(name))
    return sch.mod["main"]


def _order(sch: Any, block: Any) -> None:
    loops = sch.get_loops(block)
    kinds = [int(axis.iter_type) for axis in sch.get(block).iter_vars]
    reduce = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == REDUCE]
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind != REDUCE]
    if len(spatial) > 1:
        sch.reorder(*spatial[:-1], *reduce, spatial[-1])
        outer = sch.fuse(*spatial[:-1], preserve_unit_iters=True)
        sch.parallel(outer)
    if reduce:
        sch.decompose_reduction(block, reduce[0])
