"""The legality of programs, by arithmetic on the nest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ansor.config import SketchConfig
from ansor.features.loop_tables import masked_product
from ansor.program.nest import LoopNest, StageNest
from ansor.program.nest.tile_loops import TileLoops, result_tiles
from ansor.program.tile_instructions import TILES
from ansor.targets.cpu.machine import Hardware


def legal(nest: LoopNest, hardware: Hardware, config: SketchConfig) -> npt.NDArray[np.bool_]:
    """`[P]`: whether no register tile exceeds what a compiler unrolls in reasonable time."""
    ok = np.ones(nest.size, dtype=np.bool_)
    dag = nest.population.sketch.dag
    for stage in nest.stages.values():
        item_bytes = dag.buffers[stage.stage.output].item_bytes
        if stage.tile_instruction:
            ok &= _within_registers(stage)
        else:
            statements = unrolled_statements(stage, hardware.lanes(item_bytes))
            ok &= statements <= config.max_unrolled_statements
        ok &= _within_panels(nest, stage, hardware.lanes(item_bytes))
    return ok


def _within_registers(stage: StageNest) -> npt.NDArray[np.bool_]:
    """`[P]`: whether the tiles that a processor has hold results and operands."""
    rows, lanes = result_tiles(stage)
    enough: npt.NDArray[np.bool_]
    enough = rows * lanes + np.minimum(rows, lanes) + 1 <= TILES
    return enough


def _within_panels(nest: LoopNest, stage: StageNest, lanes: int) -> npt.NDArray[np.bool_]:
    """`[P]`: whether no vector lies in two panels of a packed operand."""
    ok = np.ones(nest.size, dtype=np.bool_)
    population, dag = nest.population, nest.population.sketch.dag
    vector = TileLoops.of(stage).instruction[-1] if stage.tile_instruction else stage.vector
    extent = np.ones(nest.size, np.int32) if vector is None else stage.extents[vector]
    for read in stage.stage.reads:
        hole = population.sketch.roles.packed.get(read.buffer)
        if hole is not None:
            width = population.values(hole)[:, 0]
            whole = (width == 0) | (width == dag.buffers[read.buffer].shape[-1])
            ok &= whole | (extent % lanes == 0) | (width % extent == 0)
    return ok


def unrolled_statements(stage: StageNest, lanes: int) -> npt.NDArray[np.floating]:
    """`[P]`: vector statements of the explicitly unrolled block, without those on zeros."""
    copies: npt.NDArray[np.floating] = np.rint(
        masked_product(stage.unrolled, stage.extents) * stage.density
    )
    if stage.vector is None:
        return copies
    vectors: npt.NDArray[np.floating] = copies * -(-stage.extents[stage.vector] // lanes)
    return vectors
