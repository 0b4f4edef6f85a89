"""A comparison as a table for people."""

from __future__ import annotations

from ansor.compare.results import Comparison, SystemResult
from ansor.report.formatting import align, milliseconds

_HEADER = ("system", "latency ms", "rounds ms", "vs ansor", "error")


def comparison_table(comparison: Comparison) -> str:
    """One line per system, the fastest first, and what was left out and why."""
    ranked = sorted(comparison.results, key=lambda result: result.latency_s)
    lines = [align(_HEADER, [_row(result, comparison) for result in ranked]), ""]
    lines.append("vs ansor: median of the ratios within a turn")
    lines.append(f"error: largest difference from {comparison.reference}, over its largest value")
    lines += [f"left out: {name}, {reason}" for name, reason in comparison.missing.items()]
    return "\n".join(lines)


def _row(result: SystemResult, comparison: Comparison) -> tuple[str, ...]:
    low, high = min(result.rounds_s), max(result.rounds_s)
    ratio = comparison.to_own(result)
    return (
        result.system,
        milliseconds(result.latency_s),
        f"{milliseconds(low)} .. {milliseconds(high)}",
        "-" if ratio is None else f"{ratio:.2f} x",
        f"{result.difference:.1e}",
    )
