"""Progress on a terminal and in a pipe."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console

from ansor.callbacks import Finish, Round, Start, TaskStatus
from ansor.report.progress import Progress

TASKS = tuple(TaskStatus(f"task{i}", f"{i:016x}", i + 1, 10**6, 0, None) for i in range(3))
DONE = TaskStatus("task1", "1", 2, 10**6, 16, 1e-5, "3677876a")
ROUND = Round(
    1, DONE, 16, {"build": 2, "crash": 1}, {"build": "no such\nregister"}, 16, 3.25, None, 2e-5
)


def play(progress: Progress) -> None:
    """One round and an end."""
    progress.on_start(Start(TASKS, 64, 30.0))
    progress.on_round(ROUND)
    progress.on_finish(Finish("time is up", TASKS, 16, 31.0, errors=ROUND.errors))
    progress.on_stage("compiling")


def test_lines_where_there_is_no_terminal() -> None:
    output = StringIO()
    play(Progress(Console(file=output, width=60)))
    assert output.getvalue().splitlines() == [
        "3 tasks, budget: 64 programs or 30 s",
        "first build failure: no such",
        "   3.2 s  [2/3] task1: current/best 50.0/100 GFLOP/s, best 10.0 µs after 16 programs; "
        "network about - ms; failed: 2 build, 1 crash",
        "search ended after 31 s and 16 programs (2 build, 1 crash failed): time is up",
        "compiling",
    ]


def test_a_round_that_is_repeated_has_no_line() -> None:
    output = StringIO()
    progress = Progress(Console(file=output))
    progress.on_start(Start(TASKS, None, None))
    progress.on_round(replace(ROUND, recalled=16, new_errors={}))
    assert len(output.getvalue().splitlines()) == 1


def test_a_table_on_a_terminal() -> None:
    output = StringIO()
    console = Console(file=output, force_terminal=True, width=100, height=30, color_system=None)
    play(Progress(console))
    text = output.getvalue()
    assert "of peak" in text
    assert "task1" in text
    assert "10.0" in text


def test_a_low_terminal_shows_what_matters_and_counts_the_rest() -> None:
    output = StringIO()
    console = Console(file=output, force_terminal=True, width=100, height=9, color_system=None)
    play(Progress(console))
    assert "and 2 more tasks" in output.getvalue()


def test_the_terminal_is_restored_after_an_error() -> None:
    console = Console(file=StringIO(), force_terminal=True, width=100)
    with Progress(console) as progress:
        progress.on_start(Start(TASKS, None, None))
    progress.close()
    assert console._live_stack == []


def test_no_budget_is_said() -> None:
    output = StringIO()
    Progress(Console(file=output)).on_start(Start(TASKS, None, None))
    assert "the best known programs are used" in output.getvalue()
