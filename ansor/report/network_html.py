"""The functions of a tuned network as a table for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ansor.report.formatting import gflops, microseconds, percent, significant
from ansor.report.network_table import TaskRow

_HEADER = (
    "function",
    "calls",
    "latency µs",
    "share",
    "GFLOP/s",
    "× untuned",
    "programs",
    "variant",
)
_TEXT = (0, 7)  # columns that are aligned to the left


def network_html(tasks: Sequence[TaskRow]) -> str:
    """A table in HTML, the functions with the largest share of the time first."""
    totals = {task.name: task.weight * (task.latency_s or 0.0) for task in tasks}
    whole = sum(totals.values())
    ranked = sorted(tasks, key=lambda task: totals[task.name], reverse=True)
    rows = "".join(_line("td", _cells(task, totals[task.name], whole)) for task in ranked)
    caption = f"{len(tasks)} functions, {microseconds(whole or None)} µs in one run"
    head = f"<caption>{caption}</caption><thead>{_line('th', _HEADER)}</thead>"
    return f"<table>{head}<tbody>{rows}</tbody></table>"


def _cells(task: TaskRow, total_s: float, whole_s: float) -> tuple[str, ...]:
    return (
        task.name,
        str(task.weight),
        microseconds(task.latency_s),
        percent(None if task.latency_s is None else total_s, whole_s),
        gflops(task.flops, task.latency_s),
        "-" if task.speedup is None else significant(task.speedup),
        str(task.trials),
        task.variant,
    )


def _line(tag: str, cells: Sequence[str]) -> str:
    """A row of the table."""
    sides = ["left" if column in _TEXT else "right" for column in range(len(cells))]
    return "<tr>{}</tr>".format(
        "".join(
            f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
    )
