"""Precisions of a network's functions, with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PrecisionRow:
    """A function of the network in float32.

    Attributes:
        name: of the function.
        calls: per run of the network.
        short: those of the calls that multiply short floats.
        reason: for its precision; "" for a function without products, which has no choice.
    """

    name: str
    calls: int
    short: int
    reason: str


def precision_text(rows: Sequence[PrecisionRow]) -> str:
    """One line for the calls that multiply short floats, then each other function with products."""
    products = [row for row in rows if row.reason]
    calls, short = (sum(r.calls for r in products), sum(r.short for r in products))
    lines = [f"precision: {short} of {calls} calls with products multiply short floats"]
    lines += [
        f"  {row.name}, {row.calls - row.short} of {row.calls} calls in float32: {row.reason}"
        for row in products
        if row.short < row.calls
    ]
    return "\n".join(lines)
