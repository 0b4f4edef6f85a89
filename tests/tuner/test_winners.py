"""The program that a task ends with: always one that runs and is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from fake_world import CONFIG, TARGET, World, latency_of

from ansor.config import FULL, MeasureConfig
from ansor.measure.fake import FakeDevice
from ansor.measure.result import ErrorKind
from ansor.program.program import Program
from ansor.task import Task
from ansor.winners import Winner, choose_winner, finish_seconds, num_leaders

NAME = "matmul_relu"
MEASURE = CONFIG.measure
Fail = Callable[[Task, Program], ErrorKind | None]


def tuned(trials: int = 48) -> World:
    world = World(NAME)
    world.run(trials)
    return world


def choose(
    world: World,
    device: FakeDevice | None = None,
    leaders: int = 1,
    config: MeasureConfig = MEASURE,
) -> Winner:
    (search,) = world.tuner.searches
    return choose_winner(search, device or world.device, world.database, config, leaders)


def ranking(world: World) -> list[Program]:
    """Everything measured, fastest first."""
    key = world.tuner.searches[0].task.key
    return [r.program for r in world.database.best(key, TARGET, 10_000)]


def faulty(kind: ErrorKind, *bad: Program) -> FakeDevice:
    return FakeDevice(latency_of, lambda _, program: kind if program in bad else None)


def test_the_fastest_wins() -> None:
    world = tuned()
    first = ranking(world)[0]
    winner = choose(world)
    assert winner.program == first
    assert winner.latency_s == latency_of(world.tuner.searches[0].task, first)
    assert winner.difference == 0.0
    assert winner.note == ""
    assert len(world.device.verified) == 1, "no more is checked than needed"


class Close(FakeDevice):
    """A device whose second look differs from the first."""

    def __init__(self, again: Callable[[Program], float | None]) -> None:
        super().__init__(latency_of)
        self.compared: list[Program] = []
        self._again = again

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        assert rounds == MEASURE.compare_rounds
        self.compared = list(programs)
        return [self._again(program) for program in programs]


def test_noise_is_settled_by_timing_the_leaders_in_turns() -> None:
    world = tuned()
    first, second, third, *_ = ranking(world)
    wide = replace(MEASURE, leader_margin=10.0)
    device = Close(lambda program: {repr(second): 1.0}.get(repr(program), 2.0))
    winner = choose(world, device, leaders=3, config=wide)
    assert device.compared == [first, second, third]
    assert (winner.program, winner.latency_s) == (second, 1.0)


def test_a_leader_that_fails_the_comparison_keeps_its_first_time() -> None:
    world = tuned()
    first, *_ = ranking(world)
    wide = replace(MEASURE, leader_margin=10.0)
    winner = choose(world, Close(lambda _: None), leaders=3, config=wide)
    assert winner.program == first
    assert winner.latency_s == latency_of(world.tuner.searches[0].task, first)


def test_fewer_leaders_are_timed_where_time_is_short() -> None:
    counts = [num_leaders(minutes, 20, FULL) for minutes in (0.5, 1, 4, 8, 60)]
    assert counts == sorted(counts)
    assert counts[0] == FULL.least_leaders
    assert counts[-1] == FULL.measure.leaders == num_leaders(None, 20, FULL)
    for minutes, count in zip((4, 8, 60), counts[2:], strict=True):
        beyond = finish_seconds(count, 20, FULL) - finish_seconds(0, 20, FULL)
        assert beyond <= FULL.finish_share * minutes * 60


def test_what_is_far_behind_is_not_timed_again() -> None:
    world = tuned()
    device = Close(lambda _: 1.0)
    choose(world, device, leaders=3, config=replace(MEASURE, leader_margin=0.0))
    assert device.compared == []


@pytest.mark.parametrize("count", [1, 2, 4])
def test_wrong_programs_are_passed_over_and_remembered(count: int) -> None:
    world = tuned()
    task, order = world.tuner.searches[0].task, ranking(world)
    wrong = order[:count]
    winner = choose(world, faulty(ErrorKind.WRONG, *wrong))
    assert winner.program == order[count], "the next best measured"
    assert winner.latency_s == latency_of(task, order[count])
    assert winner.note.count("wrong: injected fault") == count
    marked = [r for r in world.database.records(task.key, TARGET) if r.measurement.error]
    assert [r.program for r in marked] == wrong
    assert all(r.measurement.error is ErrorKind.WRONG for r in marked)


def test_a_wrong_program_is_not_the_best_of_the_next_run() -> None:
    world = tuned()
    task, order = world.tuner.searches[0].task, ranking(world)
    choose(world, faulty(ErrorKind.WRONG, order[0]))
    again = World(NAME, database=world.database, seed=1)
    assert again.best_s(NAME) == latency_of(task, order[1])
    again.run(16)
    assert repr(order[0]) not in {repr(program) for _, program in again.device.trace}
    assert choose(again).program != order[0]


@pytest.mark.parametrize("kind", [ErrorKind.CRASH, ErrorKind.TIMEOUT, ErrorKind.BUILD])
def test_what_fails_once_is_not_called_wrong(kind: ErrorKind) -> None:
    world = tuned()
    task, order = world.tuner.searches[0].task, ranking(world)
    winner = choose(world, faulty(kind, order[0]))
    assert winner.program == order[1]
    assert winner.note == f"{kind.value}: injected fault"
    errors = [r.measurement.error for r in world.database.records(task.key, TARGET)]
    assert [e for e in errors if e is not None] == [kind]


def test_without_a_measurement_the_draft_decides() -> None:
    world = World(NAME)
    winner = choose(world)
    drafted = World(NAME).tuner.searches[0].policy.draft_best()
    assert drafted is not None
    assert winner.program.steps
    assert winner.program == drafted.program
    assert winner.latency_s is None
    assert winner.difference == 0.0


def test_when_all_trials_failed_the_draft_decides() -> None:
    world = World(NAME, fail=lambda *_: ErrorKind.BUILD)
    world.run(16)
    winner = choose(world, FakeDevice(latency_of))
    assert winner.program.steps
    assert repr(winner.program) not in {repr(program) for _, program in world.device.trace}
    assert winner.latency_s is None


def test_when_nothing_works_the_definition_as_it_was_written() -> None:
    world = World(NAME, fail=lambda *_: ErrorKind.CRASH)
    world.run(16)
    winner = choose(world)
    assert winner.program == Program()
    assert winner.latency_s is None
    assert winner.difference is None
    assert "crash: injected fault" in winner.note


def test_when_everything_is_wrong_it_gives_up_in_time() -> None:
    world = tuned(64)
    device = FakeDevice(latency_of, lambda *_: ErrorKind.WRONG)
    winner = choose(world, device)
    assert winner.program == Program()
    assert len(device.verified) <= 16
