"""The per-task table of a tuned network, and the network's latency beside the sum of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ansor.report.formatting import (
    Column,
    align_columns,
    failures,
    gflops,
    microseconds,
    milliseconds,
    percent,
    significant,
)
from ansor.results import TaskResult, longest_first

_FUNCTION = Column("function", is_text=True, most=44)
_COLUMNS = (
    _FUNCTION,
    Column("calls"),
    Column("latency µs"),
    Column("share"),
    Column("MFLOP"),
    Column("GFLOP/s"),
    Column("of peak"),
    Column("× untuned"),
    Column("margin"),
    Column("spread"),
    Column("trials"),
    Column("variant", is_text=True),
    Column("sketch", is_text=True),
    Column("error"),
)


@dataclass(frozen=True)
class Summary:
    """The network as a whole; None marks what is not known.

    Attributes:
        latency_s: measured seconds of one run.
        untuned_s: the same before tuning.
        peak_flops: measured multiply-add peak of the machine, operations per second.
        search_s: seconds of the search.
        trials: programs measured by it.
        reason: why it stopped.
        errors: programs that failed, by kind.
    """

    latency_s: float | None = None
    untuned_s: float | None = None
    peak_flops: float | None = None
    search_s: float | None = None
    trials: int | None = None
    reason: str | None = None
    errors: Mapping[str, int] = field(default_factory=dict)


def network_table(tasks: Sequence[TaskResult], summary: Summary) -> str:
    """Plain text: a table of the functions, those that take the most time first, and a summary.

    The column "error" is the largest difference from the definition as it was written, computed in
    float64, relative to its largest value. "× untuned" is the speedup over the definition as it was
    written, "margin" what the runner-up takes longer, and "spread" that of the winner's turns.
    """
    ranked, total = longest_first(tasks)
    rows = [_row(task, total, summary.peak_flops) for task in ranked]
    notes = [f"  {_FUNCTION.fit(task.name)}: {task.note}" for task in ranked if task.note]
    blocks = [align_columns(_COLUMNS, rows), _network(tasks, total, summary)]
    if notes:
        blocks.append("\n".join(["notes", *notes]))
    return "\n\n".join(blocks)


def _row(task: TaskResult, total_s: float, peak_flops: float | None) -> tuple[str, ...]:
    rate = task.flops / task.latency_s if task.latency_s and task.flops else None
    return (
        task.name,
        str(task.weight),
        microseconds(task.latency_s),
        percent(task.total_s, total_s),
        significant(task.flops / 1e6) if task.flops else "-",
        gflops(task.flops, task.latency_s),
        percent(rate, peak_flops),
        "-" if task.speedup is None else significant(task.speedup),
        *(percent(share, 1.0) for share in (task.margin, task.spread)),
        str(task.trials),
        task.variant,
        task.sketch,
        "-" if task.difference is None else f"{task.difference:.1e}",
    )


def _network(tasks: Sequence[TaskResult], total_s: float, summary: Summary) -> str:
    """The lines below the table."""
    untimed = sum(task.latency_s is None for task in tasks)
    missing = f" ({untimed} not timed)" if untimed else ""
    lines = [
        f"network, measured as a whole: {milliseconds(summary.latency_s)} ms",
        f"sum of its functions{missing}: {milliseconds(total_s or None)} ms",
    ]
    if summary.untuned_s is not None and summary.latency_s:
        factor = summary.untuned_s / summary.latency_s
        lines.append(
            f"untuned: {milliseconds(summary.untuned_s)} ms, {significant(factor)} times as long"
        )
    if summary.peak_flops is not None:
        lines.append(f"peak of this machine: {summary.peak_flops / 1e9:.0f} GFLOP/s, fp32")
    if summary.search_s is not None:
        lines.append(
            f"search: {summary.trials} programs measured in {summary.search_s:.0f} s, "
            f"until: {summary.reason}"
        )
    if summary.errors:
        lines.append(f"failed programs: {failures(summary.errors)}")
    return "\n".join(lines)
