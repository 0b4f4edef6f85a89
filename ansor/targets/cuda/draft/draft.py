"""The draft for GPUs: an analytic model that ranks programs before any measurement.

The draft of a kernel compares the time of a multiprocessor for instructions and for shared memory
with the time of the GPU for L2 and for memory. The longest time counts, plus a share of the
shorter ones and the exposed latency of memory. Blocks run in waves. Registers, shared memory and
threads limit the blocks of a wave. While one block waits, another block of its wave works.
Sources: the roofline (Williams et al. 2009) and the number of warps that hide latency (Volkov
2016). The constants stand in `ansor.targets.cuda.draft.constants`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ansor.features.loop_tables import Bools, Floats
from ansor.features.profile import StageProfile
from ansor.program.nest import LoopNest
from ansor.targets.cuda.draft.constants import GPU
from ansor.targets.cuda.draft.traffic import fits_l2, memory_bytes, traffic
from ansor.targets.cuda.draft.work import work_of
from ansor.targets.cuda.kernels import Counts, Kernel, kernels
from ansor.targets.cuda.machine import Gpu
from ansor.targets.time_parts import TimeParts


@dataclass(frozen=True, eq=False)
class GpuBreakdown:
    """The parts of a kernel's time; each array is `[P] float32`, in seconds by default.

    Attributes:
        is_root: whether the stage is the root of its kernel and has the kernel's time; the time of
            another stage is zero.
    """

    issue: Floats
    shared: Floats
    l2_traffic: Floats
    dram_traffic: Floats
    waiting: Floats
    resident: Floats  # resident blocks of a multiprocessor
    warps: Floats  # resident warps of a multiprocessor
    tail: Floats  # ratio: waves over the waves of a full GPU
    together: Floats  # the first four, with their overlap
    launch: Floats
    seconds: Floats
    is_root: bool = True

    @property
    def code(self) -> Floats:
        """Zeros: the instructions of a kernel are not counted."""
        return np.zeros_like(self.seconds)

    def columns(self, total: Floats) -> list[Floats]:
        """Inputs of the learned model, `[P]` each; `total` is the time of the program."""
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

    def parts(self) -> TimeParts:
        """The parts of the kernel's time; none for a stage that is not its root."""
        if not self.is_root:
            return TimeParts({}, self.seconds)
        resources = {
            "instructions": self.issue,
            "shared memory": self.shared,
            "transfers from L2": self.l2_traffic,
            "transfers from memory": self.dram_traffic,
        }
        further = {"latency of memory": self.waiting, "start of the kernel": self.launch}
        return TimeParts(resources, self.together, further)


def draft_for_gpu(
    nest: LoopNest, profiles: dict[str, StageProfile], gpu: Gpu
) -> dict[str, GpuBreakdown]:
    """Estimates each kernel of a population.

    Returns:
        The breakdown of each stage's kernel. The root stage of a kernel has its time; the time of
        an inner stage is zero.
    """
    breakdowns: dict[str, GpuBreakdown] = {}
    for kernel in kernels(nest):
        whole = _breakdown(nest, profiles, kernel, gpu)
        inside = replace(whole, seconds=np.zeros_like(whole.seconds), is_root=False)
        breakdowns |= dict.fromkeys(kernel.members, inside) | {kernel.root: whole}
    return {name: breakdowns[name] for name in profiles}


@dataclass(frozen=True, eq=False)
class Grid:
    """Distribution of a kernel's blocks to the multiprocessors; `[P]` each."""

    blocks: Floats
    threads: Floats  # threads of a block
    resident: Floats  # most resident blocks of a multiprocessor
    most: Floats  # blocks of the busiest multiprocessor
    waves: Floats
    warps: Floats  # resident warps of the busiest multiprocessor

    @property
    def busy(self) -> Floats:
        """Resident blocks of the busiest multiprocessor."""
        busy: Floats = np.minimum(self.resident, self.most)
        return busy


def grid_of(kernel: Kernel, gpu: Gpu) -> Grid:
    """The distribution of a kernel's blocks."""
    resident = resident_blocks(kernel, gpu)
    blocks, threads = (x.astype(np.float32) for x in (kernel.blocks, kernel.threads))
    most = np.ceil(blocks / np.float32(gpu.multiprocessors))
    warps = np.minimum(resident, most) * np.ceil(threads / np.float32(gpu.warp))
    return Grid(blocks, threads, resident, most, np.ceil(most / resident), warps)


def _breakdown(
    nest: LoopNest, profiles: dict[str, StageProfile], kernel: Kernel, gpu: Gpu
) -> GpuBreakdown:
    grid, hz = grid_of(kernel, gpu), np.float32(gpu.frequency_hz)
    works = [work_of(nest, profiles[name], kernel, gpu) for name in kernel.members]
    instructions = sum(w.instructions for w in works) * np.float32(
        1 + GPU.instruction_overhead_share
    )
    issue = grid.most * instructions / _issue_rate(grid.warps, works[0].in_flight, gpu) / hz
    shared = grid.most * sum(w.shared_cycles for w in works) / hz
    rounds = np.maximum.reduce([w.rounds for w in works])
    moved, unique = traffic(nest, profiles, kernel)
    cached = fits_l2(unique, gpu)
    waiting = _waiting(grid, rounds, kernel.ahead, np.maximum(issue, shared), cached, gpu)
    requested = moved / np.maximum(grid.blocks * grid.threads * rounds, 1) * (1 + kernel.ahead)
    reach = _bandwidth_share(grid, requested, gpu)
    l2 = moved / np.float32(gpu.l2_bandwidth) / reach
    dram = memory_bytes(moved, unique, gpu) / np.float32(gpu.memory_bandwidth) / reach
    parts = np.stack([issue, shared, l2, dram]).astype(np.float32)
    slowest = parts.max(axis=0)
    rest = np.float32(GPU.overlap_share) * (parts.sum(axis=0) - slowest)
    together = slowest + rest
    launch = np.full(nest.size, gpu.launch_s, dtype=np.float32)
    time = together + waiting + launch
    full_waves = np.maximum(grid.blocks / gpu.multiprocessors / grid.resident, 1)
    tail, warps = grid.waves / full_waves, np.maximum(grid.warps, 1)
    fields = (*parts, waiting, grid.resident, warps, tail, together, launch, time)
    return GpuBreakdown(*(field.astype(np.float32) for field in fields))


def _waiting(
    grid: Grid, rounds: Floats, ahead: Counts, working: Floats, cached: Bools, gpu: Gpu
) -> Floats:
    """`[P]`: seconds in which a multiprocessor waits for memory without any work.

    Two kinds of work hide the latency: the work of the other blocks of a wave, and the work of a
    block on data that it fetched ahead.
    """
    share = np.where(cached, np.float32(GPU.l2_latency_share), 1)
    latency = np.float32(gpu.memory_latency_s) * share
    barriers = np.float32(GPU.barrier_cycles / gpu.frequency_hz)
    waiting = grid.waves * rounds * (latency + barriers)
    hidden = working * (ahead + 1 - 1 / np.maximum(grid.busy, 1))
    left: Floats = np.maximum(waiting - hidden, grid.waves * latency)
    return left


def resident_blocks(kernel: Kernel, gpu: Gpu) -> Floats:
    """`[P]`: most resident blocks of a multiprocessor, at least one.

    Source: NVIDIA's occupancy calculator, without the granularity of shared memory.
    """
    registers = -(-kernel.registers // GPU.register_granularity) * GPU.register_granularity
    threads = -(-kernel.threads // gpu.warp) * gpu.warp
    by_registers = gpu.registers_per_sm // np.maximum(registers * threads, 1)
    by_shared = gpu.shared_per_sm // np.maximum(kernel.shared_bytes, 1)
    by_threads = gpu.threads_per_sm // np.maximum(threads, 1)
    least = np.minimum(np.minimum(by_registers, by_shared), by_threads)
    fits: Floats = np.clip(least, 1, gpu.blocks_per_sm).astype(np.float32)
    return fits


def _bandwidth_share(grid: Grid, requested: Floats, gpu: Gpu) -> Floats:
    """`[P]`: share of the L2 bandwidth that a kernel can use (Little's law).

    Args:
        requested: `[P]`: bytes that a thread requests in one round.
    """
    latency = gpu.memory_latency_s * GPU.l2_latency_share
    needed = gpu.l2_bandwidth / gpu.multiprocessors * latency
    per_thread = np.minimum(requested, np.float32(GPU.most_bytes_in_flight))
    in_flight = grid.busy * grid.threads * per_thread
    share = np.clip(in_flight / np.float32(needed), GPU.least_bandwidth_share, 1)
    reached: Floats = share * np.minimum(grid.blocks / gpu.multiprocessors, 1)
    return reached


def _issue_rate(warps: Floats, in_flight: Floats, gpu: Gpu) -> Floats:
    """`[P]`: warp instructions of a multiprocessor per cycle."""
    per_scheduler = warps / np.float32(gpu.schedulers)
    ready = per_scheduler * np.minimum(in_flight, 8) / np.float32(GPU.dependent_issue_cycles)
    rate: Floats = gpu.schedulers * np.clip(ready, 1e-2, 1)
    return rate
