"""The tables of `benchmarks.measured` about templates, clusters, exports and `torch.compile`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.measured_markdown import NONE, digits, markdown, number
from benchmarks.measured_results import Entry, machine


def schedules_by_hand(runs: Sequence[Entry]) -> str:
    """For each run a line per operator and system."""
    header = ("operator", "system", "µs", "to sketches", "programs", "error")
    return _tables(runs, header, _schedule)


def clusters(runs: Sequence[Entry]) -> str:
    """For each run a line per cluster."""
    header = ("part", "nodes", "functions", "programs/s", "busy", "limit")
    return _tables(runs, header, _cluster)


def deployments(runs: Sequence[Entry]) -> str:
    """For each run a line per network."""
    header = ("network", "Python ms", "C++ ms", "C++ to Python", "results")
    return _tables(runs, header, _deployment)


def compiled_networks(runs: Sequence[Entry]) -> str:
    """For each run a line per network and system."""
    header = ("network", "system", "ms", "to auto_schedule", "compile s", "error")
    return _tables(runs, header, _compiled)


def _tables(
    runs: Sequence[Entry], header: Sequence[str], cells: Callable[[Entry], tuple[str, ...]]
) -> str:
    """A table for each run, under a line about its machine."""
    return "\n\n".join(
        f"{machine([run])}\n\n{markdown(header, [cells(row) for row in run['results']], (0, 1))}"
        for run in runs
    )


def _schedule(row: Entry) -> tuple[str, ...]:
    return (
        row["op"],
        row["system"],
        digits(row["latency_us"]),
        number(row["to_sketches"], ".2f"),
        str(row["trials"]),
        number(row["max_rel_err"], ".1e"),
    )


def _cluster(row: Entry) -> tuple[str, ...]:
    return (
        row["part"],
        str(row["nodes"]),
        str(row["functions"]),
        digits(row["programs_per_s"]),
        number(row["busy"], ".0%"),
        row["limit"] or NONE,
    )


def _deployment(row: Entry) -> tuple[str, ...]:
    return (
        row["model"],
        number(row["python_ms"], ".3f"),
        number(row["cpp_ms"], ".3f"),
        number(row["ratio"], ".3f"),
        "equal" if row["equal"] else "**different**",
    )


def _compiled(row: Entry) -> tuple[str, ...]:
    return (
        row["model"],
        row["system"],
        number(row["latency_ms"], ".3f"),
        number(row["to_auto_schedule"], ".3f"),
        number(row["compile_s"], ".1f"),
        number(row["max_rel_err"], ".1e"),
    )
