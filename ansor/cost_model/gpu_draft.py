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
import numpy.typing as npt

from ansor.cost_model.gpu_traffic import traffic
from ansor.cost_model.gpu_work import work_of
from ansor.features.kernels import Counts, Kernel, kernels
from ansor.features.profile import StageProfile
from ansor.features.rows import Floats
from ansor.hardware.gpu import Gpu
from ansor.program.nest import LoopNest

Bools = npt.NDArray[np.bool_]

_REGISTER_STEP = 8  # registers are handed out to threads in such steps
_NO_OVERLAP = 0.15  # share of the other resources' time that adds to the slowest; as for CPUs
_OVERHEAD = 0.15  # instructions beyond those counted: loops, predicates, addresses
_BARRIER_CYCLES = 40.0  # two barriers around a fetch, all warps at hand
_CACHE_LATENCY = 0.55  # of memory's latency, where the second cache has the data
_DEPENDENT_CYCLES = 4.0  # until a result can be used
_MOST_ASKED = 64.0  # bytes that a thread asks for before it waits
_LEAST_REACH = 0.02  # share of the bandwidth
_MISSES = 0.2  # share of repeated reads that miss the second cache where not everything fits


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


@dataclass(frozen=True, eq=False)
class _Grid:
    """How the blocks of a kernel come to the multiprocessors; `[P]` each."""

    blocks: Floats
    threads: Floats  # of a block
    resident: Floats  # blocks that a multiprocessor has room for
    most: Floats  # blocks of the busiest multiprocessor
    waves: Floats
    warps: Floats  # at home in the busiest multiprocessor

    @property
    def busy(self) -> Floats:
        """Blocks at home in the busiest multiprocessor."""
        at_home: Floats = np.minimum(self.resident, self.most)
        return at_home


def _grid(kernel: Kernel, gpu: Gpu) -> _Grid:
    resident = resident_blocks(kernel, gpu)
    blocks, threads = (x.astype(np.float32) for x in (kernel.blocks, kernel.threads))
    most = np.ceil(blocks / np.float32(gpu.multiprocessors))
    warps = np.minimum(resident, most) * np.ceil(threads / np.float32(gpu.warp))
    return _Grid(blocks, threads, resident, most, np.ceil(most / resident), warps)


def _breakdown(
    nest: LoopNest, profiles: dict[str, StageProfile], kernel: Kernel, gpu: Gpu
) -> GpuBreakdown:
    grid, hz = _grid(kernel, gpu), np.float32(gpu.frequency_hz)
    works = [work_of(nest, profiles[name], kernel, gpu) for name in kernel.members]
    instructions = sum(w.instructions for w in works) * np.float32(1 + _OVERHEAD)
    issue = grid.most * instructions / _issue_rate(grid.warps, works[0].in_flight, gpu) / hz
    shared = grid.most * sum(w.shared_cycles for w in works) / hz
    rounds = np.maximum.reduce([w.rounds for w in works])
    moved, unique = traffic(nest, profiles, kernel)
    cached = unique <= gpu.l2_bytes
    waiting = _waiting(grid, rounds, kernel.ahead, np.maximum(issue, shared), cached, gpu)
    asked = moved / np.maximum(grid.blocks * grid.threads * rounds, 1) * (1 + kernel.ahead)
    reach = _reach(grid, asked, gpu)
    l2 = moved / np.float32(gpu.l2_bandwidth) / reach
    again = np.where(cached, np.float32(0), np.float32(_MISSES)) * (moved - unique)
    dram = (unique + again) / np.float32(gpu.memory_bandwidth) / reach
    parts = np.stack([issue, shared, l2, dram]).astype(np.float32)
    slowest = parts.max(axis=0)
    rest = np.float32(_NO_OVERLAP) * (parts.sum(axis=0) - slowest)
    time = slowest + rest + waiting + np.float32(gpu.launch_s)
    full_waves = np.maximum(grid.blocks / gpu.multiprocessors / grid.resident, 1)
    tail, warps = grid.waves / full_waves, np.maximum(grid.warps, 1)
    fields = (*parts, waiting, grid.resident, warps, tail, time)
    return GpuBreakdown(*(field.astype(np.float32) for field in fields))


def _waiting(
    grid: _Grid, rounds: Floats, ahead: Counts, working: Floats, cached: Bools, gpu: Gpu
) -> Floats:
    """`[P]`: seconds in which a multiprocessor has nothing to do but wait for memory: while one
    block waits the others of the wave work, and it does so itself on what it fetched ahead."""
    latency = np.float32(gpu.memory_latency_s) * np.where(cached, np.float32(_CACHE_LATENCY), 1)
    barriers = np.float32(_BARRIER_CYCLES / gpu.frequency_hz)
    waiting = grid.waves * rounds * (latency + barriers)
    hidden = working * (ahead + 1 - 1 / np.maximum(grid.busy, 1))
    left: Floats = np.maximum(waiting - hidden, grid.waves * latency)
    return left


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


def _reach(grid: _Grid, asked: Floats, gpu: Gpu) -> Floats:
    """`[P]`: share of the second cache's bandwidth that a kernel can keep busy (Little's law), with
    each of its threads asking for so many bytes at a time."""
    latency = gpu.memory_latency_s * _CACHE_LATENCY
    needed = gpu.l2_bandwidth / gpu.multiprocessors * latency
    under_way = grid.busy * grid.threads * np.minimum(asked, np.float32(_MOST_ASKED))
    share = np.clip(under_way / np.float32(needed), _LEAST_REACH, 1)
    reached: Floats = share * np.minimum(grid.blocks / gpu.multiprocessors, 1)
    return reached


def _issue_rate(warps: Floats, in_flight: Floats, gpu: Gpu) -> Floats:
    """`[P]`: warp instructions of a multiprocessor per cycle."""
    per_scheduler = warps / np.float32(gpu.schedulers)
    ready = per_scheduler * np.minimum(in_flight, 8) / np.float32(_DEPENDENT_CYCLES)
    rate: Floats = gpu.schedulers * np.clip(ready, 1e-2, 1)
    return rate
