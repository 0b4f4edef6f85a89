"""The legality of GPU programs, by arithmetic on the nest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ansor.config import GpuSketchConfig, SketchConfig
from ansor.program.loop_structure import num_leading
from ansor.program.nest import LoopNest
from ansor.program.steps import BindTiles, BindWarps
from ansor.targets.cuda.kernels import Kernel, gathers, kernels, points_from
from ansor.targets.cuda.machine import Gpu

Bools = npt.NDArray[np.bool_]
_MAX_GRID = 2**31 - 1  # blocks along x; CUDA C++ Programming Guide


def legal_on_gpu(nest: LoopNest, gpu: Gpu, config: SketchConfig) -> Bools:
    """`[P]`: whether every kernel keeps the limits of the GPU, and compiles in seconds."""
    ok = np.ones(nest.size, dtype=np.bool_)
    limits = config.gpu
    for kernel in kernels(nest):
        bound = nest.population.sketch.roles.bound[kernel.root]
        dynamic = isinstance(bound, BindWarps)
        ok &= kernel.shared_bytes <= (
            gpu.most_shared_per_block if dynamic else gpu.shared_per_block
        )
        ok &= _fits(kernel, gpu, limits.spare_registers)
        if isinstance(bound, BindTiles):
            ok &= _sensible_tiles(nest, kernel, limits)
        if dynamic:
            ok &= kernel.threads <= limits.max_warps * gpu.warp
            for name in kernel.members:
                ok &= gathers(nest, name, kernel.threads) <= limits.max_gathers
    return ok


def _fits(kernel: Kernel, gpu: Gpu, spare: int) -> Bools:
    """Hard limits of the hardware on threads, registers and blocks."""
    ok: Bools = kernel.threads <= gpu.threads_per_block
    ok &= kernel.registers <= gpu.registers_per_thread - spare
    ok &= kernel.registers * kernel.threads <= gpu.registers_per_sm
    ok &= kernel.blocks <= _MAX_GRID
    return ok


def _sensible_tiles(nest: LoopNest, kernel: Kernel, config: GpuSketchConfig) -> Bools:
    """Enough threads to share a fetch, not too many statements to unroll."""
    stage = nest.stages[kernel.root]
    ok: Bools = kernel.threads >= np.minimum(config.least_threads, points_from(stage, 0))
    ok &= kernel.vthreads <= config.max_vthreads
    unrolled = np.where(stage.unrolled, stage.extents, 1).prod(axis=0, dtype=np.int64)
    ok &= unrolled <= config.max_unrolled_statements
    ok &= unrolled * kernel.vthreads <= config.max_block_statements
    tile = points_from(stage, 3 * num_leading(stage.stage))
    ok &= tile * kernel.vthreads <= config.max_accumulators
    return ok
