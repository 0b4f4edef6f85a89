"""The draft: an analytic model of a CPU that ranks programs before any measurement.

The draft of a stage compares the time of the core (arithmetic units, load and store ports, front
end) with the time of the transfers between caches and from memory. The larger one counts, plus a
share of the smaller one, because overlap is never perfect.
Sources: the roofline of each resource (Williams et al. 2009), the draft-then-verify scheme of
Pruner (ASPLOS'25), and the register tile of Goto and van de Geijn (2008). The constants stand in
`ansor.targets.cpu.draft.constants`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ansor.features.loop_tables import Floats, masked_product
from ansor.features.profile import StageProfile
from ansor.targets.cpu.draft.breakdown import Breakdown
from ansor.targets.cpu.draft.constants import DEFAULTS, CoreConstants, DraftConstants
from ansor.targets.cpu.draft.needs import Needs, memory_bytes_per_cycle, needs_of
from ansor.targets.cpu.draft.register_tile import TileCost, register_tiles
from ansor.targets.cpu.draft.streaming import cold_bytes, stall_cycles
from ansor.targets.cpu.draft.tile_block import tile_blocks
from ansor.targets.cpu.draft.traffic import fetched_bytes, page_misses
from ansor.targets.cpu.machine import Hardware


def draft(
    profiles: dict[str, StageProfile], hardware: Hardware, constants: DraftConstants = DEFAULTS
) -> dict[str, Breakdown]:
    """Estimates each stage of a population."""
    tiles = register_tiles(profiles, hardware, constants) | tile_blocks(profiles, hardware)
    needs = {name: needs_of(p, tiles[name], hardware, constants) for name, p in profiles.items()}
    hosts = {name: p.nest.finishes for name, p in profiles.items()}
    beside = {name: needs[host] for name, host in hosts.items() if host is not None}
    return {
        name: _breakdown(p, tiles[name], needs[name], beside.get(name), hardware, constants)
        for name, p in profiles.items()
    }


def _breakdown(
    profile: StageProfile,
    tile: TileCost,
    needs: Needs,
    host: Needs | None,
    hardware: Hardware,
    constants: DraftConstants,
) -> Breakdown:
    """The draft of one stage; `host` belongs to the stage that it finishes as a fused consumer."""
    core = constants.core
    together = needs.cycles
    if host is not None:
        together = np.where(_is_prefetched(profile), needs.beside(host), together)
    cold = cold_bytes(profile, core) / np.float32(memory_bytes_per_cycle(hardware))
    fetched = fetched_bytes(profile, hardware.cores)
    missed = page_misses(profile, hardware.tlb_pages)
    return Breakdown(
        needs,
        tile,
        together,
        cold=cold,
        stalls=stall_cycles(profile, cold, together, hardware.cores),
        pipeline=tile.steps * (tile.drain + np.float32(core.boundary_check_cycles) * tile.checks),
        translations=missed * np.float32(hardware.tlb_miss_cycles),
        conditions=_conditions(profile) * np.float32(core.skip_condition_cycles),
        sharing=np.float32(core.shared_byte_cycles) * fetched,
        speedup=parallel_speedup(profile.parallel, hardware.cores),
        start_s=_thread_start(profile, fetched, hardware, core),
        hardware=hardware,
        constants=constants,
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


def _conditions(profile: StageProfile) -> Floats:
    """`[P]`: evaluations of the conditions that skip steps on padding."""
    count: Floats = np.where(profile.guarded, profile.outer[1:], 0).sum(axis=0, dtype=np.float32)
    return count


def parallel_speedup(iterations: Floats, cores: int) -> Floats:
    """`[P]`: speed-up of a parallel loop that is split into equal blocks of iterations."""
    blocks = np.ceil(iterations / np.float32(cores))
    ratio: Floats = (iterations / blocks).astype(np.float32)
    return ratio
