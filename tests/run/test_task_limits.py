"""Limits of each task, the choice of tasks, and what a search takes from earlier runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from fake_world import CONFIG, TARGET, WEIGHTS, World, latency_of, make_task, make_tasks
from hypothesis import given
from hypothesis import strategies as st

from ansor.database.database import Database
from ansor.errors import ArgumentError
from ansor.measure.result import ErrorKind
from ansor.run.search.allocation import LIMITS_MET, NO_GAIN
from ansor.run.search.budget import Budget
from ansor.run.search.task_limits import TaskLimits
from ansor.run.search.task_search import running_best
from ansor.run.settings import Settings
from ansor.run.task_choice import (
    check_choices,
    chosen_functions,
    listed_choices,
    new_functions,
)
from ansor.task import Original, Task

MIN_GAIN = CONFIG.scheduler.min_gain


def counts(world: World) -> Counter[str]:
    """Measurements of each task, by its name."""
    names = {make_task(name).key: name for name in WEIGHTS}
    return Counter(names[key] for key, _ in world.device.trace)


def limited(
    trials: int | None = None, early: int | None = None, total: int | None = None
) -> Budget:
    return Budget(total, per_task=TaskLimits(trials, early))


# --- trials of each task --------------------------------------------------------------------


@pytest.mark.parametrize("trials", [1, 7, 20])
def test_each_task_has_exactly_its_trials(trials: int) -> None:
    world = World()
    finish = world.tuner.run(limited(trials))
    assert counts(world) == dict.fromkeys(WEIGHTS, trials)
    assert finish.reason == LIMITS_MET
    assert finish.trials == 3 * trials == world.database.count()


def test_the_trials_of_the_run_are_a_limit_too() -> None:
    world = World()
    assert world.tuner.run(limited(20, total=30)).reason == "all trials spent"
    assert world.device.count == 30
    assert max(counts(world).values()) <= 20


def test_trials_of_earlier_runs_do_not_count() -> None:
    first = World()
    first.tuner.run(limited(8))
    second = World(database=first.database)
    second.tuner.run(limited(4))
    assert counts(second) == dict.fromkeys(WEIGHTS, 4)


def test_searches_of_one_run_share_the_trials() -> None:
    spent: Counter[str] = Counter()
    first = World(spent=spent)
    first.tuner.run(limited(12).share(0.5))
    second = World(spent=spent, database=first.database)
    second.tuner.run(limited(12))
    assert counts(first) == counts(second) == dict.fromkeys(WEIGHTS, 6)


# --- early stopping -------------------------------------------------------------------------


def trail_of(world: World, name: str) -> list[float | None]:
    """Seconds of the best program before the run and after each of its trials."""
    task, times = make_task(name), []
    for key, program in world.device.trace:
        if key == task.key:
            times.append(latency_of(task, program))
    return [None, *running_best(None, times)]


def idle(trail: list[float | None]) -> int:
    """Trials at the end of a trail that brought no gain."""
    last = trail[-1]
    assert last is not None
    return sum(best is not None and best <= last * (1 + MIN_GAIN) for best in trail) - 1


@pytest.mark.parametrize("early", [5, 16])
def test_each_task_stops_after_exactly_so_many_trials_without_a_gain(early: int) -> None:
    world = World()
    finish = world.tuner.run(limited(early=early))
    assert finish.reason == LIMITS_MET
    for name in WEIGHTS:
        trail = trail_of(world, name)
        assert idle(trail) == early
        earlier = [idle(trail[:end]) for end in range(2, len(trail))]
        assert max(earlier) < early, "a task goes on until then"


def test_early_stopping_is_more_patient_than_the_scheduler_where_a_user_asks_for_it() -> None:
    hasty = replace(CONFIG, scheduler=replace(CONFIG.scheduler, patience=1, eps_greedy=0.0))
    assert World("row_sum", config=hasty).tuner.run(Budget(10_000)).reason == NO_GAIN
    world = World("row_sum", config=hasty)
    world.tuner.run(limited(early=25))
    assert idle(trail_of(world, "row_sum")) == 25


def test_a_task_that_only_fails_stops_too() -> None:
    world = World("matmul_relu", fail=lambda task, program: ErrorKind.BUILD)
    assert world.tuner.run(limited(early=10)).reason == LIMITS_MET
    assert world.device.count == 10


def test_the_same_seed_gives_the_same_trace() -> None:
    budget = limited(16, early=8)
    first, second = World("row_sum", seed=3), World("row_sum", seed=3)
    first.tuner.run(budget)
    second.tuner.run(budget)
    assert first.trace == second.trace


@given(st.lists(st.none() | st.floats(1e-6, 1.0), min_size=1, max_size=12))
def test_the_best_so_far_never_rises(times: list[float | None]) -> None:
    trail = list(running_best(None, times))
    for number, best in enumerate(trail, start=1):
        assert best == min((t for t in times[:number] if t is not None), default=None)


@given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 60), st.integers(0, 60))
def test_what_is_left(trials: int, early: int, measured: int, idle_trials: int) -> None:
    left = TaskLimits(trials, early).left(measured, idle_trials)
    assert left == max(0, min(trials - measured, early - idle_trials))
    assert TaskLimits().left(measured, idle_trials) is None


# --- which tasks are tuned ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("matmul_relu", {"matmul_relu"}),
        ("depthwise_conv2d", {"depthwise_conv2d"}),
        ("matmul", {"matmul_relu"}),
        ("dense", {"matmul_relu"}),
        ("conv2d", {"depthwise_conv2d"}),
        (["dense", "conv2d"], {"matmul_relu", "depthwise_conv2d"}),
        (lambda task: task.weight > 1, {"matmul_relu", "row_sum"}),
        (None, set(WEIGHTS)),
    ],
)
def test_choices_fit_functions(choice: object, expected: set[str]) -> None:
    tasks, choices = make_tasks(), listed_choices(choice)
    check_choices(tasks, choices)
    assert chosen_functions(tasks, choices) == expected


def test_an_operator_is_a_word_with_a_number_and_its_variants_follow() -> None:
    direct = replace(make_task("matmul_relu"), name="net/fused_conv2d12_add1")
    assert chosen_functions([direct], ("conv2d",)) == {direct.name}
    assert chosen_functions([direct], ("fused_conv2d12_add1",)) == {direct.name}
    assert not chosen_functions([direct], ("conv",))


def _fails(task: Task) -> bool:
    raise KeyError(task.name)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("conv3d", "name some of matmul_relu, depthwise_conv2d, row_sum"),
        (["dense", "lstm"], "tasks='lstm': fits no function"),
        (lambda task: False, "fits no function"),
        (_fails, "fails for matmul_relu"),
        ([], "give names"),
        (7, "give names"),
    ],
)
def test_a_choice_that_fits_nothing_is_refused(choice: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        check_choices(make_tasks(), listed_choices(choice))


@pytest.mark.parametrize(
    ("known", "choice", "expected"),
    [
        (set(), None, set(WEIGHTS)),
        ({"row_sum"}, None, {"matmul_relu", "depthwise_conv2d"}),
        ({"row_sum"}, ["dense", "row_sum"], {"matmul_relu"}),
        (set(WEIGHTS), None, set()),
        ({"matmul_relu"}, "dense", set()),
    ],
)
def test_new_functions_have_no_known_task(
    known: set[str], choice: object, expected: set[str]
) -> None:
    tasks = make_tasks()
    new = new_functions(tasks, listed_choices(choice), lambda task: task.name in known)
    assert chosen_functions(tasks, new) == expected


def test_a_known_variant_makes_a_function_known() -> None:
    direct, other = make_task("matmul_relu"), make_task("row_sum")
    variant = replace(other, original=Original(direct.name, "winograd2", direct.func))
    assert new_functions([direct, variant], None, lambda task: task is variant) == ()


def test_a_search_of_new_functions_leaves_the_others_alone() -> None:
    world = World("row_sum")
    world.run(2)
    settings = Settings(trials=8, only_new=True)
    (name, *rest) = make_tasks("row_sum", "matmul_relu")
    both = settings.on_new([name, *rest], world.database.records)
    assert chosen_functions([name, *rest], both.choices) == {"matmul_relu"}
    assert both.trials == 8
    assert settings.on_new([name], world.database.records).trials == 0, "nothing is new"
    assert Settings(trials=8).on_new([name], world.database.records).choices is None


def test_only_chosen_tasks_are_measured() -> None:
    world = World(chosen={"row_sum", "matmul_relu"})
    world.run(40)
    assert counts(world).keys() == {"row_sum", "matmul_relu"}
    assert world.device.count == 40
    (rest,) = (s for s in world.tuner.searches if s.task.name == "depthwise_conv2d")
    assert rest.drafted is not None, "the draft chooses"


def test_what_is_not_chosen_keeps_its_best() -> None:
    first = World()
    first.run(24)
    second = World(database=first.database, chosen={"row_sum"})
    second.run(8)
    assert counts(second) == {"row_sum": 8}
    assert second.best_s("matmul_relu") == first.best_s("matmul_relu")


# --- earlier runs ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def first() -> World:
    """An earlier run of one task."""
    world = World("matmul_relu")
    world.run(32)
    return world


def test_a_search_begins_with_the_best_of_an_earlier_run_and_measures_it_again(
    first: World,
) -> None:
    (best,) = first.database.best(make_task("matmul_relu").key, TARGET)
    second = World("matmul_relu", seed=9, earlier=[first.database])
    assert second.tuner.statuses[0].trials == 0, "nothing counts as measured"
    second.run(8)
    assert best.program in [program for _, program in second.device.trace]
    assert second.best_s("matmul_relu") == first.best_s("matmul_relu")


def test_the_cost_model_learns_from_earlier_records(first: World) -> None:
    second = World("matmul_relu", seed=9, earlier=[first.database])
    assert second.tuner.model.size == 32
    assert second.tuner.model.fits == 1


def test_the_speed_of_another_machine_does_not_matter(first: World) -> None:
    """A machine that takes ten times as long teaches the same."""
    slow = Database()
    task = replace(make_task("matmul_relu"), target="elsewhere")
    for record in first.database.all_records(TARGET):
        seconds = 10 * (record.latency_s or 0.0)
        slow.add(task, record.program, replace(record.measurement, latencies_s=(seconds,)))
    traces = []
    for source in (first.database, slow):
        world = World("matmul_relu", seed=9, earlier=[source])
        world.run(8)
        traces.append(world.trace)
    assert traces[0] == traces[1]


def test_programs_that_failed_do_not_teach() -> None:
    first = World("matmul_relu", fail=lambda task, program: ErrorKind.RUN)
    first.run(16)
    assert World("matmul_relu", earlier=[first.database]).tuner.model.size == 0


def test_records_of_other_tasks_do_no_harm() -> None:
    first = World("row_sum")
    first.run(16)
    second = World("matmul_relu", earlier=[first.database])
    alone = World("matmul_relu")
    for world in (second, alone):
        world.run(16)
    assert second.trace == alone.trace
