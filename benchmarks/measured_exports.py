"""The tables of `benchmarks.measured` about networks that were exported to plain TVM."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measured_markdown import markdown, number
from benchmarks.measured_results import Entry, machine


def exports(runs: Sequence[Entry]) -> str:
    """For each run a line per system."""
    return "\n\n".join(f"{machine([run])}\n\n{_table(run)}" for run in runs)


def _table(run: Entry) -> str:
    model = run["environment"]["model"]
    cells = [
        (
            model,
            row["system"],
            number(row["latency_ms"], ".2f"),
            number(row["to_own"], ".3f"),
            number(row["max_rel_err"], ".1e"),
        )
        for row in run["results"]
    ]
    return markdown(("network", "system", "latency ms", "to ansor", "error"), cells, (0, 1))
