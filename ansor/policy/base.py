"""`Policy`: the protocol of the search of one task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ansor.config import EvolutionConfig
from ansor.cost_model.model import CostModel
from ansor.executor import Executor, in_turns
from ansor.policy.candidate import Candidate, best_of
from ansor.program.program import Program
from ansor.program.sketch import Population, Sketch


@dataclass(eq=False, repr=False)
class Policy(ABC):
    """The search of one task.

    The tuner calls `propose`, measures the programs, and calls `learn`. A policy must implement
    `propose`, `promise_s` and `draft_best`. The other methods record the measurements, and a policy
    may extend them.

    Attributes:
        key: the task's key, under which the cost model keeps its records.
        sketches: complete sketches of the task.
        model: the cost model, shared by all tasks.
        config: sizes and rates.
        rng: source of all randomness of this task.
        executor: spreads work over the cores.
        best: the fastest measured program.
        preferred: of the first measured programs, the one with the best score before the model had
            learned of them.
        exhausted: whether the policy has no further program to propose.
        measured: the latency of each measured program by its signature, None for a failure.
        successes: the programs whose measurement succeeded, in the order of their measurement.
    """

    key: str
    sketches: Sequence[Sketch]
    model: CostModel
    config: EvolutionConfig
    rng: np.random.Generator
    executor: Executor = in_turns
    best: Candidate | None = field(default=None, init=False)
    preferred: Candidate | None = field(default=None, init=False)
    exhausted: bool = field(default=False, init=False)
    measured: dict[bytes, float | None] = field(default_factory=dict, init=False)
    successes: list[Candidate] = field(default_factory=list, init=False)

    @abstractmethod
    def propose(self, count: int) -> list[Candidate]:
        """Up to `count` programs for the next batch, none of them measured before.

        An empty batch ends the search of the task; `exhausted` then is True.
        """

    @property
    @abstractmethod
    def promise_s(self) -> float:
        """Expected seconds of the best program, before any measurement of the task.

        The scheduler compares the variants of a function by it.
        """

    @abstractmethod
    def draft_best(self) -> Candidate | None:
        """The unmeasured program with the best score, for a run without measurements."""

    def seed(self, programs: Sequence[Program]) -> int:
        """Takes in the best programs of similar tasks; returns how many the policy can use."""
        return 0

    @property
    def trials(self) -> int:
        """Number of programs measured."""
        return len(self.measured)

    def learn(self, candidates: Sequence[Candidate], latency_s: Sequence[float | None]) -> None:
        """Takes in measurements, in seconds; None marks a failure."""
        done = [c.measured(t) for c, t in zip(candidates, latency_s, strict=True)]
        self.measured |= {c.signature: c.latency_s for c in done}
        good = [c for c in done if c.latency_s is not None]
        if self.preferred is None:
            self.preferred = max(good, key=lambda c: c.score, default=None)
        self.successes += good
        self.best = best_of([*good, *([self.best] if self.best else [])])
        self._remember(good)

    def restore(self, programs: Sequence[Program], latency_s: Sequence[float | None]) -> int:
        """Takes in earlier measurements of this task; returns how many belong to its space."""
        known: list[Candidate] = []
        times: list[float | None] = []
        pairs = list(zip(programs, latency_s, strict=True))
        for sketch in self.sketches:
            found = [(sketch.row_of(p), t) for p, t in pairs if p.sketch == sketch.name]
            rows = [row for row, _ in found if row is not None]
            if rows:
                known += self.candidates(Population(sketch, np.stack(rows)))
                times += [t for row, t in found if row is not None]
        self.learn(known, times)
        return len(known)

    def _remember(self, done: Sequence[Candidate]) -> None:
        for sketch in self.sketches:
            rows = [c for c in done if c.sketch is sketch]
            if rows:
                population = Population(sketch, np.stack([c.row for c in rows]))
                self.model.add(self.key, population, [c.latency_s or 0.0 for c in rows])

    def candidates(self, population: Population) -> list[Candidate]:
        """The programs with the model's scores; the score of an illegal one is not finite."""
        if not len(population):
            return []
        estimate = self.model.estimate(population)
        scores: npt.NDArray[np.float32] = self.model.score_of(estimate)
        prefix = population.sketch.name.encode()
        return [
            Candidate(population.sketch, row, float(score), prefix + signature.tobytes())
            for row, score, signature in zip(
                population.choices, scores, estimate.signature, strict=True
            )
        ]


# Makes the policy of a task from the arguments of `Policy`.
PolicyFactory = Callable[
    [str, Sequence[Sketch], CostModel, EvolutionConfig, np.random.Generator, Executor], Policy
]
