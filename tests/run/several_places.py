"""A device that measures several batches at the same time, in simulated seconds."""

from __future__ import annotations

from collections.abc import Sequence

from fake_world import latency_of

from ansor.measure.batches import Batch, MeasuredBatch
from ansor.measure.fake import FakeDevice


class SeveralPlaces(FakeDevice):
    """Machines of different speeds, each with a batch of its own; the earliest end comes first.

    Args:
        speeds: programs per simulated second of each machine.

    Attributes:
        now_s: simulated seconds.
        most: largest number of batches that were under way at the same time.
        overlaps: batches that were submitted while their task had another under way.
        abandoned: batches that nobody waited for.
    """

    def __init__(self, speeds: Sequence[float] = (1.0, 1.3, 0.7, 2.1)) -> None:
        super().__init__(latency_of)
        self.speeds = speeds
        self.now_s, self.most, self.overlaps, self.abandoned = 0.0, 0, 0, 0
        self.under_way: dict[int, tuple[float, Batch]] = {}  # by machine

    @property
    def places(self) -> int:
        return len(self.speeds)

    def submit(self, batch: Batch) -> None:
        keys = [other.task.key for _, other in self.under_way.values()]
        self.overlaps += batch.task.key in keys
        machine = next(i for i in range(self.places) if i not in self.under_way)
        end_s = self.now_s + len(batch.programs) / self.speeds[machine]
        self.under_way[machine] = (end_s, batch)
        self.most = max(self.most, len(self.under_way))

    def collect(self) -> MeasuredBatch:
        machine = min(self.under_way, key=lambda i: (self.under_way[i][0], i))
        self.now_s, batch = self.under_way.pop(machine)
        results = super().measure(batch.task, batch.programs, batch.best_s)
        return MeasuredBatch(batch, results, f"node{machine}")

    def abandon(self) -> None:
        self.abandoned += len(self.under_way)
        self.under_way.clear()
