"""A comparison as a table for people."""

from __future__ import annotations

from ansor.compare.rounds import Comparison, SystemResult
from ansor.report.text import align, milliseconds

_HEADER = ("system", "latency ms", "rounds ms", "vs ansor", "error")


def render(comparison: Comparison) -> str:
    """One line per system, the fastest first, and what was left out and why."""
    ranked = sorted(comparison.results, key=lambda result: result.latency_s)
    own = next((r.latency_s for r in ranked if r.system == "ansor"), None)
    lines = [align(_HEADER, [_row(result, own) for result in ranked]), ""]
    lines.append(f"error: largest difference from {comparison.reference}, over its largest value")
    lines += [f"left out: {name}, {reason}" for name, reason in comparison.missing.items()]
    return "\n".join(lines)


def _row(result: SystemResult, own_s: float | None) -> tuple[str, ...]:
    low, high = min(result.samples_s), max(result.samples_s)
    return (
        result.system,
        milliseconds(result.latency_s),
        f"{milliseconds(low)} .. {milliseconds(high)}",
        "-" if own_s is None else f"{result.latency_s / own_s:.2f} x",
        f"{result.difference:.1e}",
    )
