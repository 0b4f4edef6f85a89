"""The keel of the package: both interpreters of a sketch see the same loops.

Programs are sampled from every sketch of every definition, lowered, and the loops around each block
compared with those that the nest computes for the whole population.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from definitions import NAMES, TILED, sketches, tile_sketches, workload
from sampling import sample

from ansor.config import SketchConfig
from ansor.lowering.lower import schedule
from ansor.lowering.replay import Replay
from ansor.program.nest import LoopNest, build_nest

PROGRAMS_PER_DEFINITION = 64
_KINDS = {0: "serial", 1: "parallel", 2: "vectorised", 3: "unrolled"}  # tirx.ForKind

Loops = list[tuple[int, str]]


def lowered_loops(replay: Replay, stage: str) -> Loops:
    """Extent and kind of each loop around a block, loops of one iteration left out."""
    loops = [replay.sch.get(handle) for handle in replay.sch.get_loops(replay.blocks[stage])]
    found = [(int(loop.extent), _KINDS[int(loop.kind)]) for loop in loops]
    return [loop for loop in found if loop[0] > 1]


def computed_loops(nest: LoopNest, stage: str, program: int) -> Loops:
    """The same, as the nest has it; parallel loops are fused into one."""
    own = nest.stages[stage]
    found: Loops = []
    for number, extent in enumerate(own.extents[:, program].tolist()):
        kind = _kind(nest, stage, number, program)
        if kind == "parallel" and found and found[-1][1] == kind:
            extent *= found.pop()[0]
        found.append((extent, kind))
    return [loop for loop in found if loop[0] > 1]


def _kind(nest: LoopNest, stage: str, number: int, program: int) -> str:
    own = nest.stages[stage]
    if own.parallel[number, program]:
        return "parallel"
    if own.vector == number:
        return "vectorised"
    return "unrolled" if own.unrolled[number, program] else "serial"


TILED_NESTS = ("tiled_matmul_uneven", "tiled_conv2d_few", "tiled_batch_matmul")
PACKING = SketchConfig(min_pack_reuse=1, min_pack_bytes=1)
CASES = [
    *((name, SketchConfig()) for name in NAMES),
    *((name, SketchConfig()) for name in TILED_NESTS),
    *((name, PACKING) for name in ("matmul_relu", "conv2d", "conv2d_stride2", "batch_matmul")),
]


@pytest.mark.parametrize(("name", "config"), CASES)
def test_loops_of_lowered_programs_equal_the_nest(name: str, config: SketchConfig) -> None:
    found = tile_sketches(name) if name in TILED else sketches(name, config)
    func, rng, seen = workload(name).func, np.random.default_rng(0), Counter()
    each = -(-PROGRAMS_PER_DEFINITION // len(found))
    for sketch in found:
        population = sample(sketch, each, rng)
        nest = build_nest(population)
        for row in range(each):
            replay = schedule(func, population.program(row))
            for stage in sketch.dag.stages:
                lowered = lowered_loops(replay, stage)
                assert lowered == computed_loops(nest, stage, row), (stage, sketch.steps)
                seen.update(kind for _, kind in lowered)
    assert {"serial", "parallel"} <= set(seen)


def test_enough_programs_are_compared() -> None:
    assert PROGRAMS_PER_DEFINITION * len(NAMES) >= 500


@pytest.mark.parametrize("name", NAMES)
def test_the_loops_cover_the_iteration_domain(name: str) -> None:
    """The steps of an axis reach each of its values: product of its loops' extents = its size."""
    rng = np.random.default_rng(1)
    for sketch in sketches(name):
        nest = build_nest(sample(sketch, 8, rng))
        for stage in (s for s in nest.stages if s not in sketch.roles.host):
            own = nest.stages[stage]
            for axis in range(len(own.stage.axes)):
                reach = sum(
                    step * (own.extents[loop] - 1) for loop, step in own.steps[axis].items()
                )
                extents = [own.extents[loop] for loop in own.steps[axis]]
                assert (reach + 1 == np.prod(extents, axis=0)).all()


@pytest.mark.parametrize("name", ["conv2d", "softmax", "row_sum"])
def test_a_program_does_not_depend_on_its_population(name: str) -> None:
    rng = np.random.default_rng(2)
    for sketch in sketches(name):
        population = sample(sketch, 16, rng)
        together, alone = build_nest(population), build_nest(population.take([5]))
        for stage in sketch.dag.stages:
            assert computed_loops(together, stage, 5) == computed_loops(alone, stage, 0)
        assert (together.signature[5] == alone.signature[0]).all()


@pytest.mark.parametrize("name", NAMES)
def test_equal_signatures_mean_equal_loops(name: str) -> None:
    rng = np.random.default_rng(3)
    for sketch in sketches(name):
        nest = build_nest(sample(sketch, 200, rng))
        spelled: dict[bytes, list[Loops]] = {}
        for row, signature in enumerate(nest.signature):
            loops = [computed_loops(nest, stage, row) for stage in sketch.dag.stages]
            assert spelled.setdefault(signature.tobytes(), loops) == loops
