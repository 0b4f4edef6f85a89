"""A run as a table with a head, as wide and as high as the terminal has room for."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ansor.callbacks import TaskStatus
from ansor.report.formatting import (
    Column,
    duration,
    failures,
    microseconds,
    milliseconds,
    percent,
    shorten,
)
from ansor.report.round_text import conditions
from ansor.report.run_state import Gain, RunState

_TASK = Column("task", is_text=True, most=40)
_COLUMNS = (
    _TASK,
    Column("share"),
    Column("best µs"),
    Column("of peak"),
    Column("trials"),
    Column("last gain"),
    Column("failed", is_text=True, most=24),
)
_GAP = 2  # characters between columns
_LEAST_NAME = 12  # characters


def live_table(state: RunState, width: int, height: int) -> Group:
    """The run as it stands.

    Args:
        state: of the run.
        width: characters of a line.
        height: lines for tasks, at least 1.
    """
    shown = state.ranked[:height]
    shares = state.shares
    rows = [_row(task, state, shares.get(task.name)) for task in shown]
    hidden = len(state.tasks) - len(shown)
    more = [Text(f"and {hidden} more tasks")] if hidden else []
    return Group(Text(network_line(state)), Text(budget_line(state)), _table(rows, width), *more)


def network_line(state: RunState) -> str:
    """The latency of the network, beside that of its first programs, a goal and a reference."""
    network_s = None if state.last is None else state.last.network_s
    parts = [f"network about {milliseconds(network_s)} ms"]
    if network_s and state.first_s:
        first = f"its first programs ({milliseconds(state.first_s)} ms)"
        parts.append(f"{state.first_s / network_s:.2f}× as fast as {first}")
    if network_s and state.start.reference_s:
        reference_s = state.start.reference_s
        text = f"the reference ({milliseconds(reference_s)} ms)"
        parts.append(f"{reference_s / network_s:.2f}× as fast as {text}")
    if state.start.goal_s:
        parts.append(_goal(network_s, state.start.goal_s))
    return "; ".join(parts)


def _goal(network_s: float | None, goal_s: float) -> str:
    text = f"goal {milliseconds(goal_s)} ms"
    if network_s is None:
        return text
    return f"{text} reached" if network_s <= goal_s else f"{text}, {network_s / goal_s:.2f}× of it"


def budget_line(state: RunState) -> str:
    """The time and the trials that are spent and left, and the state of the machine."""
    start, left = state.start, list[str]()
    if start.seconds is not None:
        left.append(duration(max(0.0, start.seconds - state.elapsed_s)))
    if start.trials is not None:
        left.append(f"{max(0, start.trials - state.trials)} programs")
    text = f"{duration(state.elapsed_s)}, {state.trials} programs measured"
    rest = f"; left: {' or '.join(left)}" if left else ""
    return f"{text}{rest}{'' if state.last is None else conditions(state.last)}"


def peak_share(task: TaskStatus) -> str:
    """Share of the machine's peak, with "mem" if the memory bounds the task."""
    bound_s, suffix = max((task.compute_s, ""), (task.memory_s, " mem"))
    return "-" if not (bound_s and task.best_s) else f"{100 * bound_s / task.best_s:.0f}%{suffix}"


def _gain(gain: Gain | None, now_s: float) -> str:
    if gain is None:
        return "-"
    size = "first" if gain.share is None else f"{100 * gain.share:.1f}%"
    return f"{size} {duration(now_s - gain.elapsed_s)} ago"


def _row(task: TaskStatus, state: RunState, share: float | None) -> tuple[str, ...]:
    cells = (
        task.name,
        percent(share, 1.0),
        microseconds(task.best_s),
        peak_share(task),
        str(task.trials),
        _gain(state.gains.get(task.name), state.elapsed_s),
        failures(state.errors.get(task.name, {})),
    )
    return tuple(column.fit(cell) for column, cell in zip(_COLUMNS, cells, strict=True))


def _table(rows: Sequence[Sequence[str]], width: int) -> Table:
    """The rows, with names as long as the other columns leave room for."""
    numbers = [max(map(len, cells)) for cells in zip(*(row[1:] for row in rows), strict=True)]
    headers = [len(column.header) for column in _COLUMNS[1:]]
    others = sum(max(pair) + _GAP for pair in zip(numbers or headers, headers, strict=True))
    room = max(_LEAST_NAME, width - others)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for column in _COLUMNS:
        table.add_column(
            column.header,
            justify="left" if column.is_text else "right",
            no_wrap=True,
        )
    for name, *cells in rows:
        table.add_row(*map(Text, (shorten(name, room), *cells)))
    return table
