"""The GPU's draft: occupancy as NVIDIA's calculator has it, and which program it prefers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from definitions import NAMES
from gpu import GPU, gpu_sketches, legal_sample, sketches_of

from ansor.annotate.sample import sample
from ansor.config import CostModelConfig, SketchConfig
from ansor.cost_model.model import CostModel
from ansor.cost_model.scorer import seconds
from ansor.features.profile import profile
from ansor.program.nest import build_nest
from ansor.program.sketch import Population, Sketch
from ansor.targets.cuda.draft.draft import draft_for_gpu, resident_blocks
from ansor.targets.cuda.kernels import Kernel
from ansor.targets.cuda.machine import Gpu, gpu_of
from ansor.targets.cuda.search import CUDA_SEARCH
from ansor.workloads import build

# A block of 128 x 128 by 256 threads, each 2 x 2 virtual threads of 4 x 4: a usual choice.
GOOD = {
    "C.i": (8, 2, 16, 1, 4),
    "C.j": (8, 2, 16, 1, 4),
    "C.k": (128, 8, 1),
    "C.A.shared.fetch": (4,),
    "C.B.shared.fetch": (4,),
    "C.A.shared.pad": (0,),
    "C.B.shared.pad": (0,),
    "C.ahead": (0,),
    "C.unroll": (64,),
}
PREFERENCES = {
    "results in registers": ({}, {"C.i": (16, 1, 64, 1, 1), "C.j": (64, 1, 16, 1, 1)}),
    "enough blocks for all multiprocessors": (
        {"C.i": (16, 2, 16, 1, 2), "C.j": (16, 2, 16, 1, 2)},
        {"C.i": (2, 2, 16, 4, 4), "C.j": (8, 2, 16, 1, 4)},
    ),
    "a warp's worth of threads": (
        {"C.i": (16, 2, 8, 1, 4), "C.j": (16, 2, 8, 1, 4)},
        {"C.i": (32, 2, 4, 1, 4), "C.j": (32, 2, 4, 1, 4)},
    ),
    "few rounds of fetching": ({}, {"C.k": (1024, 1, 1)}),
    "fetches ahead, where no other block works meanwhile": (
        {"C.i": (8, 1, 16, 1, 8), "C.ahead": (2,)},
        {"C.i": (8, 1, 16, 1, 8)},
    ),
    "wide fetches": ({}, {"C.A.shared.fetch": (1,), "C.B.shared.fetch": (1,)}),
}


def matmul() -> Sketch:
    return sketches_of(build("matmul", rows=1024, columns=1024, depth=1024).func)[-1]


def drafted(values: dict[str, tuple[int, ...]], gpu: Gpu = GPU) -> float:
    sketch = matmul()
    rows = [decision.find((GOOD | values)[decision.name]) for decision in sketch.decisions]
    nest = build_nest(Population(sketch, np.array([rows], dtype=np.int32)))
    return float(seconds(draft_for_gpu(nest, profile(nest), gpu))[0])


@pytest.mark.parametrize("idea", PREFERENCES)
def test_it_prefers(idea: str) -> None:
    better, worse = PREFERENCES[idea]
    assert drafted(better) < drafted(worse)


def test_a_good_product_takes_between_one_and_three_times_its_least() -> None:
    least = 2 * 1024**3 / GPU.peak_flops
    assert least < drafted({"C.i": (16, 1, 16, 1, 4), "C.k": (64, 4, 4)}) < 3 * least


def test_slower_hardware_takes_longer() -> None:
    assert drafted(GOOD, gpu_of("sm_75")) > drafted(GOOD, gpu_of("sm_80")) > drafted(GOOD)


def kernel(threads: int, registers: int, shared: int) -> Kernel:
    one = np.ones(1, dtype=np.int64)
    return Kernel("C", ("C",), one, threads * one, one, shared * one, registers * one, 0 * one)


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "blocks"),
    [
        (256, 32, 0, 8),  # by threads: 2048 of an SM
        (256, 64, 0, 4),  # by registers: 65536 of an SM
        (256, 33, 0, 6),  # registers come in steps of eight
        (64, 32, 48 << 10, 4),  # by shared memory: 228 KiB of an SM
        (32, 16, 0, 32),  # by blocks
        (1024, 255, 0, 1),  # at least one
    ],
)
def test_occupancy(threads: int, registers: int, shared: int, blocks: int) -> None:
    assert resident_blocks(kernel(threads, registers, shared), GPU)[0] == blocks


@pytest.mark.parametrize("name", NAMES)
def test_estimates_are_positive_and_count_every_kernel_once(name: str) -> None:
    for sketch in gpu_sketches(name):
        nest = build_nest(legal_sample(sketch, 32))
        found = draft_for_gpu(nest, profile(nest), GPU)
        assert list(found) == list(sketch.dag.order)
        times = np.stack([breakdown.seconds for breakdown in found.values()])
        assert np.isfinite(times).all()
        running = [name for name in found if name in sketch.roles.bound]
        assert (times.sum(axis=0) >= len(running) * GPU.launch_s).all()
        assert {n for n, b in found.items() if b.seconds.any()} == set(running)


def test_the_model_learns_on_top_of_it() -> None:
    config = replace(CostModelConfig(), min_records=8)
    model = CostModel(GPU, CUDA_SEARCH, config, SketchConfig())
    sketch = gpu_sketches("conv2d")[-1]
    population = legal_sample(sketch, 64)
    before = model.score(population)
    factor = np.where(population.values("conv.unroll")[:, 0] > 64, 4.0, 1.0)
    model.add("task", population, (np.exp(-before) * factor).tolist())
    assert model.fit()
    change = model.score(population) - before
    assert change[factor > 1].mean() < change[factor == 1].mean() - 1


def test_programs_beyond_the_limits_score_minus_infinity() -> None:
    model = CostModel(GPU, CUDA_SEARCH, CostModelConfig(), SketchConfig())
    population = sample(gpu_sketches("matmul")[0], 256, np.random.default_rng(0))
    estimate = model.estimate(population)
    assert np.isneginf(model.score_of(estimate)[~estimate.legal]).all()
    assert 0 < estimate.legal.sum() < len(population)
