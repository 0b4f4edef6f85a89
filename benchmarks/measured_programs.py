"""Random programs of an operator with their latencies: what cost models are judged on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ansor.annotate.sample import sample
from ansor.cost_model.model import CostModel
from ansor.measure.device import Device
from ansor.program.program import Program
from ansor.program.sketch import Population, Sketch, concatenate
from ansor.task import Task
from benchmarks.ranking import top

_DRAWN = 64  # programs drawn at a time
_TRIES = 64  # draws per wanted batch until a space counts as used up
_FAVOURITES = 10  # of a model, that are timed again
_FASTEST = 20  # programs that are


@dataclass(frozen=True, eq=False)
class Programs:
    """Programs of one operator that ran, a population per sketch.

    Attributes:
        key: the task's.
        populations: the programs.
        latency_s: `[P]` of all of them, in that order.
        failed: number of other programs, whose measurement failed.
    """

    key: str
    populations: tuple[Population, ...]
    latency_s: npt.NDArray[np.float64]
    failed: int = 0

    def __len__(self) -> int:
        return len(self.latency_s)

    def take(self, mask: npt.NDArray[np.bool_]) -> Programs:
        """Those where `mask [P]` is true."""
        parts = [p.take(np.flatnonzero(mask[rows])) for p, rows in self.parts()]
        return replace(
            self, populations=tuple(p for p in parts if len(p)), latency_s=self.latency_s[mask]
        )

    def program(self, number: int) -> Program:
        """One of them, by its position in `latency_s`."""
        population, rows = next(found for found in self.parts() if number < found[1].stop)
        return population.program(number - rows.start)

    def scores(self, model: CostModel) -> npt.NDArray[np.float32]:
        """`[P]`: what a model says of them."""
        return np.concatenate([model.score(population) for population in self.populations])

    def teach(self, model: CostModel) -> None:
        """Lets a model learn from them."""
        for population, rows in self.parts():
            model.add(self.key, population, self.latency_s[rows].tolist())

    def parts(self) -> Iterator[tuple[Population, slice]]:
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


def measure(
    task: Task, populations: Sequence[Population], device: Device, batch: int, rounds: int
) -> Programs:
    """Times all programs in consecutive rounds; the medians count.

    Of 200 programs that are timed once, the fastest is the luckiest.
    """
    times = np.asarray([_round(task, populations, device, batch) for _ in range(rounds)])
    latency_s = np.median(times, axis=0)  # not a number where it failed in any round
    ran = np.isfinite(latency_s)
    everything = Programs(task.key, tuple(populations), latency_s, int((~ran).sum()))
    return everything.take(ran)


def settle(task: Task, found: Programs, model: CostModel, device: Device, rounds: int) -> Programs:
    """Times in turns what decides: the fastest programs and a model's favourites.

    If programs are timed one after the other, the machine may be a third slower for a minute. The
    fastest program, and its lead, are then luck. The other programs keep their latencies. The new
    latencies are scaled by the change of the machine's speed, at the median.
    """
    favourites = top(-found.scores(model), _FAVOURITES)
    chosen = np.union1d(favourites, top(found.latency_s, _FASTEST))
    times = device.compare(task, [found.program(int(number)) for number in chosen], rounds)
    again = np.asarray([math.nan if time is None else time for time in times])
    before = found.latency_s[chosen]
    latency_s = found.latency_s.copy()
    latency_s[chosen] = again * np.nanmedian(before / again)
    ran = np.isfinite(latency_s)
    failed = found.failed + int((~ran).sum())
    return replace(found, latency_s=latency_s, failed=failed).take(ran)


def _round(
    task: Task, populations: Sequence[Population], device: Device, batch: int
) -> list[float]:
    """Seconds of each program, not a number where it failed."""
    times: list[float] = []
    for population in populations:
        programs = [population.program(row) for row in range(len(population))]
        for start in range(0, len(programs), batch):
            done = device.measure(task, programs[start : start + batch], None)
            times += [math.nan if m.latency_s is None else m.latency_s for m in done]
    return times
