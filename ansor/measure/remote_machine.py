"""The machine of a device on another machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RemoteMachine:
    """The parameters of a search for another machine.

    Attributes:
        target: text of the target with the number of threads.
        threads: of the programs.
        parameters: of the machine, of the type of the target's backend.
    """

    target: str
    threads: int
    parameters: Any
