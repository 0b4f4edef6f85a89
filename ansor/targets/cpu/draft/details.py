"""The register tile and the traffic of each stage of one program, as the draft counts them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ansor.features.loop_tables import Floats
from ansor.features.profile import StageProfile
from ansor.program.nest.tile_loops import TileLoops, result_tiles
from ansor.program.tile_instructions import ROW_BYTES, TILES
from ansor.targets.cpu.draft.constants import DEFAULTS, CoreConstants
from ansor.targets.cpu.draft.innermost_block import Block
from ansor.targets.cpu.draft.promotion import Promoted
from ansor.targets.cpu.draft.register_pressure import register_pressure
from ansor.targets.cpu.draft.register_tile import blocks_of, loaded_bytes, tile_of
from ansor.targets.cpu.draft.tile_block import tile_blocks
from ansor.targets.cpu.draft.traffic import crossings
from ansor.targets.cpu.machine import Hardware
from ansor.targets.stage_details import RegisterTile, StageDetails, Transfer


def details(profiles: Mapping[str, StageProfile], hardware: Hardware) -> dict[str, StageDetails]:
    """The details of each stage; `profiles` are of a population of one program."""
    blocks, promoted = blocks_of(profiles, hardware, DEFAULTS)
    found = {}
    for name, profile in profiles.items():
        if name in blocks:
            tile = _vector_tile(blocks[name])
            moved = _register_bytes(blocks[name], promoted)
        else:
            tile = _matrix_tile(profile)
            moved = _row_bytes(profile, hardware)
        transfers = _transfers(profile, moved, hardware, DEFAULTS.core)
        found[name] = StageDetails(tile, transfers)
    return found


def _vector_tile(block: Block) -> RegisterTile:
    """The tile of a block on vectors."""
    pressure, loops = register_pressure(block), block.loops
    is_sum = bool(block.profile.nest.stage.reduce)
    copies = loops.unrolled[:, 0].copy()
    if loops.lanes[0] >= 0:
        copies[loops.lanes[0]] *= loops.width[0]
    return RegisterTile(
        _along_axes(block.profile, copies),
        vector=round(loops.width[0]),
        lanes=block.lanes,
        accumulators=float(pressure.results[0]) if is_sum else 0.0,
        operands=float(pressure.operands[0]),
        held=float(pressure.held[0]) if is_sum else 0.0,
        spilled=float(pressure.spilled[0]),
        available=block.hardware.vector_registers,
        kind="vector registers",
        instruction=block.profile.nest.stage.instruction,
    )


def _matrix_tile(profile: StageProfile) -> RegisterTile:
    """The tile of a stage that an instruction on tiles computes."""
    nest, loops = profile.nest, TileLoops.of(profile.nest)
    left, right = (int(column[0]) for column in result_tiles(nest))
    inside = {*loops.rows, loops.lanes, *loops.instruction}
    copies = np.where([k in inside for k in profile.active], profile.extents[:, 0], 1)
    lanes = int(nest.extents[loops.instruction[-1], 0])
    return RegisterTile(
        _along_axes(profile, copies.astype(np.float32)),
        vector=lanes,
        lanes=lanes,
        accumulators=left * right,
        operands=min(left, right) + 1,
        held=0,
        spilled=0,
        available=TILES,
        kind="tile registers",
        instruction=nest.tile_instruction,
    )


def _along_axes(profile: StageProfile, copies: Floats) -> dict[str, int]:
    """Elements of one execution along each axis of the stage; `copies` is `[L]`."""
    nest, found = profile.nest, dict[str, int]()
    for number, count in zip(profile.active, copies, strict=True):
        if number >= nest.num_host:
            name = nest.stage.axes[nest.loops[number].axis].name
            found[name] = found.get(name, 1) * round(float(count))
    return {axis.name: found.get(axis.name, 1) for axis in nest.stage.axes}


def _register_bytes(block: Block, promoted: Promoted) -> float:
    """Bytes that loads and stores of a block move in one run of the program."""
    tile = tile_of(block, promoted)
    registers = tile.stores * (2 if block.profile.nest.stage.reduce else 1)  # loads before stores
    moved = loaded_bytes(block, promoted) + registers * np.float32(block.hardware.vector_bytes)
    return float((tile.steps * moved)[0])


def _row_bytes(profile: StageProfile, hardware: Hardware) -> float:
    """Bytes of loads and stores of a stage that an instruction on tiles computes."""
    (tile,) = tile_blocks({"": profile}, hardware).values()
    return float((tile.steps * (tile.loads + tile.stores))[0]) * ROW_BYTES


def _transfers(
    profile: StageProfile, register_bytes: float, hardware: Hardware, core: CoreConstants
) -> tuple[Transfer, ...]:
    """The transfers of a stage, without the time that jumps cost."""
    level2, last, memory = (float(size[0]) for size in crossings(profile, hardware, core).bytes)
    cold = sum(float(a.bytes[0, 0]) for a in profile.accesses if a.buffer.constant)
    of_level2, of_last, _ = (
        rate * hardware.frequency_hz * hardware.cores for rate in hardware.cache_bandwidth
    )
    rows = (
        ("L1 to registers", register_bytes, hardware.peak_bytes),
        ("L2 to L1", level2, of_level2),
        ("L3 to L2", last, of_last),
        ("memory to L3", memory, hardware.memory_bandwidth),
        ("constants from memory", cold, hardware.memory_bandwidth),
    )
    return tuple(Transfer(*row) for row in rows)
