"""The tables of `benchmarks.measured` that compare latencies: with peers, and with the peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.measured_markdown import NONE, digits, markdown, number
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
from benchmarks.operator_summary import dtype_of, summary

NAMES = {
    "zero": "ansor without trials",
    "direct": "ansor without other algorithms",
    "torch": "PyTorch",
    "metaschedule": "MetaSchedule",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "inductor": "Inductor",
    "torch_bfloat16": "PyTorch bf16",
    "torch_bfloat16_channels_last": "PyTorch bf16, channels last",
    "inductor_bfloat16": "Inductor bf16",
    "onnxruntime_int8": "ONNX Runtime int8",
    "openvino_bfloat16": "OpenVINO bf16",
    "openvino_default": "OpenVINO by default",
    "openvino_int8": "OpenVINO int8",
}
_NETWORK_PEERS = ("onnxruntime", "openvino", "inductor")
_OPERATOR_PEERS = ("torch", "metaschedule", "direct")
# Relative errors of results that no rounding explains; a step of bfloat16 is 2^-8.
_WRONG = {"float32": 1e-3, "bfloat16": 1e-2, "int8": 0.0}


def networks(runs: Sequence[Entry]) -> str:
    """A table per processor, a line per network and run."""
    header = (
        "network",
        "budget, min",
        "ansor, ms",
        *(f"{NAMES[peer]}, ms" for peer in _NETWORK_PEERS),
        "fastest peer / ansor",
        "fastest peer",
        "tuning, min",
        "programs",
        "error",
        "commit",
    )
    blocks = []
    for same in by_processor(runs).values():
        cells = [line for run in same for line in _network_lines(run)]
        blocks += [machine(same), markdown(header, cells, (0, 7, 11)), *_default_notes(same)]
    return "\n\n".join(blocks)


def _default_notes(runs: Sequence[Entry]) -> list[str]:
    """What peers reach in the precision that they choose by default, if that is not float32."""
    found = [
        f"{run.get('name', row['model'])} {digits(row['latency_ms'])} ms in {row['precision']}"
        for run in runs
        for row in run["results"]
        if row["system"] == "openvino_default" and row["precision"] != "float32"
    ]
    return [f"OpenVINO's own default precision here is lower: {', '.join(found)}."] * bool(found)


def _network_lines(run: Entry) -> list[tuple[str, ...]]:
    """One line per network of a run."""
    return [
        _network_line(run, model, {row["system"]: row for row in rows})
        for model, rows in group(run["results"], lambda row: row["model"]).items()
    ]


def _network_line(run: Entry, model: str, systems: Mapping[str, Entry]) -> tuple[str, ...]:
    ours = systems["ansor"]
    ratios = {
        peer: row.get("to_own") or row["latency_ms"] / ours["latency_ms"]
        for peer in _NETWORK_PEERS
        if (row := systems.get(peer)) is not None
    }
    fastest = min(ratios, key=ratios.__getitem__, default=None)
    tuning_s = ours.get("tuning_s")
    return (
        run.get("name", model),
        number(run["environment"]["budget"]["minutes"], "g"),
        digits(ours["latency_ms"]),
        *(digits(systems[p]["latency_ms"] if p in systems else None) for p in _NETWORK_PEERS),
        NONE if fastest is None else f"**{ratios[fastest]:.2f}**",
        NONE if fastest is None else NAMES[fastest],
        number(None if tuning_s is None else tuning_s / 60, ".1f"),
        number(ours.get("trials"), "d"),
        number(ours.get("max_rel_err"), ".1e"),
        commit(run),
    )


def operators(runs: Sequence[Entry]) -> str:
    """A summary of all processors, then a table per processor with a line per operator."""
    blocks = [operator_summary(runs)]
    for same in by_processor(runs).values():
        blocks += [machine(same), operator_table(rows_of(same))]
    return "\n\n".join(blocks)


def operator_summary(runs: Sequence[Entry], dtype: str = "float32") -> str:
    """A line per processor and peer, of the operators of a dtype."""
    header = (
        "processor",
        "peer",
        "operators",
        "peer / ansor, geometric mean",
        "least",
        "operator with the least",
        "best latency of the peer reached",
        "in share of its tuning time",
    )
    cells = [
        (
            name,
            NAMES[entry["peer"]],
            str(entry["ops"]),
            f"**{entry['geomean']:.2f}**",
            f"{entry['least']:.2f}",
            entry["least_op"],
            *_reached(entry),
        )
        for name, same in by_processor(runs).items()
        for entry in summary(rows_of(same))
        if entry["dtype"] == dtype
    ]
    return markdown(header, cells, (0, 1, 5))


def _reached(entry: Mapping[str, Any]) -> tuple[str, str]:
    """How often, and after which share of its tuning time, the latency of a peer is reached."""
    if entry["peer"] != "metaschedule" or "reached" not in entry:
        return NONE, NONE
    return f"{entry['reached']} of {entry['ops']}", f"{entry['time_share']:.1%}"


def operator_table(rows: Sequence[Entry]) -> str:
    """A line per operator, two columns per peer that was measured."""
    ops = {op: _systems(same) for op, same in group(rows, lambda row: row["op"]).items()}
    peers = [peer for peer in _OPERATOR_PEERS if any(peer in systems for systems in ops.values())]
    header = (
        "operator",
        "ansor, µs",
        "GFLOP/s",
        "of peak",
        "algorithm",
        "tuning, s",
        *(text for p in peers for text in (f"{NAMES[p]}, µs", f"{NAMES[p]} / ansor")),
        "without trials / ansor",
        "without trials, s",
        "error",
    )
    cells = [_operator_line(op, ops[op], peers) for op in sorted(ops)]
    return markdown(header, cells, (0, 4))


def _systems(rows: Sequence[Entry]) -> dict[str, Entry]:
    """The rows of one operator by system; "torch" is the better layout of PyTorch."""
    systems = {row["system"]: row for row in rows}
    layouts = [row for name, row in systems.items() if name.startswith("torch")]
    known = [row for row in layouts if row["to_own"] is not None]
    if known:
        systems["torch"] = min(known, key=lambda row: float(row["to_own"]))
    return systems


def _operator_line(op: str, systems: Mapping[str, Entry], peers: Sequence[str]) -> tuple[str, ...]:
    ours = systems["ansor"]
    zero: Mapping[str, float] = systems.get("zero", {})
    compared = [cell for peer in peers for cell in _peer_cells(systems.get(peer))]
    return (
        op,
        digits(ours["latency_us"]),
        number(ours["gflops"], ".0f"),
        number(ours["of_peak"], ".0%"),
        ours.get("variant", NONE),
        number(ours["tuning_s"], ".1f"),
        *compared,
        number(zero.get("to_own"), ".2f"),
        number(zero.get("tuning_s"), ".1f"),
        number(ours["max_rel_err"], ".1e"),
    )


def _peer_cells(row: Entry | None) -> tuple[str, str]:
    """Latency and ratio of a peer; a wrong result is marked."""
    if row is None or row["latency_us"] is None:
        return NONE, NONE
    wrong = "" if row["max_rel_err"] <= _WRONG[dtype_of(row)] else " (wrong)"
    return f"{digits(row['latency_us'])}{wrong}", number(row["to_own"], ".2f")


def peak(runs: Sequence[Entry]) -> str:
    """A line per run and operator: shares of the peak, and when the rounds of the search end."""
    header = (
        "processor",
        "operator",
        "ansor, µs",
        "of peak",
        "without other algorithms, of peak",
        "without trials, of peak",
        "ends of the rounds, s",
        "seed",
        "commit",
    )
    cells = [
        _peak_line(run, op, {row["system"]: row for row in rows})
        for same in by_processor(runs).values()
        for run in same
        for op, rows in group(run["results"], lambda row: row["op"]).items()
    ]
    return f"{machines(runs)}\n\n{markdown(header, cells, (0, 1, 6, 8))}"


def _peak_line(run: Entry, op: str, systems: Mapping[str, Entry]) -> tuple[str, ...]:
    ours = systems["ansor"]
    return (
        processor(run),
        op,
        digits(ours["latency_us"]),
        _share(ours),
        _share(systems.get("direct")),
        _share(systems.get("zero")),
        ", ".join(f"{seconds:.1f}" for seconds, _ in ours["best_so_far"]),
        str(run["environment"]["seed"]),
        commit(run),
    )


def _share(row: Entry | None) -> str:
    """The share of the peak that a system reaches."""
    return NONE if row is None else number(row["of_peak"], ".0%")
