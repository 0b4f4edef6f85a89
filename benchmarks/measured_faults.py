"""The table of `benchmarks.measured` about injected faults."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measured_markdown import markdown
from benchmarks.measured_results import Entry, machines

_HOLDS = {True: "yes", False: "**no**", None: "not run"}


def faults(runs: Sequence[Entry]) -> str:
    """A line per requirement, in the order of the scenarios."""
    cells = [
        (
            run["scenario"].replace("_", " "),
            row["name"],
            row["injected"],
            row["required"],
            row["observed"].replace("|", "/"),
            _HOLDS[row["holds"]],
            f"{row['seconds']:.0f}",
        )
        for run in runs
        for row in run["results"]
    ]
    header = ("scenario", "case", "injected", "required", "observed", "holds", "s")
    return f"{machines(runs)}\n\n{markdown(header, cells, (0, 1, 2, 3, 4))}"
