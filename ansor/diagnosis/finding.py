"""`Finding` and `DoctorReport`: the outcome of a diagnosis."""

from __future__ import annotations

import importlib.metadata
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

_MARK_WIDTH = 7  # characters of the longest state and a gap


class State(str, Enum):
    """The verdict of a finding.

    Attributes:
        RIGHT: as it should be.
        NOTE: worth knowing; results are right and fast.
        WRONG: it makes results wrong or slow, or runs impossible.
    """

    RIGHT = "right"
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """One property of the machine or the installation.

    Attributes:
        name: of the property.
        value: the read or measured figures, with units.
        state: how it is.
        remedy: what to do; never empty where `state` is `WRONG`.
    """

    name: str
    value: str
    state: State = State.RIGHT
    remedy: str = ""

    def __post_init__(self) -> None:
        if self.state is State.WRONG and not self.remedy:
            raise ValueError(f"{self.name}: a wrong property needs a remedy")


@dataclass(frozen=True)
class DoctorReport:
    """All findings, in the order of their subjects."""

    findings: tuple[Finding, ...]

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """A problem that makes results wrong or slow."""
        return tuple(each for each in self.findings if each.state is State.WRONG)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "version": importlib.metadata.version("ansor"),
            "right": self.is_right,
            "findings": [asdict(each) | {"state": each.state.value} for each in self.findings],
        }

    def __str__(self) -> str:
        """A line for each finding, its remedy below it, and a summary."""
        width = max((len(each.name) for each in self.findings), default=0) + 2
        lines = [line for each in self.findings for line in _lines(each, width)]
        return "\n".join([*lines, "", _summary(self)])


def _lines(finding: Finding, width: int) -> list[str]:
    mark = finding.state.value.upper() if finding.state is State.WRONG else finding.state.value
    first = f"{mark:{_MARK_WIDTH}s}{finding.name:{width}s}{finding.value}"
    return [first, *([f"{'':{_MARK_WIDTH}s}-> {finding.remedy}"] if finding.remedy else [])]


def _summary(report: DoctorReport) -> str:
    names = ", ".join(each.name for each in report.wrong)
    return f"wrong: {names}" if names else "all right"
