"""What comes back from a device."""

from __future__ import annotations

import enum
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


class ErrorKind(enum.Enum):
    """Why a candidate has no latency."""

    LOWER = "lower"  # its steps could not be replayed on the schedule
    BUILD = "build"  # the compiler refused it
    RUN = "run"  # it raised, or gave a time that is no time
    TIMEOUT = "timeout"  # building or running took too long
    CRASH = "crash"  # the worker process died
    WRONG = "wrong"  # its result differs from the reference


@dataclass(frozen=True)
class Measurement:
    """The outcome of building and timing one program.

    Attributes:
        latencies_s: seconds of one run, one entry per repeat; empty when it failed.
        error: None when it succeeded.
        message: the first lines of the error's text.
        build_s: seconds spent on lowering and compiling.
        run_s: seconds spent on timing, all runs together.
    """

    latencies_s: tuple[float, ...] = ()
    error: ErrorKind | None = None
    message: str = ""
    build_s: float = 0.0
    run_s: float = 0.0

    @property
    def latency_s(self) -> float | None:
        """Median seconds of one run; None when it failed."""
        return statistics.median(self.latencies_s) if self.latencies_s else None


@dataclass(frozen=True)
class Verification:
    """A program's result against the reference's.

    Attributes:
        difference: largest absolute difference over the reference's largest absolute value; None
            when either could not be run.
        error: WRONG when the difference is too large; None when the program is right.
        message: the first lines of the error's text.
    """

    difference: float | None = None
    error: ErrorKind | None = None
    message: str = ""


def successful_measurement(
    latencies_s: Sequence[float], build_s: float, run_s: float
) -> Measurement:
    """A successful measurement; a time that is zero, negative, infinite or NaN makes it failed."""
    if latencies_s and all(math.isfinite(t) and t > 0 for t in latencies_s):
        return Measurement(tuple(latencies_s), build_s=build_s, run_s=run_s)
    text = f"not a time: {list(latencies_s)}"
    return Measurement(error=ErrorKind.RUN, message=text, build_s=build_s, run_s=run_s)
