"""The data of each measurement in a report."""

from __future__ import annotations

import math
import sys

from ansor.measure.result import Measurement
from ansor.policy.candidate import Candidate
from ansor.report.document.search_data import Trial

_LARGEST_SCORE = math.log(sys.float_info.max)


def trial_of(task: str, elapsed_s: float, candidate: Candidate, result: Measurement) -> Trial:
    """The data of one measurement in a report.

    Args:
        task: its key.
        elapsed_s: seconds since the run began.
        candidate: the program with its score before the measurement.
        result: the measurement.
    """
    error = None if result.error is None else result.error.value
    return Trial(
        task, elapsed_s, expected_seconds(candidate.score), result.latency_s, error, result.message
    )


def expected_seconds(score: float) -> float | None:
    """The seconds of a score, a log-throughput; None if it is not finite or the seconds are not."""
    is_time = math.isfinite(score) and abs(score) < _LARGEST_SCORE
    return math.exp(-score) if is_time else None
