"""The outcome of one case of a suite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["passed", "refused", "wrong", "crashed"]


@dataclass(frozen=True)
class Outcome:
    """The verdict on one case.

    Attributes:
        detail: one line: what differs, or why it is refused; empty if it passed.
    """

    case: str
    verdict: Verdict
    detail: str
