"""The search of a schedule that a user wrote, on a device that answers from a formula."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from definitions import HARDWARE
from hand_schedules import sampled_matmul, tiled_matmul

from ansor.config import CostModelConfig, EvolutionConfig, TuneConfig
from ansor.dag.from_tir.read import read_dag
from ansor.database.database import Database
from ansor.database.journal import Journal
from ansor.measure.fake import FakeDevice
from ansor.policy.registry import DEFAULT, POLICIES
from ansor.program.hand_schedule import HandSchedule
from ansor.program.program import Program
from ansor.program.pseudo_code import show_program, show_sketch
from ansor.program.sketch import Population
from ansor.run.search.budget import Budget
from ansor.run.search.tuner import Tuner
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.task import Original, Task
from ansor.templates.template import ScheduleFunction

CONFIG = TuneConfig(
    evolution=EvolutionConfig(initial=128, population=48, promise=64, generations=2, batch=8),
    cost_model=CostModelConfig(rounds=16),
)
CALL = tiled_matmul(64, 96, 48)


def latency_of(task: Task, program: Program) -> float:
    """A bowl around tiles of 4 by 16; 1 second for programs without knobs of these names."""
    if "tile_y" not in program.values:
        return 1.0
    rows, columns = program.values["tile_y"][-1], program.values["tile_x"][-1]
    return 1e-3 * (1 + abs(math.log2(rows / 4)) + abs(math.log2(columns / 16)))


def task(schedule: HandSchedule | None = CALL.schedule) -> Task:
    return Task("matmul", CALL.definition, read_dag(CALL.definition), "fake", by_hand=schedule)


def tuner(
    policy: str = DEFAULT,
    seed: int = 0,
    database: Database | None = None,
    tasks: tuple[Task, ...] = (),
) -> tuple[Tuner, FakeDevice]:
    device = FakeDevice(latency_of)
    records = database or Database()
    made = Tuner(
        tasks or (task(),),
        HARDWARE,
        CPU_SEARCH,
        device,
        Journal(records),
        CONFIG,
        seed,
        policy=POLICIES[policy],
    )
    return made, device


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_spends_the_budget_on_distinct_programs(policy: str) -> None:
    search, device = tuner(policy)
    assert search.run(Budget(64)).trials == device.count == 64
    assert len({repr(program.values) for _, program in device.trace}) == 64


def test_the_same_seed_measures_the_same() -> None:
    traces = []
    for seed in (1, 1, 2):
        search, device = tuner(seed=seed)
        search.run(Budget(40))
        traces.append([program.values for _, program in device.trace])
    assert traces[0] == traces[1] != traces[2]


def test_what_is_learned_of_knobs_beats_random_programs() -> None:
    """Of five seeds together, at equal budgets."""
    totals = {DEFAULT: 0.0, "random": 0.0}
    for policy in totals:
        for seed in range(5):
            search, device = tuner(policy, seed)
            search.run(Budget(48))
            late = [latency_of(task(), program) for _, program in device.trace[24:]]
            totals[policy] += float(np.mean(late))
    assert totals[DEFAULT] < 0.8 * totals["random"]


def test_a_search_goes_on_from_its_records() -> None:
    records = Database()
    first, device = tuner(database=records)
    first.run(Budget(24))
    again, more = tuner(database=records)
    assert again.restored == 24
    again.run(Budget(24))
    seen = [repr(program.values) for _, program in (*device.trace, *more.trace)]
    assert len(set(seen)) == 48


def test_records_of_a_template_are_not_those_of_the_definition() -> None:
    records = Database()
    search, _ = tuner(database=records)
    search.run(Budget(8))
    plain, _ = tuner(database=records, tasks=(task(None),))
    assert plain.restored == 0


def test_a_template_gets_its_first_round_beside_the_sketches() -> None:
    """Nothing is known of a template before; afterwards the faster one has the rounds."""
    direct = task(None)
    original = Original("matmul", "tiled_matmul", direct.func)
    variant = Task(
        *("matmul_tiled_matmul", direct.func, direct.dag, "fake"),
        original=original,
        by_hand=CALL.schedule,
    )
    search, device = tuner(tasks=(direct, variant))
    search.run(Budget(64))
    counts = [sum(key == each.key for key, _ in device.trace) for each in (direct, variant)]
    assert counts[0] == 8
    assert counts[1] == 56


@pytest.mark.parametrize(
    "schedule", [CALL.schedule, ScheduleFunction("f", sampled_matmul).fitted(CALL.definition)]
)
def test_its_sketch_is_shown_with_its_knobs(schedule: HandSchedule) -> None:
    sketch = schedule.sketch(read_dag(CALL.definition))
    row: Any = np.zeros((1, len(sketch.decisions)), dtype=np.int32)
    for text in (show_sketch(sketch), show_program(Population(sketch, row))):
        assert all(decision.name in text for decision in sketch.decisions)
        assert schedule.name in text
