"""A network's run as a sequence of calls, for timing programs where they will be used."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlannedCall:
    """One call of a function.

    Attributes:
        function: its name.
        buffers: for each parameter the storage that holds it, None for a weight.
    """

    function: str
    buffers: tuple[int | None, ...]


@dataclass(frozen=True)
class CallPlan:
    """The calls in the order of execution, and the bytes of each storage. Calls share a storage if
    they do not need its contents at the same time."""

    calls: tuple[PlannedCall, ...]
    storage_bytes: tuple[int, ...]
