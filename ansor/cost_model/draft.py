"""The draft: an analytic model of a CPU that ranks programs before any measurement.

Per stage, cycles are the most of what the core needs (its arithmetic units, load and store ports)
and what comes from further levels of memory; a part of the rest is added, since overlap is never
perfect.
After the roofline of each resource (Williams et al. 2009) and the draft-then-verify scheme of
Pruner (ASPLOS'25); the register tile follows Goto and van de Geijn (2008).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.config import PREFETCH
from ansor.cost_model.register_tile import RegisterTile, register_tiles, runs_in_flight
from ansor.cost_model.streaming import cold_bytes, stall_cycles
from ansor.cost_model.traffic import fetched_bytes, page_misses, traffic_bytes
from ansor.features.profile import StageProfile
from ansor.features.rows import Floats, product
from ansor.hardware.cpu import Hardware

# Cycles per vector operation that is not a plain addition, multiplication or comparison.
_SHUFFLE_CYCLES = 1.0  # one unit exchanges elements of whole registers
_DIV_CYCLES = 8.0  # of a 512-bit division; Zen 5 takes 2.6, but 8 ranks random programs as well
_SPECIAL_CYCLES = 9.0  # exp and its like: Zen 5 takes 8 to 9, of tanh 12 to 15, of erf 19
_CONDITION_CYCLES = 8.0  # in which it is known whether a step meets padding; fitted once
_CHECK_CYCLES = 0.5  # of a copy that checks that and goes on with a zero; fitted
# To find the indices of one more loop that is fused into the parallel one: a division and what is
# done with its remainder. Fitted: a copy of 74 000 elements, each an iteration, took 115 us on two
# cores of a Zen 4, with the last loop left in place 45.
_DECODE_CYCLES = 2.0
_STREAMED = 0.75  # of the second cache's probed rate, where nothing is reused; fitted once
_STREAM_POWER = 8.0  # how close to nothing; fitted once
# Shares that add to the slowest, fitted: of the core's other units, of what takes less time of the
# core and the traffic with caches, of the waiting for weights.
_CORE_APART = 0.1
_TRAFFIC_APART = 0.2
_COLD_APART = 0.02
# What threads need to start, over an empty loop; more if they read what others wrote: fitted.
_START = 1.1
_START_FETCHING = 2.2
_FETCH_CYCLES = 0.09  # per byte that others may have written; fitted


@dataclass(frozen=True, eq=False)
class Breakdown:
    """Where one stage's time goes; every field `[P] float32`, cycles of one core unless said."""

    arithmetic: Floats
    memory_ports: Floats
    issue: Floats
    l2_traffic: Floats
    l3_traffic: Floats
    dram_traffic: Floats
    parallel_speedup: Floats  # ratio
    accumulators: Floats  # vector registers
    code: Floats  # instructions of the unrolled block, which LLVM has to get through
    seconds: Floats

    def columns(self, total: Floats) -> list[Floats]:
        """What the learned model is told, `[P]` each; `total` is the program's time."""
        cycles = np.maximum(self.arithmetic, 1)
        return [
            np.log2(self.memory_ports / cycles + 1e-3),
            np.log2(self.issue / cycles + 1e-3),
            np.log2(self.l2_traffic / cycles + 1e-3),
            np.log2(self.l3_traffic / cycles + 1e-3),
            np.log2(self.dram_traffic / cycles + 1e-3),
            self.parallel_speedup,
            self.accumulators,
            self.seconds / total,
        ]


@dataclass(frozen=True, eq=False)
class _Needs:
    """How long a stage occupies what, `[P]` cycles of one core each.

    Attributes:
        arithmetic: arithmetic units, or the wait of additions for each other.
        ports: load and store ports.
        issue: the front end.
        core: all of them together.
        transfers: the second cache, the last one, and memory.
    """

    arithmetic: Floats
    ports: Floats
    issue: Floats
    core: Floats
    transfers: tuple[Floats, Floats, Floats]

    @property
    def traffic(self) -> Floats:
        """All transfers, one after the other."""
        total: Floats = np.add.reduce(self.transfers)
        return total

    @property
    def cycles(self) -> Floats:
        """Of the stage alone: most of the core's work and of the traffic overlap."""
        return _with_part(_TRAFFIC_APART, self.core, self.traffic)

    def beside(self, host: _Needs) -> Floats:
        """Cycles added to those of a host during whose reduction the stage's lines come in."""
        both = (self.core + host.core, self.traffic + host.traffic)
        added: Floats = np.maximum(_with_part(_TRAFFIC_APART, *both) - host.cycles, 0)
        return added


def draft(profiles: dict[str, StageProfile], hardware: Hardware) -> dict[str, Breakdown]:
    """Estimates every stage of a population."""
    tiles = register_tiles(profiles, hardware)
    needs = {name: _needs(p, tiles[name], hardware) for name, p in profiles.items()}
    hosts = {name: p.nest.finishes for name, p in profiles.items()}
    beside = {name: needs[host] for name, host in hosts.items() if host is not None}
    return {
        name: _breakdown(p, tiles[name], needs[name], beside.get(name), hardware)
        for name, p in profiles.items()
    }


def _needs(profile: StageProfile, tile: RegisterTile, hardware: Hardware) -> _Needs:
    """What one stage asks of the core and of the caches."""
    computing = tile.steps * _arithmetic_cycles(profile, tile, hardware)
    waiting = tile.steps * _latency(profile, tile, hardware)
    arithmetic = np.maximum(computing, waiting)
    ports = tile.steps * np.maximum(
        tile.loads / hardware.loads_per_cycle, tile.stores / hardware.stores_per_cycle
    )
    issued = np.maximum(
        tile.steps * (_code(tile) + 2) / np.float32(hardware.issue_width),
        tile.steps * tile.vectors / np.float32(hardware.vector_issue),
    )
    issue: Floats = issued + _decoding(profile)
    traffic = traffic_bytes(profile, hardware)
    level2, last, _ = hardware.cache_bandwidth
    reached = np.float32(level2) * _reached(traffic[0], tile, hardware)
    rates = (reached, np.float32(last), np.float32(_memory_bytes_per_cycle(hardware)))
    l2, l3, dram = (t / rate for t, rate in zip(traffic, rates, strict=True))
    core = _with_part(_CORE_APART, computing, waiting, ports, issue)
    return _Needs(arithmetic, ports, issue, core, (l2, l3, dram))


def _breakdown(
    profile: StageProfile,
    tile: RegisterTile,
    needs: _Needs,
    host: _Needs | None,
    hardware: Hardware,
) -> Breakdown:
    """The draft of one stage; `host` is that whose tiles it finishes, if any."""
    cycles = needs.cycles
    if host is not None:
        cycles = np.where(_is_prefetched(profile), needs.beside(host), cycles)
    lookups = page_misses(profile, hardware.tlb_pages) * np.float32(hardware.tlb_miss_cycles)
    cold = cold_bytes(profile) / np.float32(_memory_bytes_per_cycle(hardware))
    stalls = stall_cycles(profile, cold, cycles, hardware.cores)
    cycles = cycles + np.maximum(np.float32(_COLD_APART) * cold, stalls)
    conditions = _conditions(profile) * np.float32(_CONDITION_CYCLES)
    apart = tile.drain + np.float32(_CHECK_CYCLES) * tile.checks
    cycles = cycles + tile.steps * apart + lookups + conditions
    cycles = cycles * tile.risk
    fetched = fetched_bytes(profile, hardware.cores)
    cycles = cycles + np.float32(_FETCH_CYCLES) * fetched
    speedup = parallel_speedup(profile.parallel, hardware.cores)
    starts = np.where(fetched > 0, np.float32(_START_FETCHING), np.float32(_START))
    start = np.where(profile.parallel > 1, starts * np.float32(hardware.parallel_overhead_s), 0)
    time: Floats = cycles / np.float32(hardware.frequency_hz) / speedup
    if profile.nest.num_host:  # an attached stage starts threads only where it is at the root
        start = np.where(profile.nest.position == 0, start, 0)
    l2, l3, dram = needs.transfers
    total: Floats = (time + start).astype(np.float32)
    return Breakdown(
        *(needs.arithmetic, needs.ports, needs.issue, l2, l3, dram + cold, speedup),
        *(tile.accumulators, _code(tile), total),
    )


def _is_prefetched(profile: StageProfile) -> npt.NDArray[np.bool_]:
    """`[P]`: whether the lines of a fused consumer are asked for before each tile of its host, see
    `ansor.lowering.prefetch.consumer_tiles`."""
    own = np.asarray([k >= profile.nest.num_host for k in profile.active])[:, None]
    item_bytes = max(access.buffer.item_bytes for access in profile.accesses)
    small: npt.NDArray[np.bool_]
    small = product(own, profile.extents) * np.float32(item_bytes) <= PREFETCH.consumer_tile_bytes
    return small


def _code(tile: RegisterTile) -> Floats:
    """`[P]`: instructions of a step."""
    code: Floats = tile.operations + tile.loads + tile.stores
    return code


def _with_part(share: float, *needs: Floats) -> Floats:
    """`[P]`: the most of the needs, and a share of the others."""
    slowest = np.maximum.reduce(needs)
    cycles: Floats = slowest + np.float32(share) * (np.add.reduce(needs) - slowest)
    return cycles


def _reached(traffic: Floats, tile: RegisterTile, hardware: Hardware) -> Floats:
    """`[P]`: share of the second cache's probed rate that a stage reaches, by the bytes that come
    from there. Where all that it loads does, LLVM's order of lines costs more than the probe's;
    what is used again in between hides that."""
    loaded = tile.steps * tile.loads * np.float32(hardware.vector_bytes)
    streamed = np.minimum(traffic / np.maximum(loaded, 1), 1) ** np.float32(_STREAM_POWER)
    reached: Floats = 1 - np.float32(1 - _STREAMED) * streamed
    return reached


def _decoding(profile: StageProfile) -> Floats:
    """`[P]`: cycles in which the iterations of a fused parallel loop find their indices; an
    attached stage's host has done that for it."""
    fused = profile.nest.parallel[list(profile.active)] & (profile.extents > 1)
    further = np.maximum(fused.sum(axis=0, dtype=np.float32) - 1, 0)
    cycles = profile.parallel * further * np.float32(_DECODE_CYCLES)
    own: Floats = np.where(profile.nest.position == 0, cycles, 0).astype(np.float32)
    return own


def _conditions(profile: StageProfile) -> Floats:
    """`[P]`: how often it is asked whether steps meet padding."""
    asked: Floats = np.where(profile.guarded, profile.outer[1:], 0).sum(axis=0, dtype=np.float32)
    return asked


def parallel_speedup(iterations: Floats, cores: int) -> Floats:
    """`[P]`: speed-up of a parallel loop whose iterations are dealt out in equal blocks."""
    blocks = np.ceil(iterations / np.float32(cores))
    ratio: Floats = (iterations / blocks).astype(np.float32)
    return ratio


def _arithmetic_cycles(profile: StageProfile, tile: RegisterTile, hardware: Hardware) -> Floats:
    """`[P]`: cycles of one step of the register tile in the arithmetic units."""
    ops = profile.nest.stage.ops
    fused = min(ops.float_add, ops.float_mul)
    plain = ops.float_add + ops.float_mul - fused + ops.float_cmp + _selects(profile, tile)
    plain += ops.int_add + ops.int_mul + ops.int_cmp + ops.int_div * int(_DIV_CYCLES)
    vectors = tile.statements * tile.fill
    cycles = vectors * np.maximum(plain, np.float32(1)) / np.float32(hardware.fma_per_cycle)
    cycles = cycles + vectors * np.float32(ops.float_div * _DIV_CYCLES)
    cycles = cycles + vectors * np.float32(ops.float_special * _SPECIAL_CYCLES)
    cycles = cycles + tile.shuffles * np.float32(_SHUFFLE_CYCLES)
    result: Floats = cycles.astype(np.float32)
    return result


def _selects(profile: StageProfile, tile: RegisterTile) -> Floats:
    """`[P]`: selections of a statement; none by conditions that its copies know the answer to."""
    known = tile.spelled & bool(profile.nest.stage.has_branch)
    count: Floats = np.where(known, np.float32(0), np.float32(profile.nest.stage.ops.select))
    return count


def _latency(profile: StageProfile, tile: RegisterTile, hardware: Hardware) -> Floats:
    """`[P]`: cycles of one step in which additions wait for each other, in several runs at once."""
    if not profile.nest.stage.reduce:
        return np.zeros_like(tile.depth)
    runs = runs_in_flight(tile.statements * tile.chain / tile.depth, hardware)
    waits: Floats = np.float32(hardware.fma_latency) * tile.depth / runs
    return waits


def _memory_bytes_per_cycle(hardware: Hardware) -> float:
    """Main memory's bandwidth as one core's share."""
    return hardware.memory_bandwidth / hardware.frequency_hz / hardware.cores
