"""Progress of a search on a terminal: a live table, or plain lines where there is no terminal."""

from __future__ import annotations

from collections import Counter

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ansor.callbacks import Callback, Finish, Round, Start, TaskStatus
from ansor.closing import Closing
from ansor.report.formatting import Column, failures, gflops, microseconds, milliseconds, shorten

_FUNCTION = Column("function", is_text=True, most=40)
_NUMBERS = ("calls", "latency µs", "current GFLOP/s", "best GFLOP/s", "trials", "errors")
_COLUMNS = (_FUNCTION, *map(Column, _NUMBERS))


class Progress(Callback, Closing):
    """Shows a run while it goes on; a context manager, so that the terminal is always restored.

    Args:
        console: where to; standard error by default, so that output can be piped.
        free_lines: of a terminal, below and above the table.
    """

    def __init__(self, console: Console | None = None, free_lines: int = 8) -> None:
        self._free_lines = free_lines
        self._console = console or Console(stderr=True)
        self._tasks: dict[str, TaskStatus] = {}
        self._errors: Counter[str] = Counter()
        self._current_s: dict[str, float | None] = {}  # of each task, in its last round
        self._head = ""
        self._live: Live | None = None

    def on_start(self, start: Start) -> None:
        """Opens the table."""
        self._tasks = {task.name: task for task in start.tasks}
        self._say(f"{len(self._tasks)} tasks, budget: {_budget(start)}")
        if self._console.is_terminal:
            self._live = Live(self._view(), console=self._console, refresh_per_second=2)
            self._live.start()

    def on_round(self, done: Round) -> None:
        """Updates the table, or writes a line."""
        self._tasks[done.task.name] = done.task
        self._errors[done.task.name] += sum(done.errors.values())
        self._current_s[done.task.name] = done.current_s
        self._head = (
            f"{done.elapsed_s:.0f} s, {done.trials} programs measured, "
            f"network about {milliseconds(done.network_s)} ms{_conditions(done)}"
        )
        for kind, text in done.new_errors.items():
            self._say(f"first {kind} failure: {shorten(text, 200)}")
        if done.recalled and done.recalled == done.measured:
            return  # an interrupted run has shown it
        if self._live is None:
            self._say(_line(done, self._number(done.task), len(self._tasks)))
        else:
            self._live.update(self._view())

    def on_finish(self, finish: Finish) -> None:
        """Closes the table."""
        self.close()
        failed = f" ({failures(finish.errors)} failed)" if finish.errors else ""
        self._say(
            f"search ended after {finish.elapsed_s:.0f} s and {finish.trials} programs{failed}: "
            f"{finish.reason}"
        )

    def on_stage(self, text: str) -> None:
        """Writes a line."""
        self._say(text)

    def close(self) -> None:
        """Leaves the terminal as it was; may be called twice."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _number(self, task: TaskStatus) -> int:
        """Place of a task among all, from 1."""
        return list(self._tasks).index(task.name) + 1

    def _say(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)

    def _view(self) -> Group:
        """The table of the tasks that take the most time, as many as the terminal has room for."""
        table = Table(box=None, pad_edge=False)
        for column in _COLUMNS:
            table.add_column(column.header, justify="left" if column.is_text else "right")
        ranked = sorted(self._tasks.values(), key=_total, reverse=True)
        room = max(1, self._console.height - self._free_lines)
        for task in ranked[:room]:
            current_s = self._current_s.get(task.name)
            table.add_row(*_cells(task, current_s, self._errors[task.name]))
        hidden = len(ranked) - room
        more = f"and {hidden} more tasks" if hidden > 0 else ""
        return Group(Text(self._head), table, Text(more))


def _total(task: TaskStatus) -> float:
    """Seconds of all calls; what has no latency yet comes first."""
    return float("inf") if task.best_s is None else task.weight * task.best_s


def _cells(task: TaskStatus, current_s: float | None, errors: int) -> tuple[str, ...]:
    return (
        _FUNCTION.fit(task.name),
        str(task.weight),
        microseconds(task.best_s),
        gflops(task.flops, current_s),
        gflops(task.flops, task.best_s),
        str(task.trials),
        str(errors or ""),
    )


def _line(done: Round, number: int, count: int) -> str:
    """A round of one task: the throughputs of its last batch and of its best program."""
    task = done.task
    current, best = gflops(task.flops, done.current_s), gflops(task.flops, task.best_s)
    failed = f"; failed: {failures(done.errors)}" if done.errors else ""
    return (
        f"{done.elapsed_s:6.1f} s  [{number}/{count}] {_FUNCTION.fit(task.name)}: "
        f"current/best {current}/{best} GFLOP/s, best {microseconds(task.best_s)} µs after "
        f"{task.trials} programs; network about {milliseconds(done.network_s)} ms"
        f"{_conditions(done)}{failed}"
    )


def _conditions(done: Round) -> str:
    """The state of the machine in a round, if it was disturbed."""
    if not done.disturbed:
        return ""
    speed = "" if done.speed is None else f", machine at {done.speed:.0%} of its best speed"
    return f"; {done.disturbed} of {done.measured} disturbed{speed}"


def _budget(start: Start) -> str:
    parts = [f"{start.trials} programs"] if start.trials is not None else []
    parts += [f"{start.seconds:.0f} s"] if start.seconds is not None else []
    return " or ".join(parts) or "none, the best known programs are used"
