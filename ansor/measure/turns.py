"""Times of programs that are measured in turns."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ansor.measure.result import InTurns, Timing


def joined(parts: Sequence[Sequence[float]]) -> InTurns:
    """The mean of the medians of the parts, and the spread of all turns."""
    latency_s = statistics.fmean(map(statistics.median, parts))
    turns = [seconds for part in parts for seconds in part]
    if len(turns) < 2:
        return InTurns(latency_s)
    low_s, _, high_s = statistics.quantiles(turns, n=4, method="inclusive")
    return InTurns(latency_s, (high_s - low_s) / latency_s)


def counted(timings: Sequence[Timing]) -> list[float]:
    """Seconds of the rounds on a quiet machine, if these are at least half; else of all rounds."""
    quiet = [timing.latency_s for timing in timings if not timing.disturbed]
    return quiet if 2 * len(quiet) >= len(timings) else [t.latency_s for t in timings]
