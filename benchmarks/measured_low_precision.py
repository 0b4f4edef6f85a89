"""The tables of `benchmarks.measured` for bfloat16 and int8."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from benchmarks.measured_comparisons import NAMES, operator_summary, operator_table
from benchmarks.measured_markdown import NONE, digits, markdown, number
from benchmarks.measured_results import Entry, by_processor, commit, group, machine, rows_of
from benchmarks.operator_summary import dtype_of

_FLOAT32 = "float32"


def low_operators(runs: Sequence[Entry]) -> str:
    """For each dtype a summary, then a table per processor with a line per operator."""
    blocks: list[str] = []
    for dtype in group(rows_of(runs), dtype_of):
        blocks += [f"### Operators in {dtype}", operator_summary(runs, dtype)]
        for same in by_processor(runs).values():
            rows = [row for row in rows_of(same) if dtype_of(row) == dtype]
            if rows:
                blocks += [f"{machine(same)}{_instruction(rows)}", operator_table(rows)]
    return "\n\n".join(blocks)


def _instruction(rows: Sequence[Entry]) -> str:
    """The instruction whose peak the rates are compared with, and the median of that peak."""
    peaks = [row["peak_gflops"] for row in rows if row.get("peak_gflops") is not None]
    names = dict.fromkeys(name for row in rows if (name := row.get("instruction")))
    return f", peak of `{', '.join(names)}` {statistics.median(peaks):.0f} GOP/s" if peaks else ""


def low_networks(runs: Sequence[Entry]) -> str:
    """A table per precision and processor, a line per network and run."""
    blocks: list[str] = []
    for precision, alike in group(runs, precision_of).items():
        blocks.append(f"### Networks, precision {precision}")
        for same in by_processor(alike).values():
            blocks += [machine(same), _table(same)]
    return "\n\n".join(blocks)


def precision_of(run: Entry) -> str:
    """The precision that our network was tuned in."""
    return str(run["environment"]["budget"].get("precision", _FLOAT32))


def _table(runs: Sequence[Entry]) -> str:
    """The networks of one processor in one precision; a column per peer that was measured."""
    systems = dict.fromkeys(row["system"] for row in rows_of(runs))
    peers = [name for name in NAMES if name in systems]
    header = (
        "network",
        "budget, min",
        "ansor, ms",
        *(f"{NAMES[peer]}, ms" for peer in peers),
        "fastest peer / ansor",
        "fastest peer",
        "tuning, min",
        "programs",
        "squared error",
        "of that peer",
        "cosine",
        "commit",
    )
    cells = [
        _line(run, model, {row["system"]: row for row in rows}, peers)
        for run in runs
        for model, rows in group(run["results"], lambda row: row["model"]).items()
    ]
    return markdown(header, cells, (0, 4 + len(peers), len(header) - 1))


def _line(
    run: Entry, model: str, systems: Mapping[str, Entry], peers: Sequence[str]
) -> tuple[str, ...]:
    ours = systems["ansor"]
    rivals = [peer for peer in peers if peer in systems and _competes(run, systems[peer])]
    fastest = min(rivals, key=lambda peer: float(systems[peer]["to_own"]), default=None)
    peer = None if fastest is None else systems[fastest]
    return (
        run.get("name", model),
        number(run["environment"]["budget"]["minutes"], "g"),
        digits(ours["latency_ms"]),
        *(digits(systems[p]["latency_ms"] if p in systems else None) for p in peers),
        NONE if peer is None else f"**{peer['to_own']:.2f}**",
        NONE if fastest is None else NAMES[fastest],
        number(ours["tuning_s"] / 60, ".1f"),
        number(ours["trials"], "d"),
        number(ours["squared_error"], ".1e"),
        number(None if peer is None else peer["squared_error"], ".1e"),
        number(ours["cosine"], ".6f"),
        commit(run),
    )


def precision_auto(runs: Sequence[Entry]) -> str:
    """A table per processor, a line per network and precision."""
    header = ("network", "precision", "latency, ms", "auto / this", "budget, min", "commit")
    blocks: list[str] = []
    for same in by_processor(runs).values():
        cells = [
            (
                row["model"],
                row["precision"],
                digits(row["latency_ms"]),
                number(row["ratio"], ".3f"),
                number(run["environment"]["minutes"], "g"),
                commit(run),
            )
            for run in same
            for row in run["results"]
        ]
        blocks += [machine(same), markdown(header, cells, (0, 1, 5))]
    return "\n\n".join(blocks)


def _competes(run: Entry, row: Entry) -> bool:
    """Whether a peer computes in less than float32, or our network may choose float32 too."""
    return row["precision"] != _FLOAT32 or precision_of(run) == "auto"
