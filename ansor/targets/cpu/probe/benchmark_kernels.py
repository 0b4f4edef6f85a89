"""The kernels of the micro-benchmark, scheduled by hand.

They are needed before any search, so that they are not tuned.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import s_tir, te, tirx

ACCUMULATORS = 12  # vector registers: hide a latency of 4 cycles at 2 FMAs per cycle, and fit in 16
_ROWS = 64  # vectors that feed the FMAs, in L1
_HALVED = te.comm_reducer(
    lambda x, y: x * tirx.const(0.5, "float32") + y, lambda t: tirx.const(0, t), name="fma"
)


def fma(parts: int, lanes: int, rounds: int) -> tvm.IRModule:
    """``C[part, i, lane] = C / 2 + B[k, lane]`` over `rounds` passes of B `[64, lanes]` float32.

    The accumulators stay in registers; each step loads one vector for 12 multiply-adds.
    """
    source = te.placeholder((_ROWS, lanes), name="B")
    r, k = te.reduce_axis((0, rounds), "r"), te.reduce_axis((0, _ROWS), "k")
    shape = (parts, ACCUMULATORS, lanes)
    out = te.compute(shape, lambda p, i, j: _HALVED(source[k, j], axis=[r, k]), name="C")
    return _in_registers(te.create_prim_func([source, out]), parts)


def fma_flops(parts: int, lanes: int, rounds: int) -> int:
    """Floating-point operations of one run of `fma`, and of `product`, which has one part."""
    return 2 * parts * ACCUMULATORS * lanes * _ROWS * rounds


def product(lanes: int, rounds: int) -> tvm.IRModule:
    """``C[i, lane] = sum of A[k, i] * B[k, lane]`` over `rounds` passes of A `[64, 12]` and B
    `[64, lanes]` float32, on one thread.

    Each of the 12 multiply-adds of a step broadcasts one element of A to a register.
    """
    left = te.placeholder((_ROWS, ACCUMULATORS), name="A")
    right = te.placeholder((_ROWS, lanes), name="B")
    r, k = te.reduce_axis((0, rounds), "r"), te.reduce_axis((0, _ROWS), "k")
    shape = (1, ACCUMULATORS, lanes)
    out = te.compute(shape, lambda p, i, j: te.sum(left[k, i] * right[k, j], axis=[r, k]), name="C")
    return _in_registers(te.create_prim_func([left, right, out]), 1)


def chains(runs: int, length: int, lanes: int) -> tvm.IRModule:
    """``C[r, lane] = C / 2 + B[r + k, lane]``, k up to `length`, of float32, on one thread.

    A run of dependent multiply-adds is followed by the next run, which does not depend on it.
    """
    source = te.placeholder((runs + length, lanes), name="B")
    k = te.reduce_axis((0, length), "k")
    out = te.compute((runs, lanes), lambda r, j: _HALVED(source[r + k, j], axis=[k]), name="C")
    sch: Any = s_tir.Schedule(tvm.IRModule({"main": te.create_prim_func([source, out])}))
    block = sch.get_sblock("C")
    _, lane, step = sch.get_loops(block)
    sch.reorder(step, lane)
    sch.vectorize(lane)
    sch.unroll(step)
    sch.decompose_reduction(block, step)
    return sch.mod


def stream(parts: int, lanes: int, rows: int, rounds: int) -> tvm.IRModule:
    """``C[part, i, lane] = sum of A[part, k, i, lane]``: reads `rows` x 12 vectors, `rounds` times.

    One addition per loaded vector, so that the loads determine the time.
    """
    source = te.placeholder((parts, rows, ACCUMULATORS, lanes), name="A")
    r, k = te.reduce_axis((0, rounds), "r"), te.reduce_axis((0, rows), "k")
    shape = (parts, ACCUMULATORS, lanes)
    out = te.compute(shape, lambda p, i, j: te.sum(source[p, k, i, j], axis=[r, k]), name="C")
    return _in_registers(te.create_prim_func([source, out]), parts)


def rewrite(parts: int) -> tvm.IRModule:
    """``C[part, i] = A[part, i] + B[0]`` of int32 and any length, part by part on the threads.

    With C = A and B = 0 it rewrites memory without a change, which no compiler can know.
    """
    size = tirx.Var("n", "int64")
    source = te.placeholder((parts, size), dtype="int32", name="A")
    added = te.placeholder((1,), dtype="int32", name="B")
    out = te.compute((parts, size), lambda p, i: source[p, i] + added[0], name="C")
    sch = s_tir.Schedule(tvm.IRModule({"main": te.create_prim_func([source, added, out])}))
    sch.parallel(sch.get_loops(sch.get_sblock("C"))[0])
    return sch.mod


def touch(parts: int, parallel: bool) -> tvm.IRModule:
    """``C[part] = A[part] + 1``: a parallel loop with almost no work."""
    source = te.placeholder((parts,), name="A")
    out = te.compute((parts,), lambda p: source[p] + tirx.const(1, "float32"), name="C")
    sch = s_tir.Schedule(tvm.IRModule({"main": te.create_prim_func([source, out])}))
    if parallel:
        sch.parallel(sch.get_loops(sch.get_sblock("C"))[0])
    return sch.mod


def _in_registers(func: tirx.PrimFunc, parts: int) -> tvm.IRModule:
    """Parallel over parts, reductions outside, the accumulators unrolled and vectorised."""
    sch: Any = s_tir.Schedule(tvm.IRModule({"main": func}))
    block = sch.get_sblock("C")
    part, i, lane, r, k = sch.get_loops(block)
    sch.reorder(part, r, k, i, lane)
    sch.vectorize(lane)
    sch.unroll(i)
    if parts > 1:
        sch.parallel(part)
    sch.decompose_reduction(block, r)
    return sch.mod
