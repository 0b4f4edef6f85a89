"""Batches of programs under way: one at a time on most devices, several on a cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ansor.measure.device import Device, OnResult, ignored
from ansor.measure.result import Measurement
from ansor.program.program import Program

if TYPE_CHECKING:  # a task brings TVM along
    from ansor.task import Task


@dataclass(frozen=True, eq=False)
class Batch:
    """Programs of one task that one machine measures, with the other arguments of
    `Device.measure`."""

    task: Task
    programs: Sequence[Program]
    best_s: float | None
    on_result: OnResult = ignored


@dataclass(frozen=True, eq=False)
class MeasuredBatch:
    """A batch with a measurement of each program, and the name of the machine that made them;
    None for this one."""

    batch: Batch
    results: Sequence[Measurement]
    host: str | None = None


@runtime_checkable
class BatchQueue(Protocol):
    """Measures several batches at the same time, each on one of several equal machines.

    A `Device` that is also a `BatchQueue` gets batches only in this way.
    """

    @property
    def places(self) -> int:
        """Batches that are measured at the same time, at least one; it may change at any time."""

    def submit(self, batch: Batch) -> None:
        """Starts a batch and returns at once."""

    def collect(self) -> MeasuredBatch:
        """Waits for one of the submitted batches. Each is returned once."""

    def abandon(self) -> None:
        """Forgets all submitted batches."""


class OneAtATime:
    """The `BatchQueue` of a device that measures one batch at a time."""

    places = 1

    def __init__(self, device: Device) -> None:
        self._device = device
        self._waiting: deque[Batch] = deque()

    def submit(self, batch: Batch) -> None:
        """See `BatchQueue.submit`; `collect` measures it."""
        self._waiting.append(batch)

    def collect(self) -> MeasuredBatch:
        """See `BatchQueue.collect`."""
        batch = self._waiting.popleft()
        arguments = (batch.task, batch.programs, batch.best_s, batch.on_result)
        return MeasuredBatch(batch, self._device.measure(*arguments))

    def abandon(self) -> None:
        """See `BatchQueue.abandon`."""
        self._waiting.clear()


def queue_of(device: Device) -> BatchQueue:
    """The device itself if it measures several batches at the same time."""
    return device if isinstance(device, BatchQueue) else OneAtATime(device)
