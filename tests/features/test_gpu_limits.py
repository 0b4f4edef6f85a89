"""Kernels by arithmetic, compared with results by hand, and the programs that they exclude."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from definitions import NAMES, workload
from gpu import CONFIG, GPU, gpu_sketches, legal_sample, sketches_of

from ansor.annotate.sample import sample
from ansor.program.nest import build_nest
from ansor.program.sketch import Population, Sketch
from ansor.targets.cuda.kernels import Kernel, kernels
from ansor.targets.cuda.legality import legal_on_gpu
from ansor.targets.cuda.machine import Gpu
from ansor.workloads import build

# 128 x 128 x 64: blocks of 64 x 32, 2 virtual threads, 8 x 8 threads, 8 x 2 elements each.
TILES = {
    "C.i": (2, 1, 8, 2, 4),
    "C.j": (4, 2, 8, 1, 2),
    "C.k": (8, 4, 2),
    "C.A.shared.fetch": (4,),
    "C.A.shared.pad": (0,),
    "C.B.shared.fetch": (2,),
    "C.B.shared.pad": (0,),
    "C.ahead": (0,),
    "C.unroll": (64,),
}


def matmul() -> Sketch:
    func = build("matmul", rows=128, columns=128, depth=64).func
    return sketches_of(func)[-1]


def population_of(sketch: Sketch, values: dict[str, tuple[int, ...]]) -> Population:
    rows = [decision.find(values[decision.name]) for decision in sketch.decisions]
    return Population(sketch, np.array([rows], dtype=np.int32))


def kernel_of(values: dict[str, tuple[int, ...]]) -> Kernel:
    (kernel,) = kernels(build_nest(population_of(matmul(), values)))
    return kernel


def test_a_matrix_product_by_hand() -> None:
    kernel = kernel_of(TILES)
    assert (kernel.blocks[0], kernel.vthreads[0], kernel.threads[0]) == (2 * 4, 2, 64)
    # A block works on 64 rows and 32 columns, and fetches 8 steps of the reduction at a time.
    assert kernel.shared_bytes[0] == (64 * 8 + 8 * 32) * 4
    # Sixteen results for each virtual thread; operands of one step: 8 rows, 2 times 2 columns.
    assert kernel.registers[0] == 26 + 2 * 16 + (8 + 4)


def test_padded_rows_take_more_shared_memory() -> None:
    kernel = kernel_of(TILES | {"C.A.shared.pad": (1,), "C.B.shared.pad": (1,)})
    assert kernel.shared_bytes[0] == (64 * 12 + 8 * 36) * 4


def test_what_is_fetched_ahead_takes_buffers_of_its_own() -> None:
    for rounds, buffers in ((8, 3), (2, 1)):  # no more rounds than that: nothing is ahead
        steps = {"C.k": (rounds, 4, 16 // rounds), "C.ahead": (2,)}
        kernel = kernel_of(TILES | steps)
        depth = 4 * 16 // rounds
        assert kernel.ahead[0] == buffers - 1
        assert kernel.shared_bytes[0] == buffers * (64 * depth + depth * 32) * 4


@pytest.mark.parametrize(
    ("change", "limits"),
    [
        ({"C.k": (1, 16, 4)}, {"shared_per_block": (24 << 10) - 1}),
        ({}, {"threads_per_block": 63}),
        ({}, {"registers_per_thread": 70 + CONFIG.gpu.spare_registers - 1}),
        ({}, {"registers_per_sm": 70 * 64 - 1}),
    ],
)
def test_each_limit_rules_out_what_goes_beyond_it(
    change: dict[str, tuple[int, ...]], limits: dict[str, int]
) -> None:
    nest = build_nest(population_of(matmul(), TILES | change))
    assert legal_on_gpu(nest, GPU, CONFIG).all()
    small: Gpu = replace(GPU, **limits)  # type: ignore[arg-type]
    assert not legal_on_gpu(nest, small, CONFIG).any()


@pytest.mark.parametrize(
    "change",
    [
        {"C.i": (16, 1, 1, 2, 4), "C.j": (4, 2, 8, 1, 2)},  # 8 threads share a fetch
        {"C.j": (2, 16, 2, 1, 2), "C.i": (2, 2, 8, 1, 4)},  # 32 virtual threads
        {"C.i": (2, 1, 8, 2, 4), "C.j": (1, 4, 8, 2, 2)},  # 128 results, below; see 256 next
    ],
)
def test_senseless_tiles_are_ruled_out(change: dict[str, tuple[int, ...]]) -> None:
    config = replace(CONFIG, gpu=replace(CONFIG.gpu, max_accumulators=127))
    nest = build_nest(population_of(matmul(), TILES | change))
    assert not legal_on_gpu(nest, GPU, config).any()


@pytest.mark.parametrize("name", NAMES)
def test_some_of_a_random_sample_is_legal(name: str) -> None:
    for sketch in gpu_sketches(name):
        assert len(legal_sample(sketch, 16)) == min(16, sketch.space_size)


def test_limits_do_not_depend_on_the_rest_of_the_population() -> None:
    sketch = gpu_sketches("conv2d")[-1]
    population = sample(sketch, 64, np.random.default_rng(0))
    together = legal_on_gpu(build_nest(population), GPU, CONFIG)
    alone = [legal_on_gpu(build_nest(population.take([i])), GPU, CONFIG)[0] for i in range(64)]
    assert together.tolist() == alone


def test_shared_memory_of_threads_that_add_up_together() -> None:
    (sketch, *_) = gpu_sketches("softmax")
    population = sample(sketch, 64, np.random.default_rng(0))
    (kernel,) = kernels(build_nest(population))
    rows = workload("softmax").tensors[0].shape[0]
    assert (kernel.blocks == int(rows)).all()
    # Two reductions, each with a result; beyond a warp also one for each warp and one for all.
    expected = np.where(kernel.threads > 32, 2 * (64 + 64 + -(-kernel.threads // 512) * 64), 128)
    assert (kernel.shared_bytes == expected).all()
