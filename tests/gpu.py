"""Shared functions of the tests of GPU programs: sketches, legal samples, and runs on a CPU."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from definitions import workload
from tvm import te, tirx
from tvm.s_tir import SBlockRealize

from ansor.annotate.sample import sample
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.lowering.after_scheduling import rewritten
from ansor.lowering.lower import schedule
from ansor.lowering.passes.shifted_tails import with_body
from ansor.lowering.replay import Replay
from ansor.program.nest import build_nest
from ansor.program.program import Program
from ansor.program.sketch import Population, Sketch
from ansor.program.steps import Tensorize
from ansor.targets.cuda.legality import legal_on_gpu
from ansor.targets.cuda.machine import Gpu, gpu_of
from ansor.targets.cuda.search import CUDA_SEARCH

GPU = gpu_of("sm_90")
TARGET = '{"arch":"sm_90","kind":"cuda"}'
TF32_GPU = gpu_of("sm_90", tf32=True)
TF32_TARGET = '{"arch":"sm_90","keys":["cuda","gpu","tf32"],"kind":"cuda"}'
CONFIG = SketchConfig()
PIPELINE = ("software_pipeline_stage", "software_pipeline_order")


def sketches_of(func: tirx.PrimFunc, gpu: Gpu = GPU) -> list[Sketch]:
    """The complete sketches of a definition for a GPU."""
    return CUDA_SEARCH.sketches(read_dag(func), gpu, CONFIG)


# Products of matrices in half precision, added up in float32: dimensions of the operands and of the
# result (s: stack, i: rows, j: columns, k: depth), and their sizes.
_PRODUCTS = {
    "plain": ("ik", "kj", "ij", {"i": 64, "j": 128, "k": 96}),
    "relu": ("ik", "kj", "ij", {"i": 64, "j": 128, "k": 96}),
    "narrow": ("ik", "kj", "ij", {"i": 64, "j": 128, "k": 96}),
    "right": ("ik", "jk", "ij", {"i": 64, "j": 128, "k": 96}),
    "left": ("ki", "kj", "ij", {"i": 64, "j": 128, "k": 96}),
    "swapped": ("jk", "ik", "ij", {"i": 64, "j": 128, "k": 96}),
    "stack": ("sik", "skj", "sij", {"s": 3, "i": 64, "j": 128, "k": 96}),
    "odd": ("ik", "kj", "ij", {"i": 30, "j": 41, "k": 35}),
    "inside": ("isk", "jsk", "isj", {"s": 3, "i": 30, "j": 41, "k": 32}),
    "scaled": ("ik", "kj", "ij", {"i": 64, "j": 128, "k": 96}),
    "brain": ("ik", "kj", "ij", {"i": 64, "j": 50, "k": 64}),
}
# Images, channels, filters, size of the kernel, padding, stride.
_CONVOLUTIONS = {
    "conv": (2, 7, 24, 20, 3, 1, 1),
    "wide": (1, 16, 64, 64, 3, 1, 1),
    "strided": (2, 8, 16, 32, 1, 0, 2),
}
HALF_PRODUCTS = (*_PRODUCTS, *_CONVOLUTIONS)


@cache
def tensor_product(name: str, dtype: str = "") -> tirx.PrimFunc:
    """A product of matrices, plain or in disguise; "relu", "narrow" (its result in float16) and the
    convolutions have an epilogue. Operands have half precision by default."""
    dtype = dtype or ("bfloat16" if name == "brain" else "float16")
    if name in _CONVOLUTIONS:
        return _convolution(dtype, *_CONVOLUTIONS[name])
    *dims, out_dims, sizes = _PRODUCTS[name]
    shapes = [tuple(sizes[d] for d in operand) for operand in dims]
    inputs = [te.placeholder(s, dtype, name=n) for s, n in zip(shapes, "AB", strict=True)]
    left, right = inputs
    if name == "scaled":  # computed while it is fetched
        left = te.compute(shapes[0], lambda *i: inputs[0](*i) * tirx.const(2, dtype), name="scaled")
    k = te.reduce_axis((0, sizes["k"]), name="k")

    def product(*index: Any) -> Any:
        at = dict(zip(out_dims, index, strict=True)) | {"k": k}
        factors = [t[tuple(at[d] for d in ds)] for t, ds in zip((left, right), dims, strict=True)]
        return te.sum(factors[0].astype("float32") * factors[1].astype("float32"), axis=k)

    out = te.compute(tuple(sizes[d] for d in out_dims), product, name="C")
    if name in ("relu", "narrow"):
        zero, kept = tirx.const(0, "float32"), "float16" if name == "narrow" else "float32"
        out = te.compute(out.shape, lambda *i: te.max(out(*i), zero).astype(kept), name="D")
    return te.create_prim_func([*inputs, out])


def _convolution(
    dtype: str,
    images: int,
    size: int,
    channels: int,
    filters: int,
    kernel: int,
    padding: int,
    stride: int,
) -> tirx.PrimFunc:
    """Channels last, with a bias."""
    data = te.placeholder((images, size, size, channels), dtype, name="X")
    weight = te.placeholder((kernel, kernel, channels, filters), dtype, name="W")
    bias = te.placeholder((filters,), "float32", name="bias")
    grown = size + 2 * padding

    def padded(n: Any, y: Any, x: Any, c: Any) -> Any:
        inside = [v >= padding for v in (y, x)] + [v < size + padding for v in (y, x)]
        zero = tirx.const(0, dtype)
        return te.if_then_else(te.all(*inside), data[n, y - padding, x - padding, c], zero)

    source = te.compute((images, grown, grown, channels), padded, "pad") if padding else data
    sizes = {"y": kernel, "x": kernel, "c": channels}
    axes = dy, dx, c = [te.reduce_axis((0, n), name=name) for name, n in sizes.items()]

    def summed(n: Any, y: Any, x: Any, f: Any) -> Any:
        read = source[n, y * stride + dy, x * stride + dx, c].astype("float32")
        return te.sum(read * weight[dy, dx, c, f].astype("float32"), axis=axes)

    out = (grown - kernel) // stride + 1
    conv = te.compute((images, out, out, filters), summed, name="C")
    done = te.compute(conv.shape, lambda n, y, x, f: conv[n, y, x, f] + bias[f], name="D")
    return te.create_prim_func([data, weight, bias, done])


def on_tensor_cores(sketch: Sketch) -> bool:
    """Whether the programs of a sketch use tensor cores."""
    return any(isinstance(step, Tensorize) for step in sketch.steps)


def tensor_sketch(name: str, dtype: str = "") -> Sketch:
    """The sketch of such a product for tensor cores; in float32, rounded to tf32."""
    gpu = TF32_GPU if dtype == "float32" else GPU
    (sketch,) = filter(on_tensor_cores, sketches_of(tensor_product(name, dtype), gpu))
    return sketch


@cache
def gpu_sketches(name: str) -> list[Sketch]:
    """Those of the small workload `name`."""
    return sketches_of(workload(name).func)


def legal_sample(sketch: Sketch, count: int, seed: int = 0, drawn: int = 4096) -> Population:
    """Up to `count` random programs within the limits of the GPU."""
    population = sample(sketch, drawn, np.random.default_rng(seed))
    rows = np.flatnonzero(legal_on_gpu(build_nest(population), GPU, CONFIG))
    return population.take(rows[:count])


def on_cpu(func: tirx.PrimFunc, program: Program) -> tirx.PrimFunc:
    """The scheduled function with its threads one after the other, one memory for all, and without
    the instructions of tensor cores.

    Where the threads of a block share work, each thread then does all of it. Only the order of
    additions differs.
    """
    plain = tuple(step for step in program.steps if not isinstance(step, Tensorize))
    replay = schedule(func, replace(program, steps=plain))
    for block in replay.blocks.values():
        _globalise(replay, block)
    scheduled = rewritten(replay)
    return scheduled.with_body(_serial(scheduled.body))


def _globalise(replay: Replay, block: Any) -> None:
    for number, region in enumerate(replay.sch.get(block).writes):
        if str(region.source.scope()) != "global":
            replay.sch.set_scope(block, number, "global")


def _serial(stmt: Any) -> Any:
    if isinstance(stmt, tirx.SeqStmt):
        return tirx.SeqStmt([_serial(child) for child in stmt.seq])
    if isinstance(stmt, tirx.For):
        kind = tirx.ForKind.SERIAL if stmt.thread_binding is not None else stmt.kind
        ahead = {k: v for k, v in stmt.annotations.items() if k in PIPELINE}
        body = _serial(stmt.body)
        return tirx.For(stmt.loop_var, stmt.min, stmt.extent, kind, body, annotations=ahead)
    if isinstance(stmt, tirx.IfThenElse):
        return tirx.IfThenElse(stmt.condition, _serial(stmt.then_case), None)
    if isinstance(stmt, SBlockRealize) and str(stmt.block.name_hint) == "root":
        block = with_body(stmt.block, _serial(stmt.block.body))
        return SBlockRealize(stmt.iter_values, stmt.predicate, block)
    return stmt
