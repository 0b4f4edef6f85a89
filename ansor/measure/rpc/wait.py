"""The events for which a loop over processes and connections waits."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ansor.measure.local.worker_process import WorkerProcess, readable

_MOST_S = 3600.0  # of one system call


@dataclass(frozen=True)
class Wait:
    """Descriptors that become readable, and the time that ends the wait in any case.

    Attributes:
        fds: descriptors.
        deadline_s: by `time.monotonic`.
    """

    fds: tuple[int, ...] = ()
    deadline_s: float = math.inf

    def __or__(self, other: Wait) -> Wait:
        """The wait for the first of both."""
        return Wait(self.fds + other.fds, min(self.deadline_s, other.deadline_s))

    def end(self) -> None:
        """Waits."""
        left_s = self.deadline_s - time.monotonic()
        readable(self.fds, min(max(0.0, left_s), _MOST_S))


def for_workers(workers: Sequence[WorkerProcess]) -> Wait:
    """The wait for the next reply of busy workers."""
    deadline_s = min((worker.deadline for worker in workers), default=math.inf)
    return Wait(tuple(worker.fileno() for worker in workers), deadline_s)
