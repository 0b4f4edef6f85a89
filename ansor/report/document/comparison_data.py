"""`ComparisonData`: a comparison of a tuned network with its peers, as a report shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

COMPARISON_FILE = "comparison.json"


@dataclass(frozen=True)
class SystemTimes:
    """Latencies and error of one system.

    Attributes:
        system: its name.
        latency_s: median seconds of one run.
        rounds_s: the median of each round.
        ratio: latency over that of the tuned network, the median of the ratios within a turn; None
            if the tuned network is absent.
        difference: largest difference from the reference's output over its largest value; None if
            it is not finite.
        precision: that it computed in.
    """

    system: str
    latency_s: float
    rounds_s: tuple[float, ...]
    ratio: float | None
    difference: float | None
    precision: str


@dataclass(frozen=True)
class ComparisonData:
    """A comparison.

    Attributes:
        tuned: name of the tuned network among the systems.
        untuned: name of the untuned network.
        reference: the system whose output the others are compared with.
        threads: that every system used.
        systems: those that ran, the fastest first.
        missing: the reason for each system that did not run.
    """

    tuned: str
    untuned: str
    reference: str
    threads: int
    systems: tuple[SystemTimes, ...]
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def own(self) -> SystemTimes | None:
        """The tuned network; None if it is absent."""
        return next((each for each in self.systems if each.system == self.tuned), None)

    @property
    def fastest_peer(self) -> SystemTimes | None:
        """The fastest peer in the precision of the tuned network; None without one."""
        precision = self.own.precision if self.own else None
        peers = (each for each in self.systems if each.system not in (self.tuned, self.untuned))
        return next((each for each in peers if each.precision == precision), None)
