"""What a scenario reports."""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass, field


class Scale(enum.Enum):
    """The size of a scenario: that of a test, or that of the published figures."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True)
class Row:
    """One requirement of a scenario.

    Attributes:
        name: of the case; distinct within the scenario.
        injected: the faults, with their number.
        required: what must hold.
        observed: the figures that decide `holds`.
        holds: whether it held; None where this machine does not allow the injection.
        seconds: of the case.
    """

    name: str
    injected: str
    required: str
    observed: str
    holds: bool | None
    seconds: float


@dataclass(frozen=True)
class Case:
    """One injection, whose rows share its name and its time."""

    name: str
    injected: str
    _began_s: float = field(default_factory=time.monotonic)

    def row(self, required: str, observed: str, holds: bool | None) -> Row:
        """A row with the seconds since this object was made."""
        seconds = time.monotonic() - self._began_s
        return Row(self.name, self.injected, required, observed, holds, seconds)
