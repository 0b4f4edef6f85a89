"""Figures of a tuned network: of each function, and of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ansor.task import DIRECT


@dataclass(frozen=True)
class TaskResult:
    """The outcome of one function of a network.

    Attributes:
        name: function of the network.
        weight: calls per run.
        flops: floating-point operations per call.
        latency_s: seconds per call, measured alone; None where it was not.
        trials: programs measured.
        sketch: name of the chosen sketch; "untuned" for the definition as it was written.
        difference: largest error relative to the reference's largest value; None if unchecked.
            The reference is the definition as the model gives it, whatever the variant, in float64.
        variant: "direct", or the kind of definition that was faster.
        note: what went wrong, "" if nothing did.
        runner_up_s: seconds of the next best program in the last comparison; None without one.
        untuned_s: seconds of the definition as it was written; None where it was not timed.
        spread: distance between the quartiles of the winner's turns, as a share of its latency;
            None where it is not known.
        errors: measured programs that failed, by kind.
    """

    name: str
    weight: int
    flops: int
    latency_s: float | None
    trials: int
    sketch: str
    difference: float | None
    variant: str = DIRECT
    note: str = ""
    runner_up_s: float | None = None
    untuned_s: float | None = None
    spread: float | None = None
    errors: Mapping[str, int] = field(default_factory=dict)

    @property
    def total_s(self) -> float | None:
        """Seconds of all calls in one run of the network."""
        return None if self.latency_s is None else self.weight * self.latency_s

    @property
    def speedup(self) -> float | None:
        """Speedup over the untuned program; None if one of both was not timed."""
        return self.untuned_s / self.latency_s if self.untuned_s and self.latency_s else None

    @property
    def margin(self) -> float | None:
        """Additional time of the next best program, as a share of the latency."""
        if not self.runner_up_s or not self.latency_s:
            return None
        return self.runner_up_s / self.latency_s - 1


def longest_first(results: Iterable[TaskResult]) -> tuple[list[TaskResult], float]:
    """The functions by the time of all their calls, and the sum of these times in seconds."""
    ranked = sorted(results, key=lambda result: result.total_s or 0.0, reverse=True)
    return ranked, sum(result.total_s or 0.0 for result in ranked)


@dataclass(frozen=True)
class Benchmark:
    """Latency of whole networks, medians in seconds; `untuned_s` is None where it was not asked."""

    latency_s: float
    untuned_s: float | None

    @property
    def speedup(self) -> float | None:
        """Speedup over the untuned network."""
        return None if self.untuned_s is None else self.untuned_s / self.latency_s
