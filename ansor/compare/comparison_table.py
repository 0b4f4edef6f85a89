"""A comparison as a readable table."""

from __future__ import annotations

from ansor.compare.results import Comparison, SystemResult
from ansor.compare.systems import DEFAULT
from ansor.report.formatting import align, milliseconds

_HEADER = ("system", "latency ms", "rounds ms", "vs ansor", "error")
_LOW_HEADER = (*_HEADER, "squared error", "cosine", "precision")


def comparison_table(comparison: Comparison) -> str:
    """One line per system, the fastest first, and the missing systems with reasons.

    In float32, systems that choose their precision follow as notes.
    """
    is_low = comparison.precision != "float32"
    ranked = sorted(comparison.results, key=lambda result: result.latency_s)
    noted = [] if is_low else [each for each in ranked if each.system.endswith(DEFAULT)]
    rows = [_row(result, comparison, is_low) for result in ranked if result not in noted]
    lines = [align(_LOW_HEADER if is_low else _HEADER, rows), ""]
    lines += [_note(result, comparison) for result in noted]
    lines.append("vs ansor: median of the ratios within a turn")
    lines.append(f"error: largest difference from {comparison.reference}, over its largest value")
    if is_low:
        lines.append("squared error: normalised, of the same difference")
    lines += [f"left out: {name}, {reason}" for name, reason in comparison.missing.items()]
    return "\n".join(lines)


def _row(result: SystemResult, comparison: Comparison, is_low: bool) -> tuple[str, ...]:
    low, high = min(result.rounds_s), max(result.rounds_s)
    cells = (
        result.system,
        milliseconds(result.latency_s),
        f"{milliseconds(low)} .. {milliseconds(high)}",
        _ratio(result, comparison),
        f"{result.difference:.1e}",
    )
    more = (f"{result.squared_error:.1e}", f"{result.cosine:.6f}", result.precision)
    return (*cells, *more) if is_low else cells


def _note(result: SystemResult, comparison: Comparison) -> str:
    """One line about a system in the precision that it chooses."""
    return (
        f"{result.system}: {milliseconds(result.latency_s)} ms in {result.precision}, which it "
        f"chooses by default here, {_ratio(result, comparison)}"
    )


def _ratio(result: SystemResult, comparison: Comparison) -> str:
    ratio = comparison.to_own(result)
    return "-" if ratio is None else f"{ratio:.2f} x"
