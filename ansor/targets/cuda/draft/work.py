"""The work of a GPU kernel's stages for a multiprocessor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansor.features.loop_tables import Floats
from ansor.features.profile import AccessProfile, StageProfile
from ansor.program.loop_structure import enclosing_loops, num_leading, structure_of
from ansor.program.nest import LoopNest, StageNest
from ansor.program.steps import (
    BindTiles,
    BindWarps,
    CooperativeFetch,
    LoadFragment,
    ReduceInBlock,
    StoreFragment,
)
from ansor.targets.cuda.draft.constants import GPU
from ansor.targets.cuda.kernels import Kernel
from ansor.targets.cuda.machine import Gpu


@dataclass(frozen=True, eq=False)
class Work:
    """The work of one block; `[P]` each."""

    instructions: Floats  # warp instructions
    shared_cycles: Floats  # cycles of shared memory
    rounds: Floats  # rounds of a fetch and the wait for it
    in_flight: Floats  # independent instructions of a thread


def work_of(nest: LoopNest, profile: StageProfile, kernel: Kernel, gpu: Gpu) -> Work:
    """The work of a block on one of its stages."""
    roles, name = nest.population.sketch.roles, profile.nest.stage.name
    placed = roles.placed.get(name)
    if isinstance(roles.bound.get(name), BindTiles):
        return _tiled_work(nest, profile, kernel, gpu)
    if isinstance(placed, CooperativeFetch):
        return _fetch_work(nest, profile, kernel, gpu)
    if isinstance(roles.bound.get(name), BindWarps):
        return _tensor_work(profile, kernel, gpu)
    if isinstance(placed, LoadFragment) or isinstance(roles.fused.get(name), StoreFragment):
        return _fragment_work(profile, kernel, gpu)
    return _plain_work(profile, kernel, gpu, isinstance(placed, ReduceInBlock))


def _tiled_work(nest: LoopNest, profile: StageProfile, kernel: Kernel, gpu: Gpu) -> Work:
    """Multiply-adds of a block's tile, and its loads from shared memory."""
    stage, sketch = profile.nest, nest.population.sketch
    structure = structure_of(sketch.roles.shape[stage.stage.name])
    count = num_leading(stage.stage)
    fetches = enclosing_loops(stage.stage, structure)
    outer = fetches + (fetches - 3 * count)  # loops outside the tile that a thread unrolls
    steps = _product(stage, range(3 * count, outer))
    rounds = _product(stage, range(3 * count, fetches))
    points = _product(stage, range(outer, len(stage.loops))) * kernel.vthreads
    warps = np.ceil(kernel.threads / np.float32(gpu.warp))
    slow = gpu.warp * gpu.schedulers / gpu.fma_per_cycle  # cycles of a scheduler per multiply-add
    operations = points * np.float32(_cost(profile, slow))
    depth = sum(loop < outer for loop in profile.active)
    loads, cycles = np.float32(0), np.float32(0)
    reduction = [i for i in range(outer, len(stage.loops)) if stage.loops[i].reduce]
    accumulators = points / _product(stage, reduction)
    held = accumulators  # registers
    for access in profile.accesses:
        if access.is_write:
            continue
        turns = _moved(stage, profile, access, range(count, 2 * count))
        elements = access.footprint[depth] * turns
        held = held + elements
        wide, conflicts, distinct = _lanes(stage, profile, access, kernel, gpu, outer)
        loads = loads + elements / wide
        words = np.maximum(distinct * wide / GPU.shared_banks, 1) * conflicts
        cycles = cycles + elements / wide * words
    pressure = np.sqrt(np.maximum(held / np.float32(GPU.registers_without_pressure), 1))
    work = steps * warps * (operations + loads) * pressure
    return Work(work, steps * warps * cycles, rounds, accumulators)


def _tensor_work(profile: StageProfile, kernel: Kernel, gpu: Gpu) -> Work:
    """Tensor core instructions of a block."""
    stage = profile.nest
    count, reductions = num_leading(stage.stage), len(stage.stage.reduce)
    inner = 2 * count + 2 * reductions
    rounds = _product(stage, range(2 * count, 2 * count + reductions))
    steps = _product(stage, range(2 * count, inner))
    tiles = _product(stage, range(inner, inner + count))
    warps = kernel.threads.astype(np.float32) / np.float32(gpu.warp)
    multiply_adds = _product(stage, range(inner + count, len(stage.loops)))
    item_bytes = profile.accesses[0].buffer.item_bytes
    cycles = multiply_adds / np.float32(gpu.tensor_rate(item_bytes))
    instructions = steps * tiles * warps * cycles * np.float32(gpu.schedulers)
    return Work(instructions, 0 * steps, rounds, 2 * tiles)


def _fragment_work(profile: StageProfile, kernel: Kernel, gpu: Gpu) -> Work:
    """Transfers of a block's warps between shared memory and registers."""
    stage = profile.nest
    item_bytes = profile.accesses[-1].buffer.item_bytes
    elements = _product(stage, range(len(stage.loops))) / kernel.blocks.astype(np.float32)
    cycles = elements * np.float32(item_bytes / gpu.shared_bytes_per_cycle)
    return Work(cycles, cycles, np.ones_like(cycles), 4 * np.ones_like(cycles))


def _lanes(
    stage: StageNest,
    profile: StageProfile,
    access: AccessProfile,
    kernel: Kernel,
    gpu: Gpu,
    outer: int,
) -> tuple[Floats, Floats, Floats]:
    """Reads of shared memory by a warp, `[P]` each: elements of a load, turns of a load because of
    bank conflicts, and distinct loads among the threads."""
    wide = np.ones(len(kernel.threads), dtype=np.float32)
    for loop in sorted(access.strides, reverse=True):
        number = profile.active[loop]
        if number < outer:
            break
        extent = profile.extents[loop]
        wide = np.where(access.strides[loop] == wide, wide * extent, wide)
    wide = np.gcd(wide.astype(np.int64), 4).astype(np.float32)
    count = num_leading(stage.stage)
    within = np.ones_like(wide)  # threads of a warp in the loops so far
    distinct, stride = np.ones_like(wide), np.zeros_like(wide)
    for number in reversed(range(2 * count, 3 * count)):
        if number not in profile.active:
            continue
        loop = profile.active.index(number)
        extent = np.minimum(profile.extents[loop], np.maximum(gpu.warp / within, 1))
        within = within * profile.extents[loop]
        if loop in access.strides:
            moved = np.abs(access.strides[loop])
            stride = np.where((distinct == 1) & (extent > 1) & (moved > 0), moved, stride)
            distinct = np.where(moved > 0, distinct * extent, distinct)
    banks = GPU.shared_banks
    apart = np.gcd(np.maximum(stride, 1).astype(np.int64), banks).astype(np.float32)
    conflicts = np.clip(np.minimum(apart / wide, distinct * wide / 4), 1, banks)
    return wide, conflicts, distinct


def _fetch_work(nest: LoopNest, profile: StageProfile, kernel: Kernel, gpu: Gpu) -> Work:
    """The work of a block's threads to fill shared memory."""
    stage = profile.nest
    inner = range(stage.num_host, len(stage.loops))
    width = stage.extents[-1] if stage.loops[-1].part else np.ones(nest.size)
    elements = _product(stage, inner) / width
    rounds = _product(stage, range(stage.num_host)) / np.maximum(kernel.blocks, 1)
    turns = np.ceil(elements / kernel.threads) * np.ceil(kernel.threads / np.float32(gpu.warp))
    each = GPU.fetch_instructions + profile.nest.stage.ops.flops + 4 * stage.stage.has_branch
    instructions = (rounds * turns * np.float32(each)).astype(np.float32)
    stores = (rounds * turns * width).astype(np.float32)
    ones = np.ones(nest.size, dtype=np.float32)
    return Work(instructions, stores, ones, 4 * ones)


def _plain_work(profile: StageProfile, kernel: Kernel, gpu: Gpu, together: bool) -> Work:
    """Work with one element per thread, or a reduction that the threads of a block share."""
    ones = np.ones(len(kernel.threads), dtype=np.float32)
    warps = kernel.blocks * np.ceil(kernel.threads / np.float32(gpu.warp))
    width = np.where(profile.nest.extents[-1] > 4, 1, profile.nest.extents[-1])
    lanes = np.maximum(kernel.threads * kernel.blocks, 1)
    turns = np.ceil(profile.iterations / width / lanes) * warps / np.maximum(kernel.blocks, 1)
    slow = gpu.warp * gpu.schedulers / gpu.fma_per_cycle
    each = width * np.float32(_cost(profile, slow)) + len(profile.accesses) + 3
    instructions = (turns * each).astype(np.float32)
    rounds = ones
    if together:
        steps = np.log2(np.maximum(kernel.threads, 2))
        instructions = instructions + (4 * steps * warps / np.maximum(kernel.blocks, 1))
        rounds = 1 + np.float32(0.2) * steps.astype(np.float32)
    return Work(instructions.astype(np.float32), 0 * ones, rounds, 2 * ones)


def _cost(profile: StageProfile, slow: float) -> float:
    """Issue slots of one statement; a multiply-add takes `slow` slots."""
    ops = profile.nest.stage.ops
    fused = min(ops.float_add, ops.float_mul)
    plain = ops.float_add + ops.float_mul - fused + ops.float_cmp
    special = ops.float_div + ops.float_special
    rest = ops.select + ops.int_add + ops.int_mul + ops.int_cmp + 4 * ops.int_div
    return max(plain * slow + special * GPU.special_function_slots + rest, 1.0)


def _moved(stage: StageNest, profile: StageProfile, access: AccessProfile, loops: range) -> Floats:
    """`[P]`: iterations of those given loops that move an access."""
    total = np.ones(stage.extents.shape[1], dtype=np.float32)
    for number in loops:
        if number in profile.active and profile.active.index(number) in access.strides:
            moves = access.strides[profile.active.index(number)] != 0
            total = total * np.where(moves, stage.extents[number], 1)
    return total.astype(np.float32)


def _product(stage: StageNest, loops: range | list[int]) -> Floats:
    product: Floats = stage.extents[list(loops)].prod(axis=0, dtype=np.float32)
    return product
