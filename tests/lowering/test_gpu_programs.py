"""GPU programs: their results, and the threads and memories in their nests.

Without a GPU: the scheduled function is run on a CPU, its threads one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tvm
from definitions import FLOAT32, workload
from gpu import gpu_sketches, legal_sample, on_cpu
from tvm import tirx
from tvm.s_tir import SBlockRealize

from ansor.lowering.lower import lower
from ansor.program.nest import build_nest
from ansor.targets.build import ENTRY, compile_function
from ansor.targets.cuda.kernels import Kernel, kernels

PROGRAMS_PER_SKETCH = 6
TOLERANCE = 1e-4  # relative to the largest value, fp32 with sums in any order


@pytest.mark.parametrize("name", FLOAT32)
def test_programs_compute_what_their_definition_says(name: str) -> None:
    found = workload(name)
    rng = np.random.default_rng(0)
    arrays = found.inputs(rng)
    expected = found.reference(*arrays)
    for sketch in gpu_sketches(name):
        population = legal_sample(sketch, PROGRAMS_PER_SKETCH)
        assert len(population)
        for row in range(len(population)):
            func = on_cpu(found.func, population.program(row))
            actual = run(func, arrays, expected)
            assert np.abs(actual - expected).max() <= TOLERANCE * np.abs(expected).max()


def run(func: tirx.PrimFunc, arrays: list[Any], expected: Any) -> Any:
    """The output of a function on a CPU."""
    out = tvm.runtime.tensor(np.full(expected.shape, np.nan, dtype=expected.dtype))
    compile_function(func, "llvm")[ENTRY](*map(tvm.runtime.tensor, arrays), out)
    return out.numpy()


@pytest.mark.parametrize("name", FLOAT32)
def test_grids_of_lowered_programs_equal_those_of_the_nest(name: str) -> None:
    func = workload(name).func
    for sketch in gpu_sketches(name):
        population = legal_sample(sketch, PROGRAMS_PER_SKETCH)
        computed = kernels(build_nest(population))
        for row in range(len(population)):
            lowered = list(grids(lower(func, population.program(row)).body))
            assert lowered == [grid_of(kernel, row) for kernel in computed]


def grid_of(kernel: Kernel, row: int) -> dict[str, int]:
    """Extents of the thread indices that the nest expects."""
    found = {
        "blockIdx.x": int(kernel.blocks[row]),
        "vthread.x": int(kernel.vthreads[row]),
        "threadIdx.x": int(kernel.threads[row]),
    }
    return {name: extent for name, extent in found.items() if extent > 1}


def grids(stmt: Any) -> Iterator[dict[str, int]]:
    """Extents of the thread indices of each kernel, ones left out."""
    if isinstance(stmt, SBlockRealize):
        yield from grids(stmt.block.body)
    elif isinstance(stmt, tirx.SeqStmt):
        for child in stmt.seq:
            yield from grids(child)
    else:
        found = {}
        for name, extent in bindings(stmt):
            assert found.setdefault(name, extent) == extent, "threads of a kernel differ"
        yield {name: extent for name, extent in found.items() if extent > 1}


def bindings(stmt: Any) -> Iterator[tuple[str, int]]:
    """Thread indices inside a statement, with their extents."""
    if isinstance(stmt, tirx.For):
        if stmt.thread_binding is not None:
            yield str(stmt.thread_binding.thread_tag), int(stmt.extent)
        yield from bindings(stmt.body)
    elif isinstance(stmt, tirx.SeqStmt):
        for child in stmt.seq:
            yield from bindings(child)
    elif isinstance(stmt, tirx.IfThenElse):
        yield from bindings(stmt.then_case)
