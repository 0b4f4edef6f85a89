"""Random programs of an operator with their latencies: what cost models are judged on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.annotate.sample import sample
from ansor.cost_model.scorer import CostModel
from ansor.measure.device import Device
from ansor.program.sketch import Population, Sketch, concatenate
from ansor.task import Task

_DRAWN = 64  # programs drawn at a time
_TRIES = 64  # draws per wanted batch until a space counts as used up


@dataclass(frozen=True, eq=False)
class Programs:
    """Programs of one operator that ran, a population per sketch.

    Attributes:
        key: the task's.
        populations: the programs.
        latency_s: `[P]` of all of them, in that order.
        failed: how many others were measured in vain.
    """

    key: str
    populations: tuple[Population, ...]
    latency_s: npt.NDArray[np.float64]
    failed: int = 0

    def __len__(self) -> int:
        return len(self.latency_s)

    def take(self, mask: npt.NDArray[np.bool_]) -> Programs:
        """Those where `mask [P]` is true."""
        parts = [p.take(np.flatnonzero(mask[rows])) for p, rows in self._rows()]
        return Programs(self.key, tuple(p for p in parts if len(p)), self.latency_s[mask])

    def scores(self, model: CostModel) -> npt.NDArray[np.float32]:
        """`[P]`: what a model says of them."""
        return np.concatenate([model.score(population) for population in self.populations])

    def teach(self, model: CostModel) -> None:
        """Lets a model learn from them."""
        for population, rows in self._rows():
            model.add(self.key, population, self.latency_s[rows].tolist())

    def _rows(self) -> Iterator[tuple[Population, slice]]:
        """Each population and where it lies in `latency_s`."""
        start = 0
        for population in self.populations:
            yield population, slice(start, start + len(population))
            start += len(population)


def draw(
    sketches: Sequence[Sketch], model: CostModel, count: int, rng: np.random.Generator
) -> list[Population]:
    """Up to `count` legal, distinct programs, each one of a random sketch."""
    seen: set[bytes] = set()
    found: dict[str, list[Population]] = {}
    for _ in range(_TRIES * count // _DRAWN + 1):
        for index in rng.integers(0, len(sketches), _DRAWN):
            if len(seen) == count:
                return [concatenate(parts) for parts in found.values()]
            one = sample(sketches[index], 1, rng)
            estimate = model.estimate(one, with_features=False)
            signature = one.sketch.name.encode() + estimate.signature.tobytes()
            if estimate.legal[0] and signature not in seen:
                seen.add(signature)
                found.setdefault(one.sketch.name, []).append(one)
    return [concatenate(parts) for parts in found.values()]


def measure(task: Task, populations: Sequence[Population], device: Device, batch: int) -> Programs:
    """Times programs, each to the end whatever the others take."""
    latencies: list[float] = []
    ran: list[Population] = []
    failed = 0
    for population in populations:
        programs = [population.program(row) for row in range(len(population))]
        times: list[float | None] = []
        for start in range(0, len(programs), batch):
            done = device.measure(task, programs[start : start + batch], None)
            times += [measurement.latency_s for measurement in done]
        good = [row for row, time_s in enumerate(times) if time_s is not None]
        failed += len(times) - len(good)
        latencies += [time_s for time_s in times if time_s is not None]
        if good:
            ran.append(population.take(good))
    return Programs(task.key, tuple(ran), np.asarray(latencies), failed)
