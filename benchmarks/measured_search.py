"""The tables of `benchmarks.measured` about the search: its cost model, its speed, its parts."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.measured_markdown import digits, markdown, thousands
from benchmarks.measured_results import (
    Entry,
    by_processor,
    commit,
    group,
    machine,
    machines,
    processor,
    rows_of,
)


def cost_model(runs: Sequence[Entry]) -> str:
    """A table per processor, a line per operator and one of medians."""
    header = (
        "operator",
        "draft: Spearman",
        "best of 1",
        "best of 5",
        "best of 10",
        "trees, same operator: Spearman",
        "trees, other operators: Spearman",
    )
    blocks = []
    for same in by_processor(runs).values():
        figures = {op: _ranking(op_rows) for op, op_rows in _by_op(same).items()}
        medians = [statistics.median(column) for column in zip(*figures.values(), strict=True)]
        cells = [
            (op, *(f"{value:.2f}" for value in values))
            for op, values in [*figures.items(), ("median", medians)]
        ]
        seeds = ", ".join(str(run["environment"]["seed"]) for run in same)
        blocks += [f"{machine(same)}, seed {seeds}", markdown(header, cells, (0,))]
    return "\n\n".join(blocks)


def _by_op(runs: Sequence[Entry]) -> dict[str, list[Entry]]:
    return group(rows_of(runs), lambda row: row["op"])


def _ranking(rows: Sequence[Entry]) -> list[float]:
    """The figures of one operator, in the order of the columns."""
    models = {row["model"]: row for row in rows}
    draft = models["draft"]
    tops = [draft[f"best_of_{count}"] for count in (1, 5, 10)]
    trees = [models[name]["spearman"] for name in ("gbdt, same op", "gbdt, other ops")]
    return [draft["spearman"], *tops, *trees]


def throughput(runs: Sequence[Entry]) -> str:
    """A line per part of the search, a column per processor."""
    groups = by_processor(runs)
    rates = [
        {row["part"]: row["programs_per_s"] for row in rows_of(same)} for same in groups.values()
    ]
    parts = dict.fromkeys(part for rate in rates for part in rate)
    cells = [(part, *(thousands(rate.get(part)) for rate in rates)) for part in parts]
    return f"{machines(runs)}\n\n{markdown(('part', *groups), cells, (0,))}"


def policies(runs: Sequence[Entry]) -> str:
    """A line per operator and policy."""
    header = (
        "processor",
        "operator",
        "policy",
        "trials",
        "best, µs",
        "timed again, µs",
        "timed again / full",
        "searches within 5 % of the best",
        "commit",
    )
    cells = [
        _policy_line(run, row, full)
        for same in by_processor(runs).values()
        for run in same
        for rows in _by_op([run]).values()
        for full in [row for row in rows if row["policy"] == "full"]
        for row in rows
    ]
    return f"{machines(runs)}\n\n{markdown(header, cells, (0, 1, 2, 8))}"


def _policy_line(run: Entry, row: Entry, full: Entry) -> tuple[str, ...]:
    about = run["environment"]
    return (
        processor(run),
        row["op"] if about["after"] is None else f"{row['op']} after {about['after']}",
        row["policy"],
        str(about["trials"]),
        digits(row["final_us"]),
        digits(row["retimed_us"]),
        f"{row['retimed_us'] / full['retimed_us']:.2f}",
        f"{row['reached']} of {row['searches']}",
        commit(run),
    )
