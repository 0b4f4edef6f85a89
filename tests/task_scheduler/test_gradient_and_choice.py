"""Ansor's gradient against numbers from a pocket calculator, and what the scheduler chooses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ansor.config import SchedulerConfig
from ansor.task_scheduler.gradient import TaskProgress, gradient
from ansor.task_scheduler.scheduler import TaskScheduler

CONFIG = SchedulerConfig(alpha=0.2, beta=2.0, backward_window=3, eps_greedy=0.0, patience=1000)


def task(
    *best_s: float | None,
    weight: float = 1,
    flops: float = 1e9,
    tag: str = "t",
    exhausted: bool = False,
) -> TaskProgress:
    return TaskProgress(weight, flops, tag, tuple(best_s), exhausted)


def scheduler(config: SchedulerConfig = CONFIG, seed: int = 0) -> TaskScheduler:
    return TaskScheduler(config, np.random.default_rng(seed))


# --- equation 3 -----------------------------------------------------------------------------


def test_after_one_round_only_hope_counts() -> None:
    # No slope yet; -g/t = -8 ms / 1. 0.8 x -8 = -6.4 ms.
    assert gradient(task(8e-3), [], CONFIG) == pytest.approx(-6.4e-3)


def test_the_weight_multiplies() -> None:
    assert gradient(task(8e-3, weight=5), [], CONFIG) == pytest.approx(-32e-3)


def test_the_slope_is_taken_over_the_window() -> None:
    # Five rounds: slope (4 - 10) / 3 = -2 ms over the last three; -g/t = -4 / 5 = -0.8 ms.
    # 0.2 x -2 + 0.8 x -0.8 = -1.04 ms.
    found = gradient(task(20e-3, 10e-3, 9e-3, 5e-3, 4e-3), [], CONFIG)
    assert found == pytest.approx(-1.04e-3)


def test_a_young_task_uses_all_of_its_history() -> None:
    # Slope (6 - 10) / 1 = -4 ms; -g/t = -6 / 2 = -3 ms. 0.2 x -4 + 0.8 x -3 = -3.2 ms.
    assert gradient(task(10e-3, 6e-3), [], CONFIG) == pytest.approx(-3.2e-3)


def test_failures_before_the_first_success_give_no_slope() -> None:
    # -g/t = -6 / 3 = -2 ms; 0.8 x -2 = -1.6 ms.
    assert gradient(task(None, None, 6e-3), [], CONFIG) == pytest.approx(-1.6e-3)


def test_a_faster_relative_raises_hopes() -> None:
    # It ran 1e9 in 1 ms: V = 1e12. beta C / V - g = 2 ms - 12 ms = -10 ms, below -g/t = -3 ms.
    # No slope: 0.8 x -10 = -8 ms.
    own = task(12e-3, 12e-3, 12e-3, 12e-3)
    assert gradient(own, [task(1e-3)], CONFIG) == pytest.approx(-8e-3)


def test_the_fastest_relative_counts_and_failing_ones_do_not() -> None:
    own = task(12e-3, 12e-3, 12e-3, 12e-3)
    relatives = [task(50e-3), task(None), task(1e-3), task(4e-3)]
    assert gradient(own, relatives, CONFIG) == pytest.approx(-8e-3)


def test_a_slower_relative_changes_nothing() -> None:
    own = task(12e-3, 12e-3, 12e-3, 12e-3)
    assert gradient(own, [task(1.0)], CONFIG) == pytest.approx(gradient(own, [], CONFIG))


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_alpha_mixes(alpha: float) -> None:
    config = SchedulerConfig(alpha=alpha)
    # Slope -4 ms, hope -3 ms, as above.
    expected = alpha * -4e-3 + (1 - alpha) * -3e-3
    assert gradient(task(10e-3, 6e-3), [], config) == pytest.approx(expected)


# --- the choice -----------------------------------------------------------------------------


def test_warm_up_goes_round_robin() -> None:
    config = SchedulerConfig(warmup_rounds=2, eps_greedy=1.0)
    histories: list[list[float | None]] = [[], [], []]
    chosen = []
    for _ in range(6):
        number = scheduler(config).choose([task(*history) for history in histories])
        assert number is not None
        histories[number].append(1e-3)
        chosen.append(number)
    assert chosen == [0, 1, 2, 0, 1, 2]


def test_it_takes_the_task_with_the_most_to_gain() -> None:
    # Gains: 0.8 x 1 ms, 0.8 x 5 ms, 3 x 0.8 x 2 ms.
    tasks = [task(1e-3), task(5e-3, tag="b"), task(2e-3, weight=3, tag="c")]
    assert scheduler().choose(tasks) == 2
    assert scheduler().choose(tasks[:2]) == 1


def test_only_tasks_of_the_same_kind_are_relatives() -> None:
    # Task 0 has stalled at 12 ms. A relative at 1 ms says that it can gain 0.8 x 10 ms; task 2
    # promises 0.8 x 8 ms.
    stalled = [12e-3] * 4
    fast = [1e-3] * 8
    assert scheduler().choose([task(*stalled), task(*fast), task(8e-3, tag="x")]) == 0
    assert scheduler().choose([task(*stalled), task(*fast, tag="y"), task(8e-3, tag="x")]) == 2


def test_equal_tasks_are_taken_in_order() -> None:
    assert scheduler().choose([task(1e-3), task(1e-3)]) == 0


def simulate(
    latencies: Sequence[Sequence[float | None]], rounds: int, config: SchedulerConfig = CONFIG
) -> list[int]:
    """Tasks whose best latency after each round is written down; the last entry holds on."""
    made, chosen = scheduler(config), []
    histories: list[list[float | None]] = [[] for _ in latencies]
    for _ in range(rounds):
        tasks = [task(*h, tag=str(i)) for i, h in enumerate(histories)]
        number = made.choose(tasks)
        assert number is not None
        script = latencies[number]
        histories[number].append(script[min(len(histories[number]), len(script) - 1)])
        chosen.append(number)
    return chosen


def test_of_two_equals_the_one_that_improves_goes_on() -> None:
    stalled = task(10e-3, 10e-3, 10e-3, 10e-3)
    improving = task(16e-3, 14e-3, 12e-3, 10e-3, tag="b")
    assert scheduler().choose([stalled, improving]) == 1
    assert scheduler().choose([improving, stalled]) == 0


def test_equal_tasks_share_the_rounds() -> None:
    counts = Counter(simulate([[10e-3], [10e-3]], 40))
    assert counts[0] == counts[1]


def test_a_heavier_task_gets_more() -> None:
    counts = Counter(simulate([[9e-3], [1e-3]], 100))
    assert counts[0] > 2 * counts[1]
    assert counts[1] >= 5


def test_a_failing_task_is_tried_again_but_gets_no_more_than_its_share() -> None:
    chosen = simulate([[1e-3], [None], [1e-3], [1e-3]], 80)
    counts = Counter(chosen)
    assert counts[1] >= 5, "not dead for ever"
    assert counts[1] <= 80 / 4 + 1, "nor does it eat up the budget"


def test_a_failing_task_that_recovers_is_like_any_other() -> None:
    script: list[float | None] = [None, None, 50e-3, 40e-3, 30e-3]
    chosen = simulate([[1e-3], script], 30)
    assert Counter(chosen)[1] > 15


def test_when_all_fail_all_are_tried() -> None:
    counts = Counter(simulate([[None], [None], [None]], 30))
    assert min(counts.values()) >= 8


def test_the_exhausted_are_skipped() -> None:
    done = task(1.0, exhausted=True)
    assert scheduler().choose([done, task(1e-6)]) == 1
    assert scheduler().choose([task(exhausted=True), task(1e-6)]) == 1, "in the warm-up too"
    greedy = scheduler(SchedulerConfig(eps_greedy=1.0))
    assert {greedy.choose([done, task(1e-6)]) for _ in range(50)} == {1}
    assert scheduler().choose([task(None, exhausted=True), task(1e-6)]) == 1, "nor are they retried"


def test_at_the_end_there_is_none() -> None:
    assert scheduler().choose([task(1.0, exhausted=True), task(exhausted=True)]) is None
    assert scheduler().choose([]) is None


def test_now_and_then_any_task() -> None:
    tasks = [task(10e-3), *[task(1e-6, tag=str(i)) for i in range(3)]]
    made = scheduler(SchedulerConfig(eps_greedy=0.4))
    counts = Counter(made.choose(tasks) for _ in range(2000))
    for other in (1, 2, 3):
        assert counts[other] == pytest.approx(2000 * 0.4 / 4, rel=0.25)


def test_the_same_seed_gives_the_same_choices() -> None:
    tasks = [task(10e-3), task(1e-6), task(1e-6)]
    config = SchedulerConfig(eps_greedy=0.5)

    def run(seed: int) -> list[int | None]:
        made = scheduler(config, seed)
        return [made.choose(tasks) for _ in range(50)]

    assert run(1) == run(1)
    assert run(1) != run(2)


# --- variants ---------------------------------------------------------------------------------


def variant(*best_s: float | None, group: str = "g", exhausted: bool = False) -> TaskProgress:
    return TaskProgress(1, 1e9, "t", tuple(best_s), exhausted, group)


def test_a_variant_far_behind_is_given_up() -> None:
    slow, fast = variant(13e-3), variant(10e-3)
    assert SchedulerConfig().variant_margin == 1.25
    assert {scheduler(seed=s).choose([slow, fast]) for s in range(20)} == {1}
    assert scheduler().choose([slow, variant(10e-3, exhausted=True)]) is None


def test_one_that_is_close_may_catch_up() -> None:
    # Five rounds against one: -12 / 1 x 0.8 = -9.6 ms, + 2 ms to catch up, against -10 / 5 x 0.8.
    assert scheduler().choose([variant(12e-3), variant(*[10e-3] * 5)]) == 0


def test_what_it_lacks_counts_against_it() -> None:
    # Both promise 0.8 x 1 ms, but the second has to gain 1.2 ms before anything is won.
    assert scheduler().choose([variant(*[10e-3] * 10), variant(*[11.2e-3] * 10)]) == 0


def test_groups_are_apart() -> None:
    slow = [variant(13e-3, group="a"), variant(10e-3, group="b")]
    assert scheduler().choose(slow) == 0


def test_every_variant_gets_its_first_round() -> None:
    assert scheduler().choose([variant(10e-3), variant()]) == 1


def promising(
    promised_s: float, *best_s: float | None, group: str = "g", flops: float = 1e9
) -> TaskProgress:
    return TaskProgress(1, flops, "t", tuple(best_s), False, group, promised_s)


def order_of(tasks: list[TaskProgress]) -> list[int]:
    """Who begins, one after the other, if every first round takes a millisecond."""
    tasks, order = list(tasks), []
    while any(not t.rounds for t in tasks):
        number = scheduler(replace(CONFIG, variant_margin=1e9, begin_margin=1e9)).choose(tasks)
        assert number is not None
        if tasks[number].rounds:
            break
        order.append(number)
        tasks[number] = replace(tasks[number], best_s=(1e-3,))
    return order


def test_the_most_promising_of_each_function_begins() -> None:
    direct, filtered = promising(1.2e-3, flops=9e9), promising(1e-3, flops=4e9)
    light = promising(0.0, group="h", flops=5e9)
    assert order_of([light, direct, filtered]) == [2, 0, 1], "a function is as heavy as it can be"


def test_a_variant_that_promises_little_never_begins() -> None:
    assert SchedulerConfig().promise_margin == 1.5
    assert order_of([promising(1.51e-3), promising(1e-3), promising(1.49e-3)]) == [1, 2]


def test_a_variant_that_promises_less_than_another_has_reached_never_begins() -> None:
    assert SchedulerConfig().begin_margin == 1.1
    for promised_s, chosen in ((1.19e-3, 1), (1.21e-3, 0)):
        rival = promising(1e-3, 1.1e-3, 1.09e-3, 1.09e-3)
        assert scheduler().choose([rival, promising(promised_s)]) == chosen
    other = promising(2e-3, group="h")
    assert scheduler().choose([promising(1e-3, 1e-3), other]) == 1, "functions are no rivals"


def test_a_variant_that_promises_as_much_as_the_one_before_begins() -> None:
    """Generations make more of a sample: what was reached says nothing against an equal one."""
    assert SchedulerConfig().equal_margin == 1.05
    for promised_s, chosen in ((1.04e-3, 1), (1.06e-3, 0)):
        rival = promising(1e-3, 0.6e-3, 0.55e-3, 0.55e-3)
        assert scheduler().choose([rival, promising(promised_s)]) == chosen


def test_a_promise_that_failed_keeps_no_other_from_beginning() -> None:
    failed, other = promising(1e-3, None), promising(9e-3)
    assert scheduler().choose([failed, other]) == 1
    exhausted = replace(promising(1e-3), exhausted=True)
    assert scheduler().choose([exhausted, other]) == 1


def test_a_variant_with_records_is_judged_by_them() -> None:
    slow_by_promise, other = promising(9e-3, 1e-3), promising(1e-3, 1.1e-3)
    assert {scheduler(seed=s).choose([slow_by_promise, other]) for s in range(5)} == {0}


def test_epsilon_never_returns_to_a_variant_that_was_given_up() -> None:
    always = SchedulerConfig(eps_greedy=1.0)
    tasks = [variant(13e-3), variant(10e-3), variant(9e-3, group="b")]
    assert {scheduler(always, seed=s).choose(tasks) for s in range(30)} == {1, 2}


# --- early stopping ---------------------------------------------------------------------------

PATIENT = SchedulerConfig(eps_greedy=0.0, patience=3, min_gain=0.01)


@pytest.mark.parametrize(
    ("best_ms", "idle"),
    [
        ((10,), 0),
        ((10, 8), 0),
        ((10, 8, 8, 8), 2),
        ((10, 8, 7.95, 7.93), 2),  # 0.9 % in two rounds
        ((10, 8, 7.8, 7.6), 0),
        ((None, None), 0),
        ((None, 8, 8), 1),
    ],
)
def test_idle_rounds(best_ms: tuple[float | None, ...], idle: int) -> None:
    assert task(*best_ms).idle_rounds(0.01) == idle


def test_a_task_without_gain_is_left_alone() -> None:
    tasks = [task(*[10e-3] * 4, weight=100), task(1e-3)]
    assert {scheduler(PATIENT, seed=s).choose(tasks) for s in range(10)} == {1}
    assert scheduler(PATIENT).choose(tasks[:1]) is None
    assert scheduler(PATIENT).choose([task(10e-3, 10e-3, 10e-3)]) == 0, "one round more"


def test_the_heaviest_begins() -> None:
    tasks = [task(flops=1e9), task(flops=1e8, weight=20), task(flops=1e9)]
    order = []
    while len(order) < 3:
        number = scheduler().choose(tasks)
        assert number is not None
        order.append(number)
        tasks[number] = task(1e-3)
    assert order == [1, 0, 2]
