"""The length of contiguous reads of weights."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import workload

from ansor.annotate.complete import complete
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.features.profile import StageProfile, profile
from ansor.program.nest import build_nest
from ansor.program.sketch import Population, Sketch
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.targets.cpu.draft.constants import DEFAULTS
from ansor.targets.cpu.draft.draft import draft
from ansor.targets.cpu.draft.streaming import cold_bytes, sequential_run, stall_cycles
from ansor.targets.cpu.machine import Hardware

HARDWARE = Hardware(cores=2, vector_bytes=16)
ROWS, COLUMNS, DEPTH = 32, 48, 24  # of the small matmul
WEIGHT_BYTES = DEPTH * COLUMNS * 4


CONFIG = SketchConfig(
    min_prefetch_bytes=1, min_prefetch_part=256, min_prefetch_run=256, prefetch_distance=64
)


def sketch() -> Sketch:
    dag = read_dag(workload("matmul").func, constants=[1])
    states = generate(dag, HARDWARE, CPU_RULES, CONFIG)
    (found,) = [s for s in states if len(s.dag.stages) == 1]
    return complete(found, HARDWARE, CONFIG)


def matmul(
    columns: tuple[int, ...],
    depth: tuple[int, ...],
    width: int,
    rows: tuple[int, ...] = (1, 1, 1, ROWS),
    prefetch: int = 0,
) -> StageProfile:
    """The profile of one program: factors of the axes, width of the packing, whether weights are
    prefetched."""
    made = sketch()
    row = [0] * len(made.decisions)
    values = {
        ".i": rows,
        ".j": columns,
        ".k": depth,
        ".packed": (width,),
        ".prefetch": (prefetch,),
    }
    for number, decision in enumerate(made.decisions):
        for suffix, value in values.items():
            if decision.name.endswith(suffix):
                found = decision.find(value)
                assert found is not None
                row[number] = found
    return profile(build_nest(Population(made, np.array([row], dtype=np.int32))))["C"]


def weights_of(stage: StageProfile) -> float:
    access = next(a for a in stage.accesses if a.buffer.constant)
    return float(sequential_run(stage, access)[0])


@pytest.mark.parametrize(
    ("columns", "depth", "width", "run"),
    [
        ((3, 1, 1, 16), (1, 24), 0, 16),  # rows of 48: the next 16 columns lie elsewhere
        ((3, 1, 1, 16), (1, 24), 16, 16 * 24 * 3),  # packed as it is read: all of it
        ((6, 1, 1, 8), (1, 24), 16, 8),  # packed wider than it is read
        ((1, 1, 1, 48), (1, 24), 0, 48 * 24),  # whole rows
        ((1, 1, 1, 48), (24, 1), 0, 48 * 24),
    ],
)
def test_runs_by_hand(
    columns: tuple[int, ...], depth: tuple[int, ...], width: int, run: int
) -> None:
    assert weights_of(matmul(columns, depth, width)) == run


def test_short_runs_cost_more() -> None:
    packed = matmul((3, 1, 1, 16), (1, 24), 16)
    plain = matmul((3, 1, 1, 16), (1, 24), 0)
    assert cold_bytes(packed, DEFAULTS.core)[0] == pytest.approx(
        WEIGHT_BYTES * (1 + 256 / WEIGHT_BYTES)
    )
    assert cold_bytes(plain, DEFAULTS.core)[0] == pytest.approx(WEIGHT_BYTES * (1 + 256 / 64))
    slow = draft({"C": plain}, HARDWARE)["C"].dram_traffic[0]
    fast = draft({"C": packed}, HARDWARE)["C"].dram_traffic[0]
    assert slow > fast


def test_other_operands_are_not_cold() -> None:
    dag = read_dag(workload("matmul").func)
    state = next(s for s in generate(dag, HARDWARE, CPU_RULES) if len(s.dag.stages) == 1)
    made = complete(state, HARDWARE, SketchConfig())
    population = Population(made, np.zeros((1, len(made.decisions)), dtype=np.int32))
    assert cold_bytes(profile(build_nest(population))["C"], DEFAULTS.core)[0] == 0


def waiting(stage: StageProfile, cold: float, busy: float) -> float:
    cycles = (np.array([value], dtype=np.float32) for value in (cold, busy))
    return float(stall_cycles(stage, *cycles, cores=2)[0])


def test_all_weights_are_waited_for() -> None:
    tiles = matmul((6, 1, 1, 8), (1, 24), 8, rows=(1, 8, 1, 4))
    assert waiting(tiles, 600, 600) == 600


def test_what_is_prefetched_is_waited_for_once_by_each_core() -> None:
    """Six panels, the first of them for each of two cores."""
    tiles = matmul((6, 1, 1, 8), (1, 24), 8, rows=(1, 8, 1, 4), prefetch=1)
    assert tiles.prefetched.exists.tolist() == [True]
    assert tiles.prefetched.elements.tolist() == [8 * 24]
    assert waiting(tiles, 600, 600) == pytest.approx(200)
    assert waiting(tiles, 1200, 600) == pytest.approx(600)  # memory is not


@pytest.mark.parametrize(
    ("columns", "width", "rows"),
    [
        ((6, 1, 1, 8), 8, (1, 1, 1, 32)),  # nothing is read again
        ((1, 6, 1, 8), 8, (1, 8, 1, 4)),  # all of it is: nothing lies after it
        ((6, 1, 1, 8), 8, (8, 1, 1, 4)),
    ],
)
def test_what_is_read_once_is_waited_for_where_it_begins(
    columns: tuple[int, ...], width: int, rows: tuple[int, ...]
) -> None:
    stage = matmul(columns, (1, 24), width, rows=rows, prefetch=1)
    assert stage.prefetched.exists.tolist() == [True]
    assert stage.prefetched.run.tolist() == [COLUMNS * DEPTH]
    waited = max(2 * 16, 16) / (COLUMNS * DEPTH)  # 16 elements ahead, by each of two cores
    assert waiting(stage, 600, 600) == pytest.approx(600 * waited)


def test_each_run_begins_with_waiting() -> None:
    stage = matmul((1, 1, 1, 48), (24, 1), 0, rows=(1, 1, 1, 32), prefetch=1)
    assert stage.prefetched.run.tolist() == [COLUMNS * DEPTH]
    parts = matmul((2, 1, 1, 24), (1, 24), 24, rows=(1, 1, 1, 32), prefetch=1)
    assert parts.prefetched.run.tolist() == [COLUMNS * DEPTH]


def test_there_may_be_nothing_to_prefetch() -> None:
    """Panels are wider than the elements that are read."""
    stage = matmul((6, 1, 1, 8), (1, 24), 16, rows=(1, 8, 1, 4), prefetch=1)
    assert stage.prefetched.exists.tolist() == [False]


def test_nothing_is_waited_for_without_weights() -> None:
    dag = read_dag(workload("matmul").func)
    made = complete(generate(dag, HARDWARE, CPU_RULES, CONFIG)[0], HARDWARE, CONFIG)
    row = np.zeros((1, len(made.decisions)), dtype=np.int32)
    stage = profile(build_nest(Population(made, row)))["C"]
    assert cold_bytes(stage, DEFAULTS.core).tolist() == [0]
    assert waiting(stage, 0, 100) == 0
