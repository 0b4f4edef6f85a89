"""A run in lines, for output that is no terminal."""

from __future__ import annotations

from ansor.callbacks import Round, Start
from ansor.report.formatting import (
    failures,
    gflops,
    microseconds,
    milliseconds,
    shorten,
)

_MOST_NAME = 40  # characters


def start_line(start: Start) -> str:
    """The tasks and the budget of a run."""
    goal = "" if start.goal_s is None else f", goal: {milliseconds(start.goal_s)} ms"
    return f"{len(start.tasks)} tasks, budget: {_budget(start)}{goal}"


def round_line(done: Round, number: int, count: int) -> str:
    """A round of one task: the throughputs of its last batch and of its best program.

    Args:
        done: the round.
        number: place of the task among all, from 1.
        count: of the tasks.
    """
    task = done.task
    current, best = gflops(task.flops, done.current_s), gflops(task.flops, task.best_s)
    failed = f"; failed: {failures(done.errors)}" if done.errors else ""
    return (
        f"{done.elapsed_s:6.1f} s  [{number}/{count}] {shorten(task.name, _MOST_NAME)}: "
        f"current/best {current}/{best} GFLOP/s, best {microseconds(task.best_s)} µs after "
        f"{task.trials} programs; network about {milliseconds(done.network_s)} ms"
        f"{conditions(done)}{failed}"
    )


def conditions(done: Round) -> str:
    """The state of the machine in a round, if it was disturbed."""
    if not done.disturbed:
        return ""
    speed = "" if done.speed is None else f", machine at {done.speed:.0%} of its best speed"
    return f"; {done.disturbed} of {done.measured} disturbed{speed}"


def _budget(start: Start) -> str:
    parts = [f"{start.trials} programs"] if start.trials is not None else []
    parts += [f"{start.seconds:.0f} s"] if start.seconds is not None else []
    return " or ".join(parts) or "none, the best known programs are used"
