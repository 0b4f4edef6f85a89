"""The CUDA compiler accepts sampled programs, with the computed resources."""

from __future__ import annotations

import os

import numpy as np
import pytest
from cuda_compiler import compile_source, cuda_source
from definitions import workload
from gpu import GPU, TARGET, gpu_sketches, legal_sample

from ansor.errors import MeasureError
from ansor.lowering.lower import lower
from ansor.program.nest import build_nest
from ansor.targets.cuda import compiler as nvcc
from ansor.targets.cuda.compiler import find_nvcc
from ansor.targets.cuda.kernels import kernels

# `make check-cuda` asks for many.
PROGRAMS = int(os.environ.get("ANSOR_CUDA_PROGRAMS", "1"))
OPERATORS = (
    "matmul_relu",
    "batch_matmul",
    "conv2d",
    "conv2d_stride2",
    "depthwise_conv2d",
    "transposed_conv2d",
    "winograd_conv2d",
    "softmax",
    "row_sum",
    "max_pool2d",
)
# The compiler sometimes keeps a few words in memory although half of the registers are free.
STRAY_BYTES = 16
ALIGNMENT = 64  # bytes: arrays in shared memory begin at multiples of it, the last is not padded


@pytest.mark.parametrize("name", OPERATORS)
def test_sampled_programs_compile_and_take_what_was_computed(name: str) -> None:
    func = workload(name).func
    sketches = gpu_sketches(name)
    for sketch in sketches:
        population = legal_sample(sketch, -(-PROGRAMS // len(sketches)), seed=7)
        computed = {k.root: k for k in kernels(build_nest(population))}
        for row in range(len(population)):
            source = cuda_source(lower(func, population.program(row)), TARGET)
            used = compile_source(source, GPU.arch)
            assert len(used) == len(computed)
            shared = sorted(-(-use.shared_bytes // ALIGNMENT) * ALIGNMENT for use in used)
            assert shared == sorted(int(k.shared_bytes[row]) for k in computed.values())
            assert all(max(use.spill_bytes, use.stack_bytes) <= STRAY_BYTES for use in used)


def test_a_program_beyond_the_limits_is_known_before_it_is_compiled() -> None:
    (sketch, *_) = gpu_sketches("matmul")
    population = legal_sample(sketch, 4)
    small = kernels(build_nest(population))[0]
    assert (small.shared_bytes <= GPU.shared_per_block).all()
    assert (small.threads <= GPU.threads_per_block).all()
    assert np.all(small.registers <= GPU.registers_per_thread)


def test_what_is_no_cuda_is_rejected_with_the_compilers_reason() -> None:
    with pytest.raises(MeasureError, match=r"sm_90.*nonsense"):
        compile_source("__global__ void k() { nonsense; }", "sm_90")


def test_an_architecture_that_the_compiler_does_not_know() -> None:
    with pytest.raises(MeasureError, match="sm_13"):
        compile_source("__global__ void k() {}", "sm_13")


def test_spills_are_reported() -> None:
    source = """extern "C" __global__ void __launch_bounds__(1024) k(float* a) {
        float x[200];
        for (int i = 0; i < 200; ++i) x[i] = a[i * threadIdx.x];
        for (int i = 0; i < 200; ++i) a[i] = x[(i * (int)a[0]) % 200];
    }"""
    (use,) = compile_source(source, "sm_90")
    assert use.stack_bytes > 0


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    find_nvcc.cache_clear()
    monkeypatch.setattr(nvcc.shutil, "which", lambda _: None)
    monkeypatch.setattr(nvcc, "find_spec", lambda _: None)
    with pytest.raises(MeasureError, match="nvidia-cuda-nvcc"):
        find_nvcc()
    find_nvcc.cache_clear()
