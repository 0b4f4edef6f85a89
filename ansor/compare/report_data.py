"""A comparison as data for reports."""

from __future__ import annotations

import math

from ansor.compare.results import Comparison
from ansor.compare.systems import OWN
from ansor.report.document.comparison_data import ComparisonData, SystemTimes


def comparison_data(comparison: Comparison, threads: int) -> ComparisonData:
    """The systems of a comparison, the fastest first.

    Args:
        threads: that every system used.
    """
    ranked = sorted(comparison.results, key=lambda result: result.latency_s)
    systems = tuple(
        SystemTimes(
            each.system,
            each.latency_s,
            tuple(each.rounds_s),
            comparison.to_own(each),
            each.difference if math.isfinite(each.difference) else None,
            each.precision,
        )
        for each in ranked
    )
    return ComparisonData(*OWN, comparison.reference, threads, systems, comparison.missing)
