"""The functions of a tuned network as a table for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ansor.report.formatting import gflops, microseconds, percent, significant
from ansor.results import TaskResult, longest_first

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


def network_html(tasks: Sequence[TaskResult]) -> str:
    """A table in HTML, the functions with the largest share of the time first."""
    ranked, whole = longest_first(tasks)
    rows = "".join(_line("td", _cells(task, whole)) for task in ranked)
    caption = f"{len(tasks)} functions, {microseconds(whole or None)} µs in one run"
    head = f"<caption>{caption}</caption><thead>{_line('th', _HEADER)}</thead>"
    return f"<table>{head}<tbody>{rows}</tbody></table>"


def _cells(task: TaskResult, whole_s: float) -> tuple[str, ...]:
    return (
        task.name,
        str(task.weight),
        microseconds(task.latency_s),
        percent(task.total_s, whole_s),
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
