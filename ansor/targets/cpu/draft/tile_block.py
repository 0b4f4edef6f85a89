"""The demands of one step of a stage that an instruction on tiles computes.

A step is one iteration of the innermost reduction level: it loads the operands of all result tiles
and multiplies them. A tile is loaded row by row, with a load of 64 bytes for each row. A load of a
tile takes 8 cycles of two ports (Intel's manual of optimization, "Intel AMX").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ansor.features.loop_tables import Floats
from ansor.features.profile import StageProfile
from ansor.program.nest.tile_loops import TileLoops, result_tiles
from ansor.targets.cpu.draft.register_tile import TileCost
from ansor.targets.cpu.machine import DotUnit, Hardware


def tile_blocks(profiles: Mapping[str, StageProfile], hardware: Hardware) -> dict[str, TileCost]:
    """The work of each stage that such an instruction computes."""
    found = {}
    for name, profile in profiles.items():
        unit = hardware.dot_unit(profile.nest.tile_instruction)
        if unit is not None:
            found[name] = tile_block(profile, unit)
    return found


def tile_block(profile: StageProfile, unit: DotUnit) -> TileCost:
    """The work of one step.

    Args:
        unit: that multiplies tiles.
    """
    nest = profile.nest
    loops, (left, right) = TileLoops.of(nest), result_tiles(nest)
    rows, lanes = (nest.extents[loops.instruction[n]].astype(np.float32) for n in (0, -1))
    words = _product(profile, loops.instruction[1:-1])
    products = (left * right).astype(np.float32)
    rounds = _product(profile, loops.reduction)
    results, one = rows * products / rounds, np.ones_like(rounds)
    loads = rows * left + words * right + results
    return TileCost(
        steps=profile.iterations / (products * rows * lanes * words),
        elements=products * rows * lanes,
        statements=products,
        accumulators=products,
        fill=one,
        operations=products,
        shuffles=np.zeros_like(rounds),
        loads=loads,
        stores=results,
        vectors=products + loads + results,
        drain=np.float32(unit.latency) / rounds,
        chain=rounds,
        depth=one,
        spelled=np.ones(len(rounds), dtype=np.bool_),
        risk=one,
        checks=np.zeros_like(rounds),
    )


def _product(profile: StageProfile, loops: Sequence[int]) -> Floats:
    """`[P]`: iterations of some loops together."""
    count: Floats = profile.nest.extents[list(loops)].prod(axis=0, dtype=np.float32)
    return count
