"""How far reads of weights run on in memory."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import workload

from ansor.annotate.complete import complete
from ansor.config import SketchConfig
from ansor.cost_model.draft import draft
from ansor.cost_model.streaming import cold_bytes, sequential_run
from ansor.dag.from_tir import read_dag
from ansor.features.profile import StageProfile, profile
from ansor.hardware.cpu import Hardware
from ansor.program.nest import build_nest
from ansor.program.sketch import Population, Sketch
from ansor.sketch.generate import generate

HARDWARE = Hardware(cores=2, vector_bytes=16)
ROWS, COLUMNS, DEPTH = 32, 48, 24  # of the small matmul
WEIGHT_BYTES = DEPTH * COLUMNS * 4


def sketch() -> Sketch:
    dag = read_dag(workload("matmul").func, constants=[1])
    states = generate(dag, HARDWARE, SketchConfig())
    (found,) = [s for s in states if len(s.dag.stages) == 1]
    return complete(found, HARDWARE, SketchConfig())


def matmul(columns: tuple[int, ...], depth: tuple[int, ...], width: int) -> StageProfile:
    """The profile of one program: factors of the columns and the depth, width of the packing."""
    made = sketch()
    row = [0] * len(made.decisions)
    values = {".j": columns, ".k": depth, ".packed": (width,)}
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
    assert cold_bytes(packed)[0] == pytest.approx(WEIGHT_BYTES * (1 + 256 / WEIGHT_BYTES))
    assert cold_bytes(plain)[0] == pytest.approx(WEIGHT_BYTES * (1 + 256 / 64))
    slow = draft({"C": plain}, HARDWARE)["C"].dram_traffic[0]
    fast = draft({"C": packed}, HARDWARE)["C"].dram_traffic[0]
    assert slow > fast


def test_other_operands_are_not_cold() -> None:
    dag = read_dag(workload("matmul").func)
    state = next(s for s in generate(dag, HARDWARE) if len(s.dag.stages) == 1)
    made = complete(state, HARDWARE, SketchConfig())
    population = Population(made, np.zeros((1, len(made.decisions)), dtype=np.int32))
    assert cold_bytes(profile(build_nest(population))["C"])[0] == 0
