"""Measures the programs that a surrogate is fitted to, and keeps them in a database.

The database is the state: a stopped run continues with its records.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ansor.config import FULL
from ansor.cost_model.model import CostModel
from ansor.database.database import Database
from ansor.database.journal import Journal
from ansor.measure.local_device import LocalDevice
from ansor.policy.registry import policy_named
from ansor.program.codec import encode
from ansor.program.program import Program
from ansor.run.search.budget import INTERRUPTED, Budget
from ansor.run.search.tuner import Tuner
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.task import Task
from benchmarks.measured_programs import draw


@dataclass(frozen=True)
class MeasuringConfig:
    """Which programs are measured."""

    chunk: int = 64  # programs of one kind before the next kind has its turn
    batch: int = 16  # programs that the device gets at a time
    random_share: float = 0.4  # of all programs; the others are chosen by searches
    policies: tuple[str, ...] = ("evolutionary", "opevo", "ga")  # of searches, in turns


MEASURING = MeasuringConfig()


class Measuring:
    """Measures random programs of all sketches and those of searches, in turns.

    A search comes first, because a program that is much slower than the best is timed once.

    The searches continue from all records of the operator, so that they measure programs near the
    best.

    Args:
        device: that measures.
        hardware: of this machine.
        database: the records so far.
        deadline_s: by `clock`, after which no batch begins.
    """

    def __init__(
        self,
        device: LocalDevice,
        hardware: Hardware,
        database: Database,
        deadline_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._device, self._hardware, self._database = device, hardware, database
        self._deadline_s, self._clock = deadline_s, clock

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self._clock() >= self._deadline_s

    def measure(self, task: Task, programs: int) -> int:
        """Measures until there are `programs` records of a task, or the time is over; returns their
        number."""
        while (count := self.count(task)) < programs and not self.is_over:
            chunk = min(MEASURING.chunk, programs - count)
            drawn = self._random_count(task)
            if drawn < MEASURING.random_share * count:
                self._measure_random(task, chunk)
            else:
                self._search(task, chunk, count)
            if self.count(task) == count:
                break  # the space is used up
        return self.count(task)

    def count(self, task: Task) -> int:
        """Records of a task."""
        return self._database.count(task.key, task.target)

    def _random_count(self, task: Task) -> int:
        """Records of random programs: those without a seed."""
        records = self._database.records(task.key, task.target)
        return sum(record.origin.seed is None for record in records)

    def _measure_random(self, task: Task, count: int) -> None:
        """Measures random programs that have no record."""
        known = {encode(r.program) for r in self._database.records(task.key, task.target)}
        programs = [p for p in self._drawn(task, count, len(known)) if encode(p) not in known]
        for start in range(0, len(programs), MEASURING.batch):
            if self.is_over:
                return
            batch = programs[start : start + MEASURING.batch]
            best = self._database.best(task.key, task.target)
            best_s = best[0].latency_s if best else None
            results = self._device.measure(task, batch, best_s)
            self._database.add_many(task, zip(batch, results, strict=True))

    def _drawn(self, task: Task, count: int, seed: int) -> list[Program]:
        """Legal random programs of all sketches."""
        sketches = CPU_SEARCH.sketches(task.dag, self._hardware, FULL.sketch)
        model = CostModel(self._hardware, CPU_SEARCH, FULL.cost_model, FULL.sketch)
        drawn = draw(sketches, model, count, np.random.default_rng(seed))
        return [population.program(row) for population in drawn for row in range(len(population))]

    def _search(self, task: Task, trials: int, seed: int) -> None:
        """Searches on; the policy is chosen by the number of the chunk."""
        policies = MEASURING.policies
        tuner = Tuner(
            [task],
            self._hardware,
            CPU_SEARCH,
            self._device,
            Journal(self._database),
            FULL,
            seed,
            policy=policy_named(policies[seed // MEASURING.chunk % len(policies)]),
            executor=self._device.share,
        )
        finish = tuner.run(Budget(trials, max(self._deadline_s - self._clock(), 0.0)))
        if finish.reason == INTERRUPTED:
            raise KeyboardInterrupt
