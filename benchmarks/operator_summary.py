"""Summary of a comparison of operators: ratios of latencies, and the time to reach peers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]  # a row as JSON has it


def summary(rows: Sequence[Document]) -> list[dict[str, Any]]:
    """One entry per dtype and peer, over the operators that both ran.

    "torch" stands for PyTorch's better layout. Keys: "dtype", "peer", "ops", "geomean" and "least"
    of the peer's latency over ours ("to_own"), "least_op"; where the peer tuned: "reached", how
    many operators got as fast as its best while we tuned, and "time_share", the median over them of
    our seconds until then over its seconds.
    """
    by_dtype: dict[str, list[Document]] = {}
    for row in rows:
        by_dtype.setdefault(dtype_of(row), []).append(row)
    return [entry for dtype, same in by_dtype.items() for entry in _entries(dtype, same)]


def dtype_of(row: Document) -> str:
    """The precision of a row; files of earlier versions have float32 alone and do not name it."""
    return str(row.get("dtype", "float32"))


def _entries(dtype: str, rows: Sequence[Document]) -> list[dict[str, Any]]:
    """Those of one dtype."""
    by_op: dict[str, dict[str, Document]] = {}
    for row in rows:
        by_op.setdefault(row["op"], {})[row["system"]] = row
    peers = dict.fromkeys(_peer(row["system"]) for row in rows if row["system"] != "ansor")
    found = [_entry(peer, by_op) for peer in peers]
    return [{"dtype": dtype, **entry} for entry in found if entry is not None]


def _peer(system: str) -> str:
    return "torch" if system.startswith("torch") else system


def _entry(peer: str, by_op: Mapping[str, Mapping[str, Document]]) -> dict[str, Any] | None:
    ratios: dict[str, float] = {}
    shares: list[float] = []
    tuned = False
    for op, systems in by_op.items():
        ours = systems.get("ansor", {})
        best = _fastest(row for name, row in systems.items() if _peer(name) == peer)
        if best is None:
            continue
        ratios[op] = best["to_own"]
        if best.get("trials"):
            tuned = True
            seconds = reached_s(ours, best["latency_us"])
            shares += [seconds / best["tuning_s"]] if seconds is not None else []
    if not ratios:
        return None
    least = min(ratios, key=ratios.__getitem__)
    geomean = math.exp(statistics.fmean(map(math.log, ratios.values())))
    entry = {"peer": peer, "ops": len(ratios), "geomean": geomean}
    entry |= {"least": ratios[least], "least_op": least}
    if tuned:
        entry |= {"reached": len(shares), "time_share": statistics.median(shares or [math.nan])}
    return entry


def _fastest(rows: Iterable[Document]) -> Document | None:
    known = [row for row in rows if row["to_own"] is not None]
    return min(known, key=lambda row: float(row["to_own"]), default=None)


def reached_s(row: Document, latency_us: float) -> float | None:
    """Seconds from the call until the search had a program as fast as `latency_us`."""
    for seconds, best_us in row.get("best_so_far", ()):
        if best_us is not None and best_us <= latency_us:
            return float(seconds)
    return None


def lines(entries: Sequence[Document]) -> list[str]:
    """For people, one line per peer."""
    return [_line(entry) for entry in entries]


def _line(entry: Document) -> str:
    text = (
        f"{entry['dtype']}, {entry['peer']}: {entry['geomean']:.2f} x our latency (geometric mean "
        f"of {entry['ops']}), least {entry['least']:.2f} ({entry['least_op']})"
    )
    if "time_share" in entry:
        text += (
            f"; as fast as its best in {entry['time_share']:.3f} of its tuning time (median of "
            f"{entry['reached']} of {entry['ops']})"
        )
    return text
