"""Products on tensor cores: their results, warps and instructions."""

from __future__ import annotations

import os
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import tvm
from cuda_compiler import compile_source, cuda_source
from gpu import (
    CONFIG,
    GPU,
    HALF_PRODUCTS,
    TARGET,
    legal_sample,
    on_cpu,
    on_tensor_cores,
    sketches_of,
    tensor_product,
    tensor_sketch,
)
from tvm import te, tirx

from ansor.cost_model.scorer import seconds
from ansor.features.profile import profile
from ansor.lowering.lower import lower
from ansor.program.nest import build_nest
from ansor.targets.build import ENTRY, compile_function
from ansor.targets.cuda.draft.draft import draft_for_gpu
from ansor.targets.cuda.kernels import kernels
from ansor.targets.cuda.legality import legal_on_gpu

PROGRAMS = 2 * int(os.environ.get("ANSOR_CUDA_PROGRAMS", "1"))  # `make check-cuda` asks for many


@pytest.mark.parametrize("name", HALF_PRODUCTS)
def test_tiles_compute_the_product(name: str) -> None:
    func, rng = tensor_product(name), np.random.default_rng(0)
    *operands, out = func.params
    shapes = [tuple(int(n) for n in operand.shape) for operand in operands]
    arrays = [
        tvm.runtime.tensor(rng.uniform(-1, 1, shape).astype(numpy_dtype(operand)))
        for shape, operand in zip(shapes, operands, strict=True)
    ]

    def result(made: tirx.PrimFunc) -> npt.NDArray[Any]:
        empty = np.full([int(n) for n in out.shape], np.nan, dtype=numpy_dtype(out))
        filled = tvm.runtime.tensor(empty)
        compile_function(made, "llvm")[ENTRY](*arrays, filled)
        return filled.numpy().astype(np.float64)

    expected, population = result(func), legal_sample(tensor_sketch(name), 4)
    for row in range(len(population)):
        found = result(on_cpu(func, population.program(row)))
        assert np.abs(found - expected).max() <= 2e-3 * np.abs(expected).max()


def numpy_dtype(buffer: Any) -> Any:
    dtype = str(buffer.dtype)
    return ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype


@pytest.mark.parametrize("name", HALF_PRODUCTS)
def test_programs_become_instructions_of_tensor_cores(name: str) -> None:
    sketch = tensor_sketch(name)
    population = legal_sample(sketch, PROGRAMS, seed=1)
    (kernel,) = kernels(build_nest(population))
    for row in range(len(population)):
        source = cuda_source(lower(tensor_product(name), population.program(row)), TARGET)
        for instruction in ("load_matrix_sync", "mma_sync", "store_matrix_sync", "fill_fragment"):
            assert f"wmma::{instruction}" in source
        assert f"__launch_bounds__({kernel.threads[row]})" in source
        (use,) = compile_source(source, GPU.arch)
        assert max(use.spill_bytes, use.stack_bytes) <= 16


def test_warps_by_hand() -> None:
    sketch = tensor_sketch("relu")
    values = {
        "C.i0": (1, 2, 2, 16),
        "C.i1": (2, 2, 2, 16),
        "C.k": (3, 2, 16),
        "D.store": (4,),
        "C.A.shared.fetch": (8,),
        "C.A.shared.pad": (1,),
        "C.B.shared.fetch": (8,),
        "C.B.shared.pad": (0,),
        "C.ahead": (1,),
        "C.unroll": (0,),
    }
    rows = [decision.find(values[decision.name]) for decision in sketch.decisions]
    population = legal_sample(sketch, 1)
    population.choices[0] = rows
    (kernel,) = kernels(build_nest(population))
    assert (kernel.blocks[0], kernel.threads[0]) == (2, 4 * 32)
    # 64 rows of 32 + 8 halves, 32 rows of 64 halves, both twice, and the block's result.
    assert kernel.shared_bytes[0] == 2 * (64 * 40 * 2 + 32 * 64 * 2) + 64 * 64 * 4


def test_limits_of_shared_memory_are_those_of_a_block_that_asks_for_it() -> None:
    sketch = tensor_sketch("plain")
    population = legal_sample(sketch, 256)
    (kernel,) = kernels(build_nest(population))
    assert GPU.shared_per_block < kernel.shared_bytes.max() <= GPU.most_shared_per_block
    assert (kernel.threads <= CONFIG.gpu.max_warps * GPU.warp).all()
    assert legal_on_gpu(build_nest(population), GPU, CONFIG).all()


def test_the_draft_prefers_tensor_cores_for_large_products() -> None:
    a, b = (te.placeholder((1024, 1024), "float16", name=name) for name in "AB")
    k = te.reduce_axis((0, 1024), name="k")
    c = te.compute(
        (1024, 1024),
        lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k),
        name="C",
    )
    best: dict[bool, float] = {}
    for sketch in sketches_of(te.create_prim_func([a, b, c])):
        nest = build_nest(legal_sample(sketch, 512))
        fastest = float(seconds(draft_for_gpu(nest, profile(nest), GPU)).min())
        kind = on_tensor_cores(sketch)
        best[kind] = min(best.get(kind, fastest), fastest)
    assert best[True] < best[False]


def test_other_products_are_left_to_the_plain_cores() -> None:
    def product(size: int, dtype: str, total: str) -> tirx.PrimFunc:
        a, b = (te.placeholder((size, size), dtype, name=name) for name in "AB")
        k = te.reduce_axis((0, size), name="k")

        def body(i: Any, j: Any) -> Any:
            return te.sum(a[i, k].astype(total) * b[k, j].astype(total), axis=k)

        return te.create_prim_func([a, b, te.compute((size, size), body, name="C")])

    for size, dtype, total in ((5, "float16", "float32"), (64, "float32", "float32")):
        found = sketches_of(product(size, dtype, total))
        assert found
        assert not any(on_tensor_cores(sketch) for sketch in found)
