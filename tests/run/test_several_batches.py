"""The tuner on a device that measures several batches at the same time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from fake_world import CONFIG, WEIGHTS, World
from several_places import SeveralPlaces

from ansor.config import EvolutionConfig
from ansor.errors import DatabaseError
from ansor.run.search.budget import Budget
from ansor.run.search.task_limits import TaskLimits

ALONE = replace(CONFIG, cost_model=replace(CONFIG.cost_model, use_gbdt=False))


def world_of(device: SeveralPlaces | None, **options: object) -> World:
    return World(device=device, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("trials", [1, 2, 5, 61])
def test_measurements_equal_the_budget(trials: int) -> None:
    device = SeveralPlaces()
    world = world_of(device)
    finish = world.run(trials)
    assert device.count == finish.trials == world.database.count() == trials
    assert finish.reason == "all trials spent"
    assert len(set(world.trace)) == trials
    assert sum(r.measured for r in world.events.rounds) == trials


def test_tasks_are_under_way_at_the_same_time_and_never_twice() -> None:
    device = SeveralPlaces()
    world_of(device).run(96)
    assert device.most == len(WEIGHTS) < device.places
    assert device.overlaps == 0


def test_records_name_the_machine_that_measured() -> None:
    device = SeveralPlaces()
    world = world_of(device)
    world.run(48)
    hosts = {r.origin.host for r in world.database.all_records("fake")}
    assert hosts == {"node0", "node1", "node2"}


def test_the_order_of_the_results_is_deterministic() -> None:
    traces = []
    for _ in range(2):
        world = world_of(SeveralPlaces())
        world.run(80)
        traces.append(world.trace)
    assert traces[0] == traces[1]


@pytest.mark.parametrize("speeds", [(1.0, 1.0), (1.0, 3.0, 0.2)])
def test_without_learning_across_tasks_the_number_of_machines_changes_no_program(
    speeds: tuple[float, ...],
) -> None:
    """Each task proposes by its records alone, so that the order of the tasks does not matter."""
    limits = TaskLimits(trials=24)
    alone, together = world_of(None, config=ALONE), world_of(SeveralPlaces(speeds), config=ALONE)
    for world in (alone, together):
        world.tuner.run(Budget(per_task=limits))
    assert Counter(alone.trace) == Counter(together.trace)
    assert alone.trace != together.trace
    for name in WEIGHTS:
        assert alone.best_s(name) == together.best_s(name)


def test_time_that_is_up_waits_for_what_is_under_way() -> None:
    device = SeveralPlaces()
    world = world_of(device, clock=lambda: device.now_s)
    finish = world.run(seconds=20)
    assert finish.reason == "time is up"
    assert device.abandoned == 0
    assert device.count == finish.trials == world.database.count()


def test_a_database_that_fails_abandons_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    device = SeveralPlaces()
    world = world_of(device)

    def fails(*arguments: object) -> None:
        raise DatabaseError("database='r.db': disk is full", "free some space")

    monkeypatch.setattr(world.database, "add_records", fails)
    finish = world.run(100)
    assert "disk is full" in finish.reason
    assert device.abandoned == 2
    assert not device.under_way
    assert world.run(0).reason == "no budget"


def test_a_tiny_space_ends_by_itself() -> None:
    """The last round is empty and no batch of the device."""
    device = SeveralPlaces()
    small = replace(CONFIG, evolution=EvolutionConfig(initial=1024))
    world = World("total_sum", device=device, config=small)
    assert world.run(10_000).reason == "nothing left to try"
    assert device.count == world.database.count() == len(set(world.trace))
