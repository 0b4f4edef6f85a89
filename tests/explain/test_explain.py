"""Figures of explanations, worked out by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from database_records import FAILED, took
from definitions import HARDWARE, TILE_HARDWARE, sketches, tile_sketches, workload
from gpu import GPU, TARGET, gpu_sketches, legal_sample
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import Values, population_of
from sampling import sample

from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.database.record import Origin, Record
from ansor.explain.explain import Subject, differences, explain
from ansor.explain.explanation import Explanation
from ansor.explain.trials import Trials, trials_of
from ansor.measure.result import Measurement
from ansor.program.program import Program
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.targets.cuda.search import CUDA_SEARCH
from ansor.task import DIRECT, Task
from ansor.workloads import build

TARGET_TEXT = '{"kind":"llvm","mcpu":"znver5","num-cores":2}'
CONFIG = SketchConfig()
SEVERAL = ("matmul_relu", "conv2d", "winograd_conv2d", "softmax", "row_sum")
MATMUL = build("matmul", rows=256, columns=256, depth=256).func
GOOD: Values = {
    "C.i": (2, 8, 2, 8),
    "C.j": (4, 1, 2, 32),
    "C.k": (4, 64),
    "C.parallel": (2,),
    "C.unroll": (16,),
}
OTHER: Values = {**GOOD, "C.k": (8, 32), "C.unroll": (0,)}


def task_of(func: Any, target: str = TARGET_TEXT) -> Task:
    return Task("operator", func, read_dag(func), target)


def trials(task: Task, *outcomes: tuple[Program, float | Measurement]) -> dict[str, Trials]:
    """Measurements of the task, in order."""
    measured = [took(x) if isinstance(x, float) else x for _, x in outcomes]
    records = [
        Record(task.key, task.target, program, each, Origin("here", {}, float(place)))
        for place, ((program, _), each) in enumerate(zip(outcomes, measured, strict=True))
    ]
    return {DIRECT: trials_of(records)}


@pytest.fixture(scope="module")
def matmul() -> Explanation:
    """256 x 256 x 256 in 64 µs; the runner-up takes 80 µs."""
    task = task_of(MATMUL)
    space = CPU_SEARCH.sketches(task.dag, HARDWARE, CONFIG)
    winner, other = (population_of(space[0], [values]).program(0) for values in (GOOD, OTHER))
    outcomes = [(other, 96e-6), (other, FAILED), (winner, 64e-6), (other, 80e-6)]
    subject = Subject(task, winner, 64e-6, space, trials(task, *outcomes))
    return explain(subject, HARDWARE, CPU_SEARCH)


def test_the_limits_of_a_matmul(matmul: Explanation) -> None:
    """2 x 256^3 operations and three matrices of 256 KiB. Two cores with 2 x 2 x 16 operations a
    cycle at 4 GHz have 512 GFLOP/s. Memory has 40 GB/s."""
    limits = matmul.limits
    assert limits.flops == 2 * 256**3
    assert limits.compulsory_bytes == 3 * 4 * 256**2
    assert limits.peak_flops == 512e9
    assert limits.arithmetic_s == pytest.approx(65.536e-6)
    assert limits.memory_s == pytest.approx(786432 / 40e9)
    assert limits.peak_name == "float32"


def test_the_register_tile_of_a_matmul(matmul: Explanation) -> None:
    """8 rows of 32 columns are 8 x 2 registers of 16; a row of B and an element of A need three
    more."""
    tile = matmul.tile
    assert tile is not None
    assert matmul.main_stage == "C"
    assert tile.extents == {"i": 8, "j": 32, "k": 1}
    assert (tile.vector, tile.lanes) == (32, 16)
    assert (tile.accumulators, tile.operands, tile.used) == (16, 3, 19)
    assert (tile.spilled, tile.available) == (0, 32)
    assert "registers     19 of 32 vector registers: 16 accumulators, 3 operands" in str(matmul)


def test_the_traffic_of_a_matmul(matmul: Explanation) -> None:
    """A step loads 8 elements of A and 2 registers of B: 160 bytes. Each 64 steps load and store
    the 16 registers of sums. The three matrices stay in L2 (768 KiB of 2 x 1 MiB)."""
    steps = 256**3 / (8 * 32)
    found = {each.path: each for each in matmul.traffic}
    registers = found["L1 to registers"]
    assert registers.bytes == steps * (160 + 2 * 16 * 64 / 64)
    assert registers.compulsory == pytest.approx(registers.bytes / 786432)
    assert registers.bandwidth_share == pytest.approx(registers.bytes / 64e-6 / (3 * 64 * 4e9 * 2))
    # Rows 1 KiB apart leave most sets of L1 unused, so 64 rows of 128 bytes of B do not fit there.
    # They enter L1 with 8 rows of A and 8 of C, once for each of the loops outside k.1.
    executions = (2 * 4) * 8 * 4 * 2 * 2
    assert found["L2 to L1"].bytes == executions * (64 * 128 + 8 * 256 + 8 * 128)
    assert found["L3 to L2"].bytes == found["memory to L3"].bytes == 0


def test_the_bound_is_the_largest_part(matmul: Explanation) -> None:
    drafted = matmul.drafted
    assert drafted is not None
    assert drafted.bound == "arithmetic units"
    assert drafted.resources[0].seconds == pytest.approx(65.536e-6)
    total = drafted.together_s + sum(part.seconds for part in drafted.further)
    assert drafted.seconds == pytest.approx(total, rel=1e-5)
    assert drafted.stages[0].largest == "arithmetic units"


def test_the_runner_up_differs_in_two_decisions(matmul: Explanation) -> None:
    other = matmul.runner_up
    assert other is not None
    assert other.latency_s == 80e-6
    assert [(d.decision, d.winner, d.runner_up) for d in other.differences] == [
        ("C.k", (4, 64), (8, 32)),
        ("C.unroll", (16,), (0,)),
    ]
    assert "1.250 times the winner's time" in str(matmul)


def test_what_was_tried(matmul: Explanation) -> None:
    """Four trials; the third one is the fastest, and the last two lost 96 - 64 of 96 µs."""
    search = matmul.search
    assert (search.trials, search.best_trial, search.last_trials) == (4, 3, 2)
    assert search.last_gain == pytest.approx(1 / 3)
    assert search.failures == {"build": 1}
    first, *others = search.sketches
    assert (first.name, first.trials, first.failed, first.best_s) == (matmul.sketch, 4, 1, 64e-6)
    assert first.structure == "C SSRSRS"
    assert others
    assert all((each.trials, each.best_s) == (0, None) for each in others)


def test_the_json_has_every_figure(matmul: Explanation) -> None:
    read = json.loads(json.dumps(matmul.to_json()))
    assert read["limits"]["compulsory_bytes"] == 786432
    assert read["tile"]["accumulators"] == 16
    assert read["runner_up"]["differences"][0]["runner_up"] == [8, 32]
    assert read["drafted"]["bound"] == "arithmetic units"


@pytest.mark.parametrize("winner", ["untuned", "unknown sketch"])
def test_without_loops_the_rest_is_shown(winner: str) -> None:
    task = task_of(MATMUL)
    space = CPU_SEARCH.sketches(task.dag, HARDWARE, CONFIG)
    known = population_of(space[0], [GOOD]).program(0)
    program = Program() if winner == "untuned" else Program("other", known.steps[1:], known.values)
    subject = Subject(task, program, None, space, trials(task, (known, 80e-6)))
    found = explain(subject, HARDWARE, CPU_SEARCH)
    assert (found.drafted, found.tile, found.traffic, found.loops) == (None, None, (), "")
    assert found.note
    assert found.runner_up is not None
    assert found.runner_up.drafted_s is not None
    text = str(found)
    assert "no time" in text
    assert found.note in text


def test_programs_of_two_sketches_differ_in_decisions_that_one_lacks() -> None:
    found = differences({"a": (1,), "b": (2, 3)}, {"b": (2, 3), "c": (4,)})
    assert [(d.decision, d.winner, d.runner_up) for d in found] == [
        ("a", (1,), ()),
        ("c", (), (4,)),
    ]


@settings(deadline=None, max_examples=15)
@given(
    st.sampled_from(["matmul_relu", "conv2d", "winograd_conv2d", "softmax", "row_sum"]),
    st.integers(0, 999),
)
def test_every_program_is_explained(name: str, seed: int) -> None:
    space = sketches(name)
    task = task_of(workload(name).func)
    sketch = space[seed % len(space)]
    program = sample(sketch, 1, np.random.default_rng(seed)).program(0)
    found = explain(
        Subject(task, program, 1e-3, space, trials(task, (program, 1e-3))), HARDWARE, CPU_SEARCH
    )
    assert found.note == ""
    assert found.drafted is not None
    shares = [part.share for part in (*found.drafted.resources, *found.drafted.further)]
    assert min(shares) >= 0
    assert found.runner_up is None
    assert all(each.bytes >= 0 for each in found.traffic)
    assert found.drafted.bound in str(found)
    assert json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("name", "dtype", "peak"),
    [("bfloat16_matmul", "bfloat16", 2), ("int8_conv2d", "uint8", 4)],
)
def test_low_precision_has_the_peak_of_its_products(name: str, dtype: str, peak: int) -> None:
    """Groups of two or four products, at the rate of multiply-adds."""
    space = sketches(name)
    sketch = next(s for s in space if any(x.instruction for x in s.dag.stages.values()))
    task = task_of(workload(name).func)
    program = sample(sketch, 1, np.random.default_rng(0)).program(0)
    found = explain(Subject(task, program, 1e-3, space, trials(task)), HARDWARE, CPU_SEARCH)
    assert found.limits.peak_flops == peak * 512e9
    assert found.limits.peak_name == dtype
    assert found.tile is not None
    assert found.tile.instruction in {"vdpbf16ps", "vpdpbusd"}


def test_tiles_of_amx_are_shown() -> None:
    space = tile_sketches("tiled_matmul")
    sketch = next(s for s in space if "DotTile" in str(s.steps))
    task = task_of(workload("tiled_matmul").func)
    program = sample(sketch, 1, np.random.default_rng(0)).program(0)
    found = explain(Subject(task, program, 1e-3, space, trials(task)), TILE_HARDWARE, CPU_SEARCH)
    assert found.tile is not None
    assert (found.tile.kind, found.tile.available) == ("tile registers", 8)
    assert found.tile.instruction == "tdpbf16ps"


def test_a_kernel_of_a_gpu_has_its_occupancy() -> None:
    (sketch, *_), task = gpu_sketches("matmul"), task_of(workload("matmul").func, TARGET)
    program = legal_sample(sketch, 1).program(0)
    subject = Subject(task, program, 1e-4, [sketch], trials(task, (program, 1e-4)))
    found = explain(subject, GPU, CUDA_SEARCH)
    assert found.tile is None
    assert found.occupancy["resident blocks of a multiprocessor"] >= 1
    assert [each.path for each in found.traffic] == ["L2 to multiprocessors", "memory to L2"]
    assert found.drafted is not None
    assert "start of the kernel" in str(found)
