"""The loop that spends trials, on a machine that answers from a formula."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from definitions import HARDWARE, sketches
from fake_world import (
    CONFIG,
    TARGET,
    WEIGHTS,
    World,
    fingerprint,
    latency_of,
    make_task,
    random_best,
)

from ansor.config import EvolutionConfig
from ansor.database.database import Database
from ansor.database.journal import Journal
from ansor.errors import DatabaseError
from ansor.measure.fake import FakeDevice
from ansor.measure.result import ErrorKind
from ansor.program.program import Program
from ansor.run.search.allocation import NO_GAIN
from ansor.run.search.budget import Budget
from ansor.run.search.tuner import Tuner
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.task import Task

FAULTS = [ErrorKind.LOWER, ErrorKind.BUILD, ErrorKind.RUN, ErrorKind.TIMEOUT, ErrorKind.CRASH]


# --- the budget -----------------------------------------------------------------------------


@pytest.mark.parametrize("trials", [1, 2, 5, 24, 61])
def test_measurements_equal_the_budget(trials: int) -> None:
    world = World()
    finish = world.run(trials)
    assert world.device.count == trials == finish.trials == world.database.count()
    assert finish.reason == "all trials spent"
    assert sum(r.measured for r in world.events.rounds) == trials


@pytest.mark.parametrize("budget", [Budget(), Budget(trials=0), Budget(trials=0, seconds=9.0)])
def test_an_empty_budget_measures_nothing(budget: Budget) -> None:
    world = World()
    finish = world.tuner.run(budget)
    assert budget.is_empty
    assert world.device.count == finish.trials == 0
    assert finish.reason == "no budget"


def test_nothing_is_measured_twice() -> None:
    world = World()
    world.run(200)
    assert len(set(world.trace)) == 200


def test_seconds_on_a_clock_of_our_own() -> None:
    ticks = count()
    world = World(clock=lambda: float(next(ticks)))  # every look at the clock costs a second
    finish = world.run(seconds=30)
    assert finish.reason == "time is up"
    assert 30 <= finish.elapsed_s <= 35
    assert 3 <= len(world.events.rounds) <= 20
    elapsed = [r.elapsed_s for r in world.events.rounds]
    assert elapsed == sorted(elapsed)
    assert elapsed[-2] < 30


def test_whichever_comes_first() -> None:
    ticks = count()
    world = World(clock=lambda: float(next(ticks)))
    assert world.run(trials=8, seconds=1e6).reason == "all trials spent"
    ticks = count()
    world = World(clock=lambda: float(next(ticks)))
    assert world.run(trials=10**6, seconds=10).reason == "time is up"


def test_a_small_budget_goes_round_once() -> None:
    world = World()
    world.run(len(WEIGHTS))
    assert Counter(key for key, *_ in world.trace) == {make_task(n).key: 1 for n in WEIGHTS}


def test_little_time_goes_round_once() -> None:
    """A second for each program: full batches of 8 would leave the third task without any."""
    made: list[World] = []
    world = World(clock=lambda: float(made[0].device.count) if made else 0.0)
    made.append(world)
    world.run(seconds=16)
    counts = [len(world.tuner.searches[i].history) for i in range(3)]
    assert min(counts) >= 1
    first = [r.measured for r in world.events.rounds[:3]]
    assert first[0] == 8
    assert first[1:] == [4, 4]


def test_a_slow_start_makes_no_trial_dear() -> None:
    """The steps before the first round take half of the budget."""
    made: list[World] = []
    world = World(clock=lambda: 100.0 + made[0].device.count * 0.1 if made else 0.0)
    made.append(world)
    world.run(trials=24, seconds=200)
    assert [r.measured for r in world.events.rounds[:3]] == [8, 8, 8]


def test_a_database_that_fails_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    write, records = world.database.add_records, count()

    def fails_at_twentieth(*arguments: object) -> None:
        if next(records) == 20:
            raise DatabaseError("database='r.db': disk is full", "free some space")
        write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(world.database, "add_records", fails_at_twentieth)
    finish = world.run(100)
    assert "disk is full" in finish.reason
    assert not finish.is_complete
    assert len(world.events.rounds) == 2
    assert finish.trials == world.database.count() == 20


def test_a_search_without_gains_ends_and_says_so() -> None:
    patient = replace(CONFIG, scheduler=replace(CONFIG.scheduler, patience=3, eps_greedy=0.0))
    world = World(config=patient)
    finish = world.run(10_000)
    assert finish.reason == NO_GAIN
    assert finish.trials < 10_000
    for search in world.tuner.searches:
        assert search.policy.exhausted or search.progress(1.0).idle_rounds(0.003) >= 3


def test_without_tasks_there_is_nothing_to_do() -> None:
    tuner = Tuner([], HARDWARE, CPU_SEARCH, FakeDevice(latency_of), Journal(Database()), CONFIG)
    assert tuner.run(Budget(8)).reason == "nothing left to try"


def test_a_tiny_space_ends_by_itself() -> None:
    world = World("total_sum", config=replace(CONFIG, evolution=EvolutionConfig(initial=1024)))
    finish = world.run(10_000)
    assert finish.reason == "nothing left to try"
    space = sum(sketch.space_size for sketch in sketches("total_sum"))
    assert space / 2 < world.device.count <= space, "some choices spell the same program"
    assert len(set(world.trace)) == world.device.count


# --- the events -----------------------------------------------------------------------------


def test_events_tell_what_happened() -> None:
    world = World()
    finish = world.run(48)
    (start,), rounds, (last,) = world.events.starts, world.events.rounds, world.events.finishes
    assert last is finish
    assert (start.trials, start.seconds) == (48, None)
    assert [s.name for s in start.tasks] == list(WEIGHTS)
    assert [s.best_s for s in start.tasks] == [None] * 3
    assert [r.number for r in rounds] == list(range(1, len(rounds) + 1))
    assert [r.task.name for r in rounds[:3]] == list(WEIGHTS), "warm-up goes round robin"
    assert [r.network_s is None for r in rounds[:3]] == [True, True, False]
    assert rounds[-1].trials == 48
    network = [r.network_s for r in rounds if r.network_s is not None]
    assert network == sorted(network, reverse=True)
    assert {s.name: s.weight for s in finish.tasks} == WEIGHTS
    expected = sum(s.weight * (s.best_s or 0) for s in finish.tasks)
    assert network[-1] == pytest.approx(expected)
    assert sum(s.trials for s in finish.tasks) == 48


def test_the_best_of_a_task_is_its_fastest_record() -> None:
    world = World()
    finish = world.run(64)
    for status in finish.tasks:
        (best,) = world.database.best(status.key, TARGET)
        assert status.best_s == best.latency_s
        assert status.sketch == best.program.sketch


# --- determinism ----------------------------------------------------------------------------


def test_a_seed_determines_the_trace() -> None:
    assert fingerprint(0, 80) == fingerprint(0, 80)
    assert fingerprint(0, 80) != fingerprint(1, 80)


@pytest.mark.slow
def test_another_process_gives_the_same_trace() -> None:
    here = fingerprint(5, 40)
    folder = Path(__file__).parent
    path = os.pathsep.join([str(folder), str(folder.parent), *sys.path])
    script = "from fake_world import fingerprint; print(fingerprint(5, 40))"
    for hash_seed in ("1", "77"):
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
        )
        assert done.stdout.strip() == here


# --- faults ---------------------------------------------------------------------------------


def some(kind: ErrorKind, every: int) -> Callable[[Task, Program], ErrorKind | None]:
    """Fails one program in `every`, as the program decides."""

    def fail(task: Task, program: Program) -> ErrorKind | None:
        total = sum(sum(values) for values in program.values.values())
        return kind if total % every == 0 else None

    return fail


@pytest.mark.parametrize("kind", FAULTS)
def test_the_search_goes_on_past_faults(kind: ErrorKind) -> None:
    world = World(fail=some(kind, 3))
    finish = world.run(72)
    assert world.device.count == finish.trials == 72
    reported = sum((Counter(r.errors) for r in world.events.rounds), Counter())
    failed = [r for r in world.database.all_records(TARGET) if r.measurement.error is not None]
    assert set(reported) == {kind.value}
    assert reported[kind.value] == len(failed) > 5
    assert all(r.measurement.error is kind for r in failed)
    assert all(s.best_s is not None for s in finish.tasks)
    first, *others = (r for r in world.events.rounds if r.errors)
    assert first.new_errors == {kind.value: "injected fault"}
    assert not any(r.new_errors for r in others)
    assert finish.errors == {kind.value: len(failed)}
    assert sum((Counter(s.errors) for s in finish.tasks), Counter()) == reported


def test_one_task_that_always_fails_leaves_the_others_alone() -> None:
    bad = make_task("depthwise_conv2d").key
    world = World(fail=lambda task, _: ErrorKind.BUILD if task.key == bad else None)
    finish = world.run(160)
    by_key = {s.key: s for s in finish.tasks}
    assert by_key[bad].best_s is None
    assert by_key[bad].sketch is None
    assert by_key[bad].trials >= 16, "it is tried again"
    assert by_key[bad].trials <= 160 / 3 + 8, "but gets no more than its share"
    assert all(s.best_s is not None for key, s in by_key.items() if key != bad)
    assert all(r.network_s is None for r in world.events.rounds)


def test_everything_fails() -> None:
    world = World(fail=lambda *_: ErrorKind.CRASH)
    finish = world.run(48)
    assert world.device.count == 48
    assert [s.best_s for s in finish.tasks] == [None] * 3


# --- interrupts and resumption --------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 9, 25, 30])
def test_an_interrupt_ends_with_the_best_so_far(number: int) -> None:
    world = World(interrupt_at=number)
    finish = world.run(80)
    assert finish.reason == "interrupted"
    assert world.events.finishes == [finish]
    assert not finish.is_complete
    done = number - 1  # what was measured of the batch under way is kept
    assert world.database.count() == finish.trials == done
    for status in finish.tasks:
        best = world.database.best(status.key, TARGET)
        assert status.best_s == (best[0].latency_s if best else None)
    assert sum(s.best_s is not None for s in finish.tasks) == min(3, -(-done // 8))


def test_a_resumed_run_measures_nothing_again(tmp_path: Path) -> None:
    with Database(tmp_path / "r.sqlite") as database:
        first = World(database=database, interrupt_at=41)
        first.run(80)
        known = set(first.trace)
        second = World(database=database, seed=1)
        assert second.tuner.restored == 40
        assert [s.best_s for s in second.tuner.searches] == [s.best_s for s in first.tuner.searches]
        finish = second.run(40)
        assert not known & set(second.trace)
        assert database.count() == 80
        assert sum(s.trials for s in finish.tasks) == 80


def test_a_task_that_is_known_needs_no_first_round() -> None:
    """What another network has left in the database counts; the time goes to what is new."""
    known, new = "row_sum", "matmul_relu"
    first = World(known)
    first.run(16)
    second = World(known, new, database=first.database, seed=1)
    second.run(16)
    done = [event.task.name for event in second.events.rounds]
    assert done[0] == new
    assert second.best_s(known) == first.best_s(known) or known in done
    assert second.events.rounds[0].network_s is not None


def network_of(world: World) -> float:
    assert world.tuner.latency_s is not None
    return float(world.tuner.latency_s.sum())


@pytest.mark.slow
def test_a_resumed_run_is_as_good_as_an_uninterrupted_one() -> None:
    ratios = []
    for seed in range(4):
        whole = World(seed=seed)
        whole.run(96)
        broken = World(seed=seed, interrupt_at=49)
        broken.run(96)
        before = network_of(broken)
        resumed = World(seed=seed + 100, database=broken.database)
        resumed.run(48)
        assert network_of(resumed) <= before
        ratios.append(network_of(resumed) / network_of(whole))
    assert sorted(ratios)[len(ratios) // 2] < 1.1


def test_a_resumed_run_knows_failures_too() -> None:
    first = World(fail=some(ErrorKind.BUILD, 2))
    first.run(48)
    second = World(database=first.database, seed=3)
    second.run(48)
    assert not set(first.trace) & set(second.trace)


def test_records_of_another_target_are_not_taken_over() -> None:
    first = World()
    first.run(24)
    other = replace(make_task("matmul_relu"), target="another")
    second = World("matmul_relu", database=first.database)
    search = second.tuner.searches[0]
    search.task = other
    assert search.restore(second.journal.records(other.key, other.target)) == 0


# --- quality --------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_beats_random_search_with_as_many_trials() -> None:
    wins = 0
    for seed in range(6):
        world = World("matmul_relu", seed=seed)
        world.run(48)
        best = world.best_s("matmul_relu")
        assert best is not None
        wins += best < random_best("matmul_relu", 48, seed)
    assert wins >= 5


def test_more_trials_are_never_worse() -> None:
    few, many = World(seed=2), World(seed=2)
    few.run(24)
    many.run(120)
    assert network_of(many) <= network_of(few)
