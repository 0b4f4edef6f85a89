"""What the tests of GPU programs share: sketches, legal samples, and a run of them on a CPU."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from definitions import workload
from tvm import te, tirx
from tvm.s_tir import SBlockRealize

from ansor.annotate.complete import complete
from ansor.annotate.sample import sample
from ansor.config import SketchConfig
from ansor.dag.from_tir import read_dag
from ansor.features.gpu_legality import legal_on_gpu
from ansor.hardware.gpu import gpu_of
from ansor.program.lower import Replay, schedule
from ansor.program.nest import build_nest
from ansor.program.program import Program
from ansor.program.sketch import Population, Sketch
from ansor.program.steps import Tensorize
from ansor.program.tail import with_body
from ansor.sketch.generate import generate

GPU = gpu_of("sm_90")
TARGET = '{"arch":"sm_90","kind":"cuda"}'
CONFIG = SketchConfig()


def sketches_of(func: tirx.PrimFunc) -> list[Sketch]:
    """The complete sketches of a definition for the GPU."""
    return [complete(state, GPU, CONFIG) for state in generate(read_dag(func), GPU, CONFIG)]


@cache
def half_product(name: str) -> tirx.PrimFunc:
    """A product of matrices in float16, added up in float32: "plain", "relu", "right" (transposed),
    "stack" or "narrow" (its result in float16)."""
    batch = (3,) if name == "stack" else ()
    left = te.placeholder((*batch, 64, 96), "float16", name="A")
    shape = (128, 96) if name == "right" else (96, 128)
    right = te.placeholder((*batch, *shape), "float16", name="B")
    k = te.reduce_axis((0, 96), name="k")

    def product(*index: Any) -> Any:
        *n, i, j = index
        operand = right[(*n, j, k)] if name == "right" else right[(*n, k, j)]
        return te.sum(left[(*n, i, k)].astype("float32") * operand.astype("float32"), axis=k)

    out = te.compute((*batch, 64, 128), product, name="C")
    if name in ("relu", "narrow"):
        zero, dtype = tirx.const(0, "float32"), "float16" if name == "narrow" else "float32"
        out = te.compute(out.shape, lambda *i: te.max(out(*i), zero).astype(dtype), name="D")
    return te.create_prim_func([left, right, out])


HALF_PRODUCTS = ("plain", "relu", "right", "stack", "narrow")


def tensor_sketch(name: str) -> Sketch:
    """The sketch of such a product for tensor cores."""
    found = [s for s in sketches_of(half_product(name)) if isinstance(s.steps[-1], Tensorize)]
    (sketch,) = found
    return sketch


@cache
def gpu_sketches(name: str) -> list[Sketch]:
    """Those of the small workload `name`."""
    return sketches_of(workload(name).func)


def legal_sample(sketch: Sketch, count: int, seed: int = 0, drawn: int = 4096) -> Population:
    """Up to `count` random programs within the limits of the GPU."""
    population = sample(sketch, drawn, np.random.default_rng(seed))
    rows = np.flatnonzero(legal_on_gpu(build_nest(population), GPU, CONFIG.gpu))
    return population.take(rows[:count])


def on_cpu(func: tirx.PrimFunc, program: Program) -> tirx.PrimFunc:
    """The scheduled function with its threads one after the other, one memory for all, and without
    the instructions of tensor cores.

    Each thread then does what the whole block does where they work together, which comes to the
    same: nothing but the order of the additions differs.
    """
    plain = tuple(step for step in program.steps if not isinstance(step, Tensorize))
    replay = schedule(func, replace(program, steps=plain))
    for block in replay.blocks.values():
        _globalise(replay, block)
    return replay.result().with_body(_serial(replay.result().body))


def _globalise(replay: Replay, block: Any) -> None:
    for number, region in enumerate(replay.sch.get(block).writes):
        if str(region.source.scope()) != "global":
            replay.sch.set_scope(block, number, "global")


def _serial(stmt: Any) -> Any:
    if isinstance(stmt, tirx.SeqStmt):
        return tirx.SeqStmt([_serial(child) for child in stmt.seq])
    if isinstance(stmt, tirx.For):
        kind = tirx.ForKind.SERIAL if stmt.thread_binding is not None else stmt.kind
        return tirx.For(stmt.loop_var, stmt.min, stmt.extent, kind, _serial(stmt.body))
    if isinstance(stmt, tirx.IfThenElse):
        return tirx.IfThenElse(stmt.condition, _serial(stmt.then_case), None)
    if isinstance(stmt, SBlockRealize) and str(stmt.block.name_hint) == "root":
        block = with_body(stmt.block, _serial(stmt.block.body))
        return SBlockRealize(stmt.iter_values, stmt.predicate, block)
    return stmt
