"""The draft for GPUs: an analytic model that ranks programs before any measurement.

Per kernel: what a multiprocessor needs for the instructions, for shared memory, and for waiting;
what the whole GPU needs for its second cache and its memory; the slowest counts, with a part of the
rest. Blocks run in waves of as many as registers, shared memory and threads leave room for; what a
block waits for is hidden by the others of its wave. After the roofline (Williams et al. 2009) and
the count of warps that hide latency (Volkov 2016).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ansor.features.kernels import Kernel, kernels
from ansor.features.profile import AccessProfile, StageProfile
from ansor.features.span import Floats
from ansor.hardware.gpu import Gpu
from ansor.program.loops import enclosing_loops, num_leading, structure_of
from ansor.program.nest import LoopNest, StageNest
from ansor.program.steps import (
    BindRows,
    BindTiles,
    BindWarps,
    CooperativeFetch,
    LoadFragment,
    ReduceInBlock,
    StoreFragment,
)

_SECTOR = 32  # bytes that memory hands out at a time
_BANKS = 32  # of shared memory, four bytes wide
_REGISTER_STEP = 8  # registers are handed out to threads in such steps
_NO_OVERLAP = 0.15  # share of the other resources' time that adds to the slowest; as for CPUs
_OVERHEAD = 0.15  # instructions beyond those counted: loops, predicates, addresses
_FETCH_INSTRUCTIONS = 6.0  # a load, a store, and their addresses
_BARRIER_CYCLES = 40.0  # two barriers around a fetch, all warps at hand
_CACHE_LATENCY = 0.55  # of memory's latency, where the second cache has the data
_SHARED_LATENCY = 30.0  # cycles
_DEPENDENT_CYCLES = 4.0  # until a result can be used
_MOST_ASKED = 64.0  # bytes that a thread asks for before it waits
_LEAST_REACH = 0.02  # share of the bandwidth
_MISSES = 0.2  # share of repeated reads that miss the second cache where not everything fits
# Registers that a thread's unrolled tile fills before the compiler, which loads early, may spill.
_EASILY_HELD = 128.0
_SPECIAL = 4.0  # issue slots of a division or an exponential


@dataclass(frozen=True, eq=False)
class GpuBreakdown:
    """Where one kernel's time goes; every field `[P] float32`, seconds unless said."""

    issue: Floats
    shared: Floats
    l2_traffic: Floats
    dram_traffic: Floats
    waiting: Floats
    resident: Floats  # blocks of a multiprocessor at a time
    warps: Floats  # at home in a multiprocessor
    tail: Floats  # ratio: waves over full waves
    seconds: Floats

    def columns(self, total: Floats) -> list[Floats]:
        """What the learned model is told, `[P]` each; `total` is the program's time."""
        issue = np.maximum(self.issue, 1e-9)
        return [
            np.log2(self.shared / issue + 1e-3),
            np.log2(self.l2_traffic / issue + 1e-3),
            np.log2(self.dram_traffic / issue + 1e-3),
            np.log2(self.waiting / issue + 1e-3),
            np.log2(self.resident),
            np.log2(self.warps),
            self.tail,
            self.seconds / total,
        ]


@dataclass(frozen=True, eq=False)
class _Work:
    """What one block needs; `[P]` each."""

    instructions: Floats  # of warps
    shared_cycles: Floats
    rounds: Floats  # of fetching and waiting for it
    in_flight: Floats  # instructions of a thread that do not wait for each other


def draft_for_gpu(
    nest: LoopNest, profiles: dict[str, StageProfile], gpu: Gpu
) -> dict[str, GpuBreakdown]:
    """Estimates every kernel of a population.

    Returns:
        by stage; its time counts at the root, stages inside have the rest of its breakdown.
    """
    found: dict[str, GpuBreakdown] = {}
    for kernel in kernels(nest):
        whole = _breakdown(nest, profiles, kernel, gpu)
        inside = replace(whole, seconds=np.zeros_like(whole.seconds))
        found |= dict.fromkeys(kernel.members, inside) | {kernel.root: whole}
    return {name: found[name] for name in profiles}


def _breakdown(
    nest: LoopNest, profiles: dict[str, StageProfile], kernel: Kernel, gpu: Gpu
) -> GpuBreakdown:
    works = [_work(nest, profiles[name], kernel, gpu) for name in kernel.members]
    resident = resident_blocks(kernel, gpu)
    block_warps = np.ceil(kernel.threads / np.float32(gpu.warp)).astype(np.float32)
    blocks = kernel.blocks.astype(np.float32)
    most = np.ceil(blocks / gpu.multiprocessors)  # of the busiest multiprocessor
    busy = np.minimum(resident, most)
    warps = busy * block_warps
    hz = np.float32(gpu.frequency_hz)
    instructions = sum(w.instructions for w in works) * np.float32(1 + _OVERHEAD)
    parallel = _issue_rate(warps, works[0].in_flight, gpu)
    issue = most * instructions / parallel / hz
    shared = most * sum(w.shared_cycles for w in works) / hz
    rounds = np.maximum.reduce([w.rounds for w in works])
    bytes_moved, unique = _traffic(nest, profiles, kernel)
    cached = unique <= gpu.l2_bytes
    latency = np.float32(gpu.memory_latency_s) * np.where(cached, np.float32(_CACHE_LATENCY), 1)
    waves = np.ceil(most / resident)
    waiting = waves * rounds * (latency + np.float32(_BARRIER_CYCLES) / hz)
    # While one block waits the others of the wave work.
    hidden = np.maximum(issue, shared) * (1 - 1 / np.maximum(busy, 1))
    waiting = np.maximum(waiting - hidden, waves * latency)
    threads = np.maximum(blocks * kernel.threads.astype(np.float32) * rounds, 1)
    reach = _reach(busy * kernel.threads.astype(np.float32), bytes_moved / threads, gpu)
    reach = reach * np.minimum(blocks / gpu.multiprocessors, 1)
    l2 = bytes_moved / np.float32(gpu.l2_bandwidth) / reach
    again = np.where(cached, np.float32(0), np.float32(_MISSES)) * (bytes_moved - unique)
    missing = unique + again
    dram = missing / np.float32(gpu.memory_bandwidth) / reach
    parts = np.stack([issue, shared, l2, dram]).astype(np.float32)
    slowest = parts.max(axis=0)
    time = slowest + np.float32(_NO_OVERLAP) * (parts.sum(axis=0) - slowest) + waiting
    time = time + np.float32(gpu.launch_s)
    full_waves = np.maximum(blocks / gpu.multiprocessors / resident, np.float32(1e-3))
    tail = (waves / np.maximum(full_waves, 1)).astype(np.float32)
    return GpuBreakdown(
        issue.astype(np.float32),
        shared.astype(np.float32),
        l2.astype(np.float32),
        dram.astype(np.float32),
        waiting.astype(np.float32),
        resident.astype(np.float32),
        np.maximum(warps, 1).astype(np.float32),
        tail,
        time.astype(np.float32),
    )


def resident_blocks(kernel: Kernel, gpu: Gpu) -> Floats:
    """`[P]`: blocks at home in a multiprocessor at a time; at least one.

    As in NVIDIA's occupancy calculator, but for the granularity of shared memory.
    """
    registers = -(-kernel.registers // _REGISTER_STEP) * _REGISTER_STEP
    threads = -(-kernel.threads // gpu.warp) * gpu.warp
    by_registers = gpu.registers_per_sm // np.maximum(registers * threads, 1)
    by_shared = gpu.shared_per_sm // np.maximum(kernel.shared_bytes, 1)
    by_threads = gpu.threads_per_sm // np.maximum(threads, 1)
    least = np.minimum(np.minimum(by_registers, by_shared), by_threads)
    fits: Floats = np.clip(least, 1, gpu.blocks_per_sm).astype(np.float32)
    return fits


def _reach(threads: Floats, asked: Floats, gpu: Gpu) -> Floats:
    """`[P]`: share of the second cache's bandwidth that so many threads of a multiprocessor, each
    asking for so many bytes at a time, can keep busy (Little's law)."""
    latency = gpu.memory_latency_s * _CACHE_LATENCY
    needed = gpu.l2_bandwidth / gpu.multiprocessors * latency
    under_way = threads * np.minimum(asked, np.float32(_MOST_ASKED))
    share: Floats = np.clip(under_way / np.float32(needed), _LEAST_REACH, 1)
    return share


def _issue_rate(warps: Floats, in_flight: Floats, gpu: Gpu) -> Floats:
    """`[P]`: warp instructions of a multiprocessor per cycle."""
    per_scheduler = warps / np.float32(gpu.schedulers)
    ready = per_scheduler * np.minimum(in_flight, 8) / np.float32(_DEPENDENT_CYCLES)
    rate: Floats = gpu.schedulers * np.clip(ready, 1e-2, 1)
    return rate


def _work(nest: LoopNest, profile: StageProfile, kernel: Kernel, gpu: Gpu) -> _Work:
    """What a block spends on one of its stages."""
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


def _tiled_work(nest: LoopNest, profile: StageProfile, kernel: Kernel, gpu: Gpu) -> _Work:
    """The multiply-adds of a block's tile, and its loads from shared memory."""
    stage, sketch = profile.nest, nest.population.sketch
    structure = structure_of(sketch.roles.shape[stage.stage.name])
    count = num_leading(stage.stage)
    fetches = enclosing_loops(stage.stage, structure)
    outer = fetches + (fetches - 3 * count)  # loops around the tile that a thread unrolls
    steps = _product(stage, range(3 * count, outer))
    rounds = _product(stage, range(3 * count, fetches))
    points = _product(stage, range(outer, len(stage.loops))) * kernel.vthreads
    warps = np.ceil(kernel.threads / np.float32(gpu.warp))
    slow = gpu.warp * gpu.schedulers / gpu.fma_per_cycle  # cycles a scheduler needs for one
    operations = points * np.float32(_cost(profile, slow))
    depth = sum(loop < outer for loop in profile.active)
    loads, cycles = np.float32(0), np.float32(0)
    held = points / np.maximum(_product(stage, _reductions(stage, outer)), 1)  # registers
    for access in profile.accesses:
        if access.is_write:
            continue
        turns = _moved(stage, profile, access, range(count, 2 * count))
        elements = access.footprint[depth] * turns
        held = held + elements
        wide, conflicts, distinct = _lanes(stage, profile, access, kernel, gpu, outer)
        loads = loads + elements / wide
        words = np.maximum(distinct * wide / _BANKS, 1) * conflicts
        cycles = cycles + elements / wide * words
    pressure = np.sqrt(np.maximum(held / np.float32(_EASILY_HELD), 1))
    work = steps * warps * (operations + loads) * pressure
    accumulators = points / np.maximum(_product(stage, _reductions(stage, outer)), 1)
    return _Work(work, steps * warps * cycles, rounds, np.maximum(accumulators, 1))


def _tensor_work(profile: StageProfile, kernel: Kernel, gpu: Gpu) -> _Work:
    """The instructions of the tensor cores of a block."""
    stage = profile.nest
    count, reductions = num_leading(stage.stage), len(stage.stage.reduce)
    inner = 2 * count + 2 * reductions
    rounds = _product(stage, range(2 * count, 2 * count + reductions))
    steps = _product(stage, range(2 * count, inner))
    tiles = _product(stage, range(inner, inner + count))
    warps = kernel.threads.astype(np.float32) / np.float32(gpu.warp)
    multiply_adds = _product(stage, range(inner + count, len(stage.loops)))
    cycles = multiply_adds / np.float32(gpu.tensor_fma_per_cycle)
    instructions = steps * tiles * warps * cycles * np.float32(gpu.schedulers)
    return _Work(instructions, 0 * steps, rounds, 2 * tiles)


def _fragment_work(profile: StageProfile, kernel: Kernel, gpu: Gpu) -> _Work:
    """What the warps of a block move between shared memory and their registers."""
    stage = profile.nest
    item_bytes = profile.accesses[-1].buffer.item_bytes
    elements = _product(stage, range(len(stage.loops))) / kernel.blocks.astype(np.float32)
    cycles = elements * np.float32(item_bytes / gpu.shared_bytes_per_cycle)
    return _Work(cycles, cycles, np.ones_like(cycles), 4 * np.ones_like(cycles))


def _reductions(stage: StageNest, first: int) -> list[int]:
    return [i for i in range(first, len(stage.loops)) if stage.loops[i].reduce]


def _lanes(
    stage: StageNest,
    profile: StageProfile,
    access: AccessProfile,
    kernel: Kernel,
    gpu: Gpu,
    outer: int,
) -> tuple[Floats, Floats, Floats]:
    """How a warp reads shared memory, `[P]` each: elements of a load, turns that it takes because
    of banks, and different loads of its threads."""
    wide = np.ones(len(kernel.threads), dtype=np.float32)
    for loop in sorted(access.strides, reverse=True):
        number = profile.active[loop]
        if number < outer:
            break
        extent = profile.extents[loop]
        wide = np.where(access.strides[loop] == wide, wide * extent, wide)
    wide = np.gcd(wide.astype(np.int64), 4).astype(np.float32)
    count = num_leading(stage.stage)
    within = np.ones_like(wide)  # threads of a warp seen so far
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
    apart = np.gcd(np.maximum(stride, 1).astype(np.int64), _BANKS).astype(np.float32)
    conflicts = np.clip(np.minimum(apart / wide, distinct * wide / 4), 1, _BANKS)
    return wide, conflicts, distinct


def _fetch_work(nest: LoopNest, profile: StageProfile, kernel: Kernel, gpu: Gpu) -> _Work:
    """What the threads of a block do to fill shared memory."""
    stage = profile.nest
    own = range(stage.num_host, len(stage.loops))
    width = stage.extents[-1] if stage.loops[-1].part else np.ones(nest.size)
    elements = _product(stage, own) / width
    rounds = _product(stage, range(stage.num_host)) / np.maximum(kernel.blocks, 1)
    turns = np.ceil(elements / kernel.threads) * np.ceil(kernel.threads / np.float32(gpu.warp))
    each = _FETCH_INSTRUCTIONS + profile.nest.stage.ops.flops + 4 * stage.stage.has_branch
    instructions = (rounds * turns * np.float32(each)).astype(np.float32)
    stores = (rounds * turns * width).astype(np.float32)
    ones = np.ones(nest.size, dtype=np.float32)
    return _Work(instructions, stores, ones, 4 * ones)


def _plain_work(profile: StageProfile, kernel: Kernel, gpu: Gpu, together: bool) -> _Work:
    """An element per thread, or a reduction that the threads of a block share."""
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
    return _Work(instructions.astype(np.float32), 0 * ones, rounds, 2 * ones)


def _cost(profile: StageProfile, slow: float) -> float:
    """Issue slots of one statement."""
    ops = profile.nest.stage.ops
    fused = min(ops.float_add, ops.float_mul)
    plain = ops.float_add + ops.float_mul - fused + ops.float_cmp
    special = ops.float_div + ops.float_special
    rest = ops.select + ops.int_add + ops.int_mul + ops.int_cmp + 4 * ops.int_div
    return max(plain * slow + special * _SPECIAL + rest, 1.0)


def _traffic(
    nest: LoopNest, profiles: dict[str, StageProfile], kernel: Kernel
) -> tuple[Floats, Floats]:
    """`[P]` each: bytes that a kernel asks the second cache for, and different bytes of them."""
    sketch = nest.population.sketch
    moved = np.zeros(nest.size, dtype=np.float32)
    unique = np.zeros(nest.size, dtype=np.float32)
    on_chip = {sketch.dag.stages[name].output for name in sketch.roles.scope}
    for name in kernel.members:
        profile = profiles[name]
        for access in profile.accesses:
            if access.buffer.name in on_chip:
                continue
            moved = moved + _asked_for(nest, profile, access, kernel)
            unique = unique + access.bytes[0]
    return moved, np.minimum(unique, moved)


def _asked_for(
    nest: LoopNest, profile: StageProfile, access: AccessProfile, kernel: Kernel
) -> Floats:
    """`[P]` bytes: each block, or each round of a fetch, asks for what it touches, in sectors."""
    depth = sum(loop < _shared_from(nest, profile, kernel) for loop in profile.active)
    item = np.float32(access.buffer.item_bytes)
    run = np.maximum(access.run[depth] * item, item)
    sectors = np.where(run < _SECTOR, _SECTOR / run, 1 + _SECTOR / 4 / run)
    if depth == 0:
        sectors = np.maximum(sectors, _scattered(profile, access))
    spans = profile.outer[depth] * access.bytes[depth]
    asked: Floats = (spans * np.minimum(sectors, _SECTOR / item)).astype(np.float32)
    return asked


def _shared_from(nest: LoopNest, profile: StageProfile, kernel: Kernel) -> int:
    """How many loops are outside of what the threads of a block touch together."""
    roles = nest.population.sketch.roles
    if isinstance(roles.placed.get(profile.nest.stage.name), CooperativeFetch):
        return profile.nest.num_host
    bound = roles.bound[kernel.root]
    if isinstance(bound, BindTiles | BindWarps):
        return num_leading(nest.stages[kernel.root].stage)
    return bound.rows if isinstance(bound, BindRows) else 0


def _scattered(profile: StageProfile, access: AccessProfile) -> Floats:
    """`[P]`: sectors asked for over those needed, where threads next to each other are apart in
    memory: the innermost spatial loop but for the vector's numbers the threads."""
    stage, factor = profile.nest, np.ones(profile.extents.shape[1], dtype=np.float32)
    width = stage.extents[-1] if stage.loops[-1].part else np.ones_like(factor)
    for loop, number in enumerate(profile.active):
        if stage.loops[number].reduce or stage.loops[number].part or loop not in access.strides:
            continue
        apart = np.abs(access.strides[loop]) / width
        factor = np.where(apart > 1, apart, np.where(apart > 0, 1, factor))
    return factor.astype(np.float32)


def _moved(stage: StageNest, profile: StageProfile, access: AccessProfile, loops: range) -> Floats:
    """`[P]`: iterations of the given loops, of those that move an access."""
    total = np.ones(stage.extents.shape[1], dtype=np.float32)
    for number in loops:
        if number in profile.active and profile.active.index(number) in access.strides:
            moves = access.strides[profile.active.index(number)] != 0
            total = total * np.where(moves, stage.extents[number], 1)
    return total.astype(np.float32)


def _product(stage: StageNest, loops: range | list[int]) -> Floats:
    product: Floats = stage.extents[list(loops)].prod(axis=0, dtype=np.float32)
    return product
