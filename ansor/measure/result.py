"""Results of devices."""

from __future__ import annotations

import enum
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace


class ErrorKind(enum.Enum):
    """Why a candidate has no latency."""

    LOWER = "lower"  # its steps could not be replayed on the schedule
    BUILD = "build"  # the compiler refused it
    RUN = "run"  # it raised, or its time is impossible
    TIMEOUT = "timeout"  # building or running took too long
    CRASH = "crash"  # the worker process died
    WRONG = "wrong"  # its result differs from the reference
    DEVICE = "device"  # the remote servers that ran it died or did not answer


@dataclass(frozen=True)
class Timing:
    """Times of a program that ran.

    Attributes:
        latencies_s: seconds of one run, one entry per repeat.
        disturbed: whether the machine was slow or busy during all repeats.
        reference_s: seconds of the reference beside it; None without a reference.
    """

    latencies_s: tuple[float, ...]
    disturbed: bool = False
    reference_s: float | None = None

    @property
    def latency_s(self) -> float:
        """Median seconds of one run."""
        return statistics.median(self.latencies_s)


@dataclass(frozen=True)
class Measurement:
    """The outcome of building and timing one program.

    Attributes:
        latencies_s: seconds of one run, one entry per repeat; empty when it failed.
        error: None when it succeeded.
        message: the first lines of the error's text.
        build_s: seconds spent on lowering and compiling.
        run_s: seconds spent on timing, all runs together.
        disturbed: whether the machine was slow or busy meanwhile, so that the program may be
            faster than its latencies.
        speed: of the machine meanwhile, as a share of its best in the run; None if unknown.
    """

    latencies_s: tuple[float, ...] = ()
    error: ErrorKind | None = None
    message: str = ""
    build_s: float = 0.0
    run_s: float = 0.0
    disturbed: bool = False
    speed: float | None = None

    @property
    def latency_s(self) -> float | None:
        """Median seconds of one run; None when it failed."""
        return statistics.median(self.latencies_s) if self.latencies_s else None


@dataclass(frozen=True)
class InTurns:
    """Times of a program in turns with others.

    Attributes:
        latency_s: seconds of one run.
        spread: distance between the quartiles of its turns, as a share of the latency; None if the
            device has one time only.
    """

    latency_s: float
    spread: float | None = None


@dataclass(frozen=True)
class Verification:
    """The comparison of a program's result with the reference's.

    Attributes:
        difference: largest absolute difference over the reference's largest absolute value; None
            when either could not be run.
        error: WRONG when the difference is too large; None when the program is right.
        message: the first lines of the error's text.
    """

    difference: float | None = None
    error: ErrorKind | None = None
    message: str = ""


def is_time(seconds: float | None, least_s: float = 0.0) -> bool:
    """Whether a number of seconds is positive, finite, and at least `least_s`."""
    return seconds is not None and math.isfinite(seconds) and 0 < seconds >= least_s


def successful_measurement(
    latencies_s: Sequence[float], build_s: float, run_s: float
) -> Measurement:
    """A successful measurement; a time that is zero, negative, infinite or NaN makes it failed."""
    return checked(Measurement(tuple(latencies_s), build_s=build_s, run_s=run_s))


def checked(measurement: Measurement, least_s: float = 0.0) -> Measurement:
    """The measurement, or a failure (RUN) if one of its times is invalid or below `least_s`.

    Args:
        least_s: seconds that no run can fall below, see `ansor.measure.physical_limit`.
    """
    times = measurement.latencies_s
    if measurement.error is not None or (times and all(is_time(t, least_s) for t in times)):
        return measurement
    text = f"not a time: {list(times)}"
    if times and all(map(is_time, times)):
        text = f"{min(times):.3g} s: the machine needs at least {least_s:.3g} s"
    return replace(measurement, latencies_s=(), error=ErrorKind.RUN, message=text)
