"""The draft: an analytic model of a CPU that ranks programs before any measurement.

The draft of a stage compares the time of the core (arithmetic units, load and store ports, front
end) with the time of the transfers between caches and from memory. The larger one counts, plus a
share of the smaller one, because overlap is never perfect.
Sources: the roofline of each resource (Williams et al. 2009), the draft-then-verify scheme of
Pruner (ASPLOS'25), and the register tile of Goto and van de Geijn (2008). The constants stand in
`ansor.targets.cpu.draft.constants`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.features.loop_tables import Floats, masked_product
from ansor.features.profile import StageProfile
from ansor.targets.cpu.draft.constants import (
    DEFAULTS,
    LEAST_RATIO,
    CoreConstants,
    DraftConstants,
    OverlapConstants,
)
from ansor.targets.cpu.draft.register_tile import TileCost, register_tiles, runs_in_flight
from ansor.targets.cpu.draft.streaming import cold_bytes, stall_cycles
from ansor.targets.cpu.draft.tile_block import tile_blocks
from ansor.targets.cpu.draft.traffic import fetched_bytes, page_misses, traffic_bytes
from ansor.targets.cpu.machine import DotUnit, Hardware


@dataclass(frozen=True, eq=False)
class Breakdown:
    """The parts of a stage's time, `[P] float32` each, in cycles of one core by default."""

    arithmetic: Floats
    memory_ports: Floats
    issue: Floats
    l2_traffic: Floats
    l3_traffic: Floats
    dram_traffic: Floats
    parallel_speedup: Floats  # ratio
    accumulators: Floats  # vector registers
    code: Floats  # instructions of the unrolled block, which LLVM compiles
    seconds: Floats

    def columns(self, total: Floats) -> list[Floats]:
        """Inputs of the learned model, `[P]` each; `total` is the time of the program."""
        cycles = np.maximum(self.arithmetic, 1)
        return [
            np.log2(self.memory_ports / cycles + LEAST_RATIO),
            np.log2(self.issue / cycles + LEAST_RATIO),
            np.log2(self.l2_traffic / cycles + LEAST_RATIO),
            np.log2(self.l3_traffic / cycles + LEAST_RATIO),
            np.log2(self.dram_traffic / cycles + LEAST_RATIO),
            self.parallel_speedup,
            self.accumulators,
            self.seconds / total,
        ]


@dataclass(frozen=True, eq=False)
class _Needs:
    """Cycles for which a stage occupies each resource, `[P]` cycles of one core each.

    Attributes:
        arithmetic: arithmetic units, or the latency of dependent additions.
        ports: load and store ports.
        issue: front end.
        core: the three above, with their overlap.
        transfers: transfers from L2, from the last cache and from memory.
        overlap: constants of the overlap.
    """

    arithmetic: Floats
    ports: Floats
    issue: Floats
    core: Floats
    transfers: tuple[Floats, Floats, Floats]
    overlap: OverlapConstants

    @property
    def traffic(self) -> Floats:
        """Sum of all transfers."""
        total: Floats = np.add.reduce(self.transfers)
        return total

    @property
    def cycles(self) -> Floats:
        """Cycles of the stage, with the overlap of core and transfers."""
        return _overlapped(self.overlap.traffic_share, self.core, self.traffic)

    def beside(self, host: _Needs) -> Floats:
        """Cycles that the stage adds to its host. The lines of the stage come in during the host's
        reduction."""
        both = (self.core + host.core, self.traffic + host.traffic)
        together = _overlapped(self.overlap.traffic_share, *both)
        added: Floats = np.maximum(together - host.cycles, 0)
        return added


def draft(
    profiles: dict[str, StageProfile], hardware: Hardware, constants: DraftConstants = DEFAULTS
) -> dict[str, Breakdown]:
    """Estimates each stage of a population."""
    tiles = register_tiles(profiles, hardware, constants) | tile_blocks(profiles, hardware)
    needs = {name: _needs(p, tiles[name], hardware, constants) for name, p in profiles.items()}
    hosts = {name: p.nest.finishes for name, p in profiles.items()}
    beside = {name: needs[host] for name, host in hosts.items() if host is not None}
    return {
        name: _breakdown(p, tiles[name], needs[name], beside.get(name), hardware, constants.core)
        for name, p in profiles.items()
    }


def _needs(
    profile: StageProfile, tile: TileCost, hardware: Hardware, constants: DraftConstants
) -> _Needs:
    """The needs of one stage for the core and the caches."""
    core, overlap = constants.core, constants.overlap
    computing = tile.steps * _arithmetic_cycles(profile, tile, hardware, core)
    waiting = tile.steps * _latency(profile, tile, hardware, core)
    arithmetic = np.maximum(computing, waiting)
    ports = tile.steps * np.maximum(
        tile.loads / hardware.loads_per_cycle, tile.stores / hardware.stores_per_cycle
    )
    issued = np.maximum(
        tile.steps
        * (_code(tile) + constants.compiler.loop_instructions)
        / np.float32(hardware.issue_width),
        tile.steps * tile.vectors / np.float32(hardware.vector_issue),
    )
    issue: Floats = issued + _decoding(profile, core)
    traffic = traffic_bytes(profile, hardware, core)
    level2, last, _ = hardware.cache_bandwidth
    rates = (level2, last, _memory_bytes_per_cycle(hardware))
    l2, l3, dram = (t / np.float32(rate) for t, rate in zip(traffic, rates, strict=True))
    busy = _overlapped(overlap.core_share, computing, waiting, ports, issue)
    return _Needs(arithmetic, ports, issue, busy, (l2, l3, dram), overlap)


def _breakdown(
    profile: StageProfile,
    tile: TileCost,
    needs: _Needs,
    host: _Needs | None,
    hardware: Hardware,
    core: CoreConstants,
) -> Breakdown:
    """The draft of one stage; `host` belongs to the stage that it finishes as a fused consumer."""
    cycles = needs.cycles
    if host is not None:
        cycles = np.where(_is_prefetched(profile), needs.beside(host), cycles)
    lookups = page_misses(profile, hardware.tlb_pages) * np.float32(hardware.tlb_miss_cycles)
    cold = cold_bytes(profile, core) / np.float32(_memory_bytes_per_cycle(hardware))
    stalls = stall_cycles(profile, cold, cycles, hardware.cores)
    cycles = cycles + stalls
    conditions = _conditions(profile) * np.float32(core.skip_condition_cycles)
    serial = tile.drain + np.float32(core.boundary_check_cycles) * tile.checks
    cycles = cycles + tile.steps * serial + lookups + conditions
    cycles = cycles * tile.risk
    fetched = fetched_bytes(profile, hardware.cores)
    cycles = cycles + np.float32(core.shared_byte_cycles) * fetched
    speedup = parallel_speedup(profile.parallel, hardware.cores)
    time: Floats = cycles / np.float32(hardware.frequency_hz) / speedup
    start = _thread_start(profile, fetched, hardware, core)
    l2, l3, dram = needs.transfers
    total: Floats = (time + start).astype(np.float32)
    return Breakdown(
        *(needs.arithmetic, needs.ports, needs.issue, l2, l3, dram + cold, speedup),
        *(tile.accumulators, _code(tile), total),
    )


def _thread_start(
    profile: StageProfile, fetched: Floats, hardware: Hardware, core: CoreConstants
) -> Floats:
    """`[P]`: seconds to start threads; the stage reads `fetched` bytes of other threads."""
    sharing, alone = core.thread_start_with_sharing, core.thread_start
    starts = np.where(fetched > 0, np.float32(sharing), np.float32(alone))
    start = np.where(profile.parallel > 1, starts * np.float32(hardware.parallel_overhead_s), 0)
    if profile.nest.num_host:  # an attached stage starts threads only at the root
        start = np.where(profile.nest.position == 0, start, 0)
    return start


def _is_prefetched(profile: StageProfile) -> npt.NDArray[np.bool_]:
    """`[P]`: whether the lines of a fused consumer are prefetched before each tile of its host, see
    `PrefetchConsumer`."""
    inner = np.asarray([k >= profile.nest.num_host for k in profile.active])[:, None]
    item_bytes = max(access.buffer.item_bytes for access in profile.accesses)
    small: npt.NDArray[np.bool_]
    tile_bytes = masked_product(inner, profile.extents) * np.float32(item_bytes)
    small = tile_bytes <= profile.nest.prefetched_tile_bytes
    return small


def _code(tile: TileCost) -> Floats:
    """`[P]`: instructions of one step."""
    code: Floats = tile.operations + tile.loads + tile.stores
    return code


def _overlapped(share: float, *needs: Floats) -> Floats:
    """`[P]`: the largest need, plus a share of the sum of the smaller ones."""
    slowest = np.maximum.reduce(needs)
    cycles: Floats = slowest + np.float32(share) * (np.add.reduce(needs) - slowest)
    return cycles


def _decoding(profile: StageProfile, core: CoreConstants) -> Floats:
    """`[P]`: cycles to compute the indices of a fused parallel loop. An attached stage needs none,
    because its host computes them."""
    fused = profile.nest.parallel[list(profile.active)] & (profile.extents > 1)
    further = np.maximum(fused.sum(axis=0, dtype=np.float32) - 1, 0)
    cycles = profile.parallel * further * np.float32(core.index_decoding_cycles)
    at_root: Floats = np.where(profile.nest.position == 0, cycles, 0).astype(np.float32)
    return at_root


def _conditions(profile: StageProfile) -> Floats:
    """`[P]`: evaluations of the conditions that skip steps on padding."""
    count: Floats = np.where(profile.guarded, profile.outer[1:], 0).sum(axis=0, dtype=np.float32)
    return count


def parallel_speedup(iterations: Floats, cores: int) -> Floats:
    """`[P]`: speed-up of a parallel loop that is split into equal blocks of iterations."""
    blocks = np.ceil(iterations / np.float32(cores))
    ratio: Floats = (iterations / blocks).astype(np.float32)
    return ratio


def _arithmetic_cycles(
    profile: StageProfile, tile: TileCost, hardware: Hardware, core: CoreConstants
) -> Floats:
    """`[P]`: cycles of one step in the arithmetic units."""
    unit = _unit(profile, hardware)
    if unit is not None:
        widening = tile.loads * np.float32(unit.widening / hardware.fma_per_cycle)
        busy: Floats = tile.statements * tile.fill / np.float32(unit.per_cycle) + widening
        return busy
    ops = profile.nest.stage.ops
    fused = min(ops.float_add, ops.float_mul)
    plain = ops.float_add + ops.float_mul - fused + ops.float_cmp + _selects(profile, tile)
    plain += ops.int_add + ops.int_mul + ops.int_cmp + ops.int_div * core.division_cycles
    vectors = tile.statements * tile.fill
    cycles = vectors * np.maximum(plain, np.float32(1)) / np.float32(hardware.fma_per_cycle)
    cycles = cycles + vectors * np.float32(ops.float_div * core.division_cycles)
    special = np.float32(ops.float_special * core.special_function_cycles)
    cycles = cycles + vectors * special
    cycles = cycles + tile.shuffles * np.float32(core.shuffle_cycles)
    result: Floats = cycles.astype(np.float32)
    return result


def _unit(profile: StageProfile, hardware: Hardware) -> DotUnit | None:
    """What executes the instruction that adds up groups of a stage."""
    nest = profile.nest
    return hardware.dot_unit(nest.tile_instruction or nest.stage.instruction)


def _selects(profile: StageProfile, tile: TileCost) -> Floats:
    """`[P]`: selections of one statement. A statement whose copies have constant conditions has
    none."""
    known = tile.spelled & bool(profile.nest.stage.has_branch)
    count: Floats = np.where(known, np.float32(0), np.float32(profile.nest.stage.ops.select))
    return count


def _latency(
    profile: StageProfile, tile: TileCost, hardware: Hardware, core: CoreConstants
) -> Floats:
    """`[P]`: cycles of one step in which dependent additions wait, with several runs in flight."""
    if not profile.nest.stage.reduce:
        return np.zeros_like(tile.depth)
    unit = _unit(profile, hardware)
    latency = hardware.fma_latency if unit is None else unit.latency
    step = tile.statements
    if profile.nest.tile_instruction:  # most of what waits in the window loads rows
        step = step + tile.loads
    runs = runs_in_flight(step * tile.chain / tile.depth, hardware, core)
    waits: Floats = np.float32(latency) * tile.depth / runs
    return waits


def _memory_bytes_per_cycle(hardware: Hardware) -> float:
    """One core's share of the memory bandwidth."""
    return hardware.memory_bandwidth / hardware.frequency_hz / hardware.cores
