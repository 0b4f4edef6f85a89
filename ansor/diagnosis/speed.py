"""Findings about the measured speed of the cores and the memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.config import DOCTOR, DoctorConfig
from ansor.diagnosis.finding import Finding, State
from ansor.diagnosis.processor import highest_clock_hz
from ansor.targets.cpu.detect import detect, peak_flops
from ansor.targets.target import Target

_BUSY = "end other work, and see the quota, the governor and the cooling"


@dataclass(frozen=True)
class Speed:
    """Measurements of a machine, and its possible speed.

    Attributes:
        present_flops: multiply-adds in float32 of all threads at present, operations per second;
            None if they could not be measured.
        best_flops: the same at the best moment that is kept.
        limit_flops: the same at the highest clock; None if the clock is unknown.
        memory_bytes: bytes per second from memory.
    """

    present_flops: float | None
    best_flops: float
    limit_flops: float | None
    memory_bytes: float


def measure_speed(target: Target, threads: int) -> Speed:
    """Measures this machine, which takes ten to twenty seconds of all its cores."""
    present = peak_flops(target, threads, fresh=True)
    machine, clock_hz = detect(target, threads), highest_clock_hz()
    per_cycle = 2 * machine.lanes(4) * machine.fma_per_cycle * threads
    limit = None if clock_hz is None else per_cycle * clock_hz
    return Speed(present, machine.peak_flops, limit, machine.memory_bandwidth)


def speed_findings(speed: Speed, config: DoctorConfig = DOCTOR) -> Iterator[Finding]:
    """The peak of the arithmetic beside its limit and beside the best one, and the memory."""
    if speed.present_flops is None:
        remedy = "see the warning of the micro-benchmark; default figures are used"
        yield Finding("peak", "cannot be measured", State.WRONG, remedy)
        return
    yield _beside_limit(speed.present_flops, speed.limit_flops, config)
    share = speed.present_flops / speed.best_flops
    text = f"{share:.0%} of {speed.best_flops / 1e9:.0f} GFLOP/s"
    is_slow = share < config.least_present_share
    state, remedy = (State.WRONG, _BUSY) if is_slow else (State.RIGHT, "")
    yield Finding("beside its best", text, state, remedy)
    yield Finding("memory bandwidth", f"{speed.memory_bytes / 1e9:.1f} GB/s")


def _beside_limit(present: float, limit: float | None, config: DoctorConfig) -> Finding:
    text = f"{present / 1e9:.0f} GFLOP/s in float32"
    if limit is None:
        return Finding("peak", f"{text}; the clock is unknown", State.NOTE)
    text = f"{text}, {present / limit:.0%} of {limit / 1e9:.0f} at the clock that the system tells"
    is_slow = present < config.least_peak_share * limit
    return Finding("peak", text, State.WRONG, _BUSY) if is_slow else Finding("peak", text)
