"""The live table of a run, drawn on a console of a fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fake_world import World
from rich.console import Console

from ansor.callbacks import Round, Start, TaskStatus
from ansor.report.live_table import budget_line, live_table, network_line, peak_share
from ansor.report.run_state import RunState, network_seconds
from ansor.task_scheduler.objective import LatencyRequirement

CONV = TaskStatus("fused_conv2d_add_relu", "c", 4, 10**8, 0, None, compute_s=1e-3, memory_s=1e-5)
POOL = TaskStatus("avg_pool2d", "p", 1, 10**5, 0, None, memory_s=2e-5)
DENSE = TaskStatus("matmul", "d", 1, 10**6, 0, None, group="matmul", compute_s=1e-4)
BLOCKED = replace(DENSE, name="matmul_blocked", key="b")
TASKS = (CONV, POOL, DENSE)
START = Start(TASKS, 100, 300.0, goal_s=6e-3)


def measured(
    task: TaskStatus, best_s: float | None, elapsed_s: float, **more: object
) -> tuple[TaskStatus, Round]:
    """A task after a round of 10 programs, and the round; `more` are fields of the round."""
    after = replace(task, best_s=best_s, trials=task.trials + 10)
    given = {"errors": {}, "trials": 10, "network_s": None, **more}
    return after, Round(1, after, 10, new_errors={}, elapsed_s=elapsed_s, **given)  # type: ignore[arg-type]


def finished_run() -> RunState:
    """Four rounds, the last of which made the convolution faster."""
    state = RunState(START)
    conv, first = measured(CONV, 2e-3, 10.0, errors={"build": 2})
    rounds = [first, measured(POOL, 1e-4, 20.0, errors={"crash": 1, "build": 3}, trials=20)[1]]
    rounds.append(measured(DENSE, 4e-4, 30.0, trials=30, network_s=8.5e-3)[1])
    rounds.append(measured(conv, 1.6e-3, 150.0, trials=40, network_s=6.9e-3)[1])
    for done in rounds:
        state.take(done)
    return state


def drawn(state: RunState, width: int = 100, height: int = 20) -> list[str]:
    """The lines of the table on a console of that size."""
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(live_table(state, width, height))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_run_is_shown_with_shares_peaks_gains_and_failures() -> None:
    assert drawn(finished_run()) == [
        "network about 6.90 ms; 1.23× as fast as its first programs (8.50 ms); goal 6.00 ms, 1.15× "
        "of it",
        "2 min 30 s, 40 programs measured; left: 2 min 30 s or 60 programs",
        "task                   share  best µs  of peak  trials             last gain  failed",
        "fused_conv2d_add_relu  92.8%     1600      62%      20         20.0% 0 s ago  2 build",
        "matmul                  5.8%      400      25%      10   first 2 min 0 s ago",
        "avg_pool2d              1.4%      100  20% mem      10  first 2 min 10 s ago  "
        "3 build, 1 crash",
    ]


def test_before_the_first_round_nothing_is_known() -> None:
    lines = drawn(RunState(START))
    assert lines[:2] == [
        "network about - ms; goal 6.00 ms",
        "0 s, 0 programs measured; left: 5 min 0 s or 100 programs",
    ]
    assert [line.split() for line in lines[3:]] == [
        [task.name, "-", "-", "-", "0", "-"] for task in TASKS
    ]


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_every_row_is_one_line_of_the_terminal(width: int) -> None:
    state = finished_run()
    long = replace(CONV, name="fused_" + "conv2d_" * 10 + "end", key="l")
    state.take(measured(long, 1e-2, 160.0)[1])
    assert len(drawn(state, width)) - len(drawn(state, 400)) == sum(
        (len(line) > width) for line in (network_line(state), budget_line(state))
    )
    assert all(len(line) <= width for line in drawn(state, width))


def test_the_end_of_a_long_name_is_shown_where_there_is_room() -> None:
    long = replace(CONV, name="fused_" + "conv2d_" * 10 + "end", key="l")
    (row,) = drawn(RunState(Start((long,), 1, None)), 80)[3:]
    assert "…" in row
    assert "_end" in row


def test_only_the_fastest_variant_of_a_function_has_a_share() -> None:
    state = RunState(Start((DENSE, BLOCKED), 100, None))
    state.take(measured(DENSE, 4e-4, 1.0)[1])
    assert state.shares == {"matmul": 1.0}
    state.take(measured(BLOCKED, 1e-4, 2.0)[1])
    assert state.shares == {"matmul_blocked": 1.0}
    assert network_seconds(state.tasks.values()) == 1e-4


def test_a_round_without_a_gain_leaves_the_last_gain() -> None:
    state = finished_run()
    before = dict(state.gains)
    state.take(measured(state.tasks[CONV.name], 1.6e-3, 200.0)[1])
    assert state.gains == before
    assert "20.0% 50 s ago" in "\n".join(drawn(state))


def test_a_task_that_a_database_knows_has_no_gain_before_it_is_faster() -> None:
    known = replace(CONV, best_s=1e-3)
    state = RunState(Start((known,), 10, None))
    assert state.first_s == 4e-3
    assert state.gains == {}
    state.take(measured(known, 5e-4, 3.0, network_s=2e-3)[1])
    assert state.gains[CONV.name].share == 0.5
    assert "2.00× as fast as its first programs (4.00 ms)" in network_line(state)


@pytest.mark.parametrize(
    ("start", "text"),
    [
        (replace(START, goal_s=7e-3), "goal 7.00 ms reached"),
        (replace(START, goal_s=None), "first programs (8.50 ms)"),
        (replace(START, reference_s=13.8e-3), "2.00× as fast as the reference (13.8 ms)"),
    ],
)
def test_the_network_is_compared_with_a_goal_and_a_reference(start: Start, text: str) -> None:
    assert text in network_line(replace_start(finished_run(), start))


@pytest.mark.parametrize(
    ("trials", "seconds", "text"),
    [
        (None, 300.0, "; left: 2 min 30 s"),
        (64, None, "; left: 24 programs"),
        (None, None, "40 programs measured"),
        (None, 100.0, "; left: 0 s"),
    ],
)
def test_what_is_left_of_the_budget(trials: int | None, seconds: float | None, text: str) -> None:
    start = replace(START, trials=trials, seconds=seconds)
    assert budget_line(replace_start(finished_run(), start)).endswith(text)


def test_a_disturbed_machine_is_told() -> None:
    state = finished_run()
    state.take(measured(POOL, 1e-4, 160.0, disturbed=3, speed=0.5)[1])
    assert budget_line(state).endswith("; 3 of 10 disturbed, machine at 50% of its best speed")


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (CONV, "-"),
        (replace(CONV, best_s=2e-3), "50%"),
        (replace(POOL, best_s=4e-5), "50% mem"),
        (TaskStatus("unknown", "u", 1, 0, 1, 1e-3), "-"),
    ],
)
def test_the_share_of_the_peak(task: TaskStatus, text: str) -> None:
    assert peak_share(task) == text


def replace_start(state: RunState, start: Start) -> RunState:
    """The state with another beginning."""
    state.start = start
    return state


def names(lines: Sequence[str]) -> list[str]:
    return [line.split()[0] for line in lines[3:]]


def test_a_low_terminal_shows_what_takes_the_most_time() -> None:
    lines = drawn(finished_run(), height=2)
    assert names(lines) == ["fused_conv2d_add_relu", "matmul", "and"]
    assert lines[-1] == "and 1 more tasks"


def test_the_events_of_a_run_fill_the_table() -> None:
    world = World("matmul_relu", "row_sum", objective=LatencyRequirement(1e-9))
    world.run(trials=32)
    (start,) = world.events.starts
    assert (start.trials, start.goal_s, start.reference_s) == (32, 1e-9, None)
    state = RunState(start)
    for done in world.events.rounds:
        state.take(done)
    assert state.tasks == {task.name: task for task in world.tuner.statuses}
    assert network_seconds(state.tasks.values()) == pytest.approx(
        state.last and state.last.network_s
    )
    assert sum(state.shares.values()) == pytest.approx(1)
    assert peak_share(state.tasks["matmul_relu"]).endswith("% mem"), "a small product"
    assert peak_share(state.tasks["row_sum"]).endswith("% mem")
    assert state.gains.keys() == state.tasks.keys()
