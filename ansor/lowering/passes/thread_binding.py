"""Binds loops to the threads of a GPU, after all else is scheduled.

TensorIR's schedule binds only loops that are provably a bijection. If a guard cuts off the last
block, it cannot prove this for stages computed inside. No program depends on the proof, because
each iteration writes elements of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import tirx

from ansor.lowering.statements import replace_loops

BLOCK, VIRTUAL, WARPS, THREAD = "blockIdx.x", "vthread.x", "threadIdx.y", "threadIdx.x"


def deal_out(func: tirx.PrimFunc, loops: Mapping[Any, int]) -> tirx.PrimFunc:
    """`func` with the loops of the given variables split into blocks of the given sizes."""
    return func.with_body(replace_loops(func.body, loops, _dealt)) if loops else func


def _dealt(loop: Any, size: int) -> Any:
    """One iteration of the loop for each thread of each block, except beyond its end."""
    extent, dtype = int(loop.extent), str(loop.loop_var.ty.dtype)
    block, thread = tirx.Var("block", dtype), tirx.Var("thread", dtype)
    number = block * tirx.const(size, dtype) + thread
    one = tirx.const(1, dtype)
    body = tirx.For(loop.loop_var, number, one, tirx.ForKind.SERIAL, loop.body)
    if extent % size:
        body = tirx.IfThenElse(number < extent, body, None)
    body = _bound(thread, size, THREAD, body, {})
    return _bound(block, -(-extent // size), BLOCK, body, loop.annotations)


def _bound(variable: Any, extent: int, thread: str, body: Any, annotations: Any) -> Any:
    dtype = str(variable.ty.dtype)
    index = tirx.IterVar(None, tirx.Var("", dtype), tirx.IterVar.ThreadIndex, thread)
    first, count = tirx.const(0, dtype), tirx.const(extent, dtype)
    kind = tirx.ForKind.THREAD_BINDING
    return tirx.For(variable, first, count, kind, body, index, annotations)
