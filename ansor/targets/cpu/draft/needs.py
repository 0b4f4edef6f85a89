"""The cycles for which a stage occupies each resource of a core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansor.features.loop_tables import Floats
from ansor.features.profile import StageProfile
from ansor.targets.cpu.draft.constants import CoreConstants, DraftConstants, OverlapConstants
from ansor.targets.cpu.draft.register_tile import TileCost, runs_in_flight
from ansor.targets.cpu.draft.traffic import traffic_bytes
from ansor.targets.cpu.machine import DotUnit, Hardware


@dataclass(frozen=True, eq=False)
class Needs:
    """Cycles for which a stage occupies each resource, `[P]` cycles of one core each.

    Attributes:
        computing: arithmetic units.
        waiting: latency of dependent additions.
        ports: load and store ports.
        issue: front end.
        decoding: part of `issue` that computes indices of a fused parallel loop.
        core: the resources above, with their overlap.
        transfers: transfers from L2, from the last cache and from memory.
        overlap: constants of the overlap.
    """

    computing: Floats
    waiting: Floats
    ports: Floats
    issue: Floats
    decoding: Floats
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

    def beside(self, host: Needs) -> Floats:
        """Cycles that the stage adds to its host. The lines of the stage come in during the host's
        reduction."""
        both = (self.core + host.core, self.traffic + host.traffic)
        together = _overlapped(self.overlap.traffic_share, *both)
        added: Floats = np.maximum(together - host.cycles, 0)
        return added


def needs_of(
    profile: StageProfile, tile: TileCost, hardware: Hardware, constants: DraftConstants
) -> Needs:
    """The needs of one stage for the core and the caches."""
    core, overlap = constants.core, constants.overlap
    computing = tile.steps * _arithmetic_cycles(profile, tile, hardware, core)
    waiting = tile.steps * _latency(profile, tile, hardware, core)
    ports = tile.steps * np.maximum(
        tile.loads / hardware.loads_per_cycle, tile.stores / hardware.stores_per_cycle
    )
    issued = np.maximum(
        tile.steps
        * (tile.code + constants.compiler.loop_instructions)
        / np.float32(hardware.issue_width),
        tile.steps * tile.vectors / np.float32(hardware.vector_issue),
    )
    decoding = _decoding(profile, core)
    issue: Floats = issued + decoding
    traffic = traffic_bytes(profile, hardware, core)
    level2, last, _ = hardware.cache_bandwidth
    rates = (level2, last, memory_bytes_per_cycle(hardware))
    l2, l3, dram = (t / np.float32(rate) for t, rate in zip(traffic, rates, strict=True))
    busy = _overlapped(overlap.core_share, computing, waiting, ports, issue)
    return Needs(computing, waiting, ports, issue, decoding, busy, (l2, l3, dram), overlap)


def memory_bytes_per_cycle(hardware: Hardware) -> float:
    """One core's share of the memory bandwidth."""
    return hardware.memory_bandwidth / hardware.frequency_hz / hardware.cores


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
    """The unit for the instruction that adds up groups of a stage."""
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
