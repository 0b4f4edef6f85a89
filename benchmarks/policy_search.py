"""One search of one operator by one policy: how its best latency falls, by trial and by second."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import ansor
from ansor.config import FULL, TuneConfig
from ansor.frontend.variants import KINDS
from ansor.measure.device import Device
from ansor.program.codec import encode
from benchmarks.operator_case import workload_of
from benchmarks.replay import ReplayDevice, Trial


@dataclass(frozen=True, order=True)
class Job:
    """A search: operator, policy and seed."""

    op: str
    policy: str
    seed: int


@dataclass(frozen=True)
class Step:
    """A trial that was faster than all before.

    Attributes:
        trial: its number, from 1.
        seconds: from the start of the search until it was known.
        best_us: microseconds of its program.
        program: the program as text; "" where it is not kept.
    """

    trial: int
    seconds: float
    best_us: float
    program: str = ""


@dataclass(frozen=True)
class Search:
    """A finished search.

    Attributes:
        job: what was searched.
        batches: of each batch, the number of trials at its end, and the seconds until then.
        steps: the trials that were faster than all before, in order.
    """

    job: Job
    batches: tuple[tuple[int, float], ...]
    steps: tuple[Step, ...]

    @property
    def trials(self) -> int:
        """Number of measured programs."""
        return self.batches[-1][0] if self.batches else 0

    def seconds(self, trials: int) -> float:
        """Seconds until `trials` trials were known, or all of them if there were fewer."""
        until = [seconds for count, seconds in self.batches if count < trials]
        after = [seconds for count, seconds in self.batches if count >= trials]
        return after[0] if after else max(until, default=0.0)

    def at(self, trials: int) -> Step | None:
        """The best of the first trials; None if all of them failed."""
        known = [step for step in self.steps if step.trial <= trials]
        return known[-1] if known else None

    def best_us(self, trials: int) -> float:
        """Its microseconds, infinite if all failed."""
        step = self.at(trials)
        return math.inf if step is None else step.best_us

    def trials_to(self, goal_us: float) -> float:
        """Trials until a latency is reached, infinite if it never is."""
        return next((s.trial for s in self.steps if s.best_us <= goal_us), math.inf)


def searched(
    job: Job,
    device: Device,
    clock: Callable[[], float],
    trials: int,
    threads: int,
    keeps_programs: bool,
    config: TuneConfig = FULL,
) -> Search:
    """Searches an operator as it is defined, without its variants, until all trials are spent.

    Args:
        device: that measures; it stays open.
        clock: seconds, with those that measurements take.
        threads: of a program.
        keeps_programs: whether the steps have the text of their programs.
    """
    recorder = ReplayDevice(device, replay=False, clock=clock)
    began_s = clock()
    ansor.auto_schedule(
        list(workload_of(job.op).tensors),
        trials=trials,
        seed=job.seed,
        policy=job.policy,
        device=recorder,
        threads=threads,
        forbid=KINDS,
        config=patient(config, trials),
    )
    done = recorder.trials
    ends = {trial.time_s: number for number, trial in enumerate(done, 1)}
    batches = tuple((number, time_s - began_s) for time_s, number in ends.items())
    return Search(job, batches, steps_of(done, began_s, keeps_programs))


def patient(config: TuneConfig, trials: int) -> TuneConfig:
    """Settings with which a search without gains does not end early: budgets are equal."""
    return replace(config, scheduler=replace(config.scheduler, patience=trials))


def steps_of(trials: Sequence[Trial], began_s: float, keeps_programs: bool) -> tuple[Step, ...]:
    """The trials that were faster than all before."""
    steps: list[Step] = []
    least = math.inf
    for number, trial in enumerate(trials, 1):
        if trial.latency_s is not None and trial.latency_s < least:
            least = trial.latency_s
            text = encode(trial.program) if keeps_programs else ""
            steps.append(Step(number, trial.time_s - began_s, least * 1e6, text))
    return tuple(steps)
