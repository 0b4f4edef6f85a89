"""`ActorCriticPolicy`: N-A2C, walks by a policy network (Zhang et al., arXiv 1909.10616, 4.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ansor.config.policies import ActorCriticConfig
from ansor.policy.candidate import Candidate
from ansor.policy.published.network import ActorCriticNetwork, Floats64, Mask, Transitions
from ansor.policy.published.row_policy import RowPolicy
from ansor.policy.published.states import StateTables
from ansor.program.decision import IntArray
from ansor.program.sketch import Sketch


@dataclass(frozen=True, eq=False)
class _Step:
    """A step of a walk to a program that is measured: its sketch, and a row of `Transitions`."""

    sketch: Sketch
    state: Floats64
    possible: Mask
    action: int


@dataclass(frozen=True, eq=False)
class _Walker:
    """The graph and the network of a sketch for walks."""

    states: StateTables
    network: ActorCriticNetwork


@dataclass(eq=False, repr=False)
class ActorCriticPolicy(RowPolicy):
    """N-A2C: a few steps from the best program. Each sketch has a network that chooses the steps.

    Deviation: the original has one structure of programs. Here each sketch begins with an untiled
    program, and with probability ε a walk begins at the best program of a random sketch. Rewards
    are relative to the best throughput so far, because throughputs have no common scale.
    """

    sizes: ActorCriticConfig = field(default=ActorCriticConfig(), kw_only=True)
    _walkers: dict[Sketch, _Walker] = field(default_factory=dict, init=False)
    _steps: dict[bytes, _Step] = field(default_factory=dict, init=False)  # of the plan
    _results: list[tuple[_Step, float]] = field(default_factory=list, init=False)  # and throughput

    def _plan(self) -> list[Candidate]:
        self._steps, self._results = {}, []
        if not self.trials:
            return self._untiled() or self._random(self.sizes.collected)
        new: dict[bytes, Candidate] = {}
        for _ in range(self.sizes.attempts if self.best else 0):
            new |= self._collected(new)
            if len(new) >= self.sizes.collected:
                break
        plan = list(new.values())[: self.sizes.collected]
        self._steps = {c.signature: self._steps[c.signature] for c in plan}
        return plan + self._random(self.sizes.collected - len(plan), new)

    def _collected(self, known: dict[bytes, Candidate]) -> dict[bytes, Candidate]:
        """The new programs of a few walks."""
        start = self._start()
        rows, steps = self._walk(start, math.ceil(self.sizes.collected / self.sizes.steps))
        considered = self._considered(start.sketch, rows, known)
        pairs = [(c, step) for c, step in zip(considered, steps, strict=True) if c]
        self._steps |= {c.signature: step for c, step in pairs}
        return {c.signature: c for c, _ in pairs}

    def _start(self) -> Candidate:
        """The best program, or the best one of a random sketch."""
        assert self.best is not None
        sketch = self.sketches[int(self.rng.integers(len(self.sketches)))]
        measured = [c for c in self.successes if c.sketch is sketch]
        if not measured or self.rng.random() >= self.sizes.random_rate:
            return self.best
        return min(measured, key=lambda c: c.latency_s or np.inf)

    def _walk(self, start: Candidate, walks: int) -> tuple[IntArray, list[_Step]]:
        """The programs `[P, D]` of walks in the order of the walks, and the step to each."""
        sketch, graph, walker = start.sketch, self._graph(start.sketch), self._walker(start.sketch)
        rows = np.repeat(start.row[None], walks, axis=0)
        reached: list[list[tuple[IntArray, _Step]]] = [[] for _ in range(walks)]
        for _ in range(self.sizes.steps):
            possible = graph.reached(rows) != rows[:, graph.column]
            if not possible.any(axis=1).all():
                break
            states = walker.states.of(rows)
            actions = self._actions(walker.network.probabilities(states, possible), possible)
            rows = graph.after(rows, actions)
            for walk in range(walks):
                step = _Step(sketch, states[walk], possible[walk], int(actions[walk]))
                reached[walk].append((rows[walk], step))
        flat = [each for walk in reached for each in walk]
        visited = np.reshape([row for row, _ in flat], (len(flat), rows.shape[1]))
        return visited.astype(np.int32), [step for _, step in flat]

    def _actions(self, probabilities: Floats64, possible: Mask) -> npt.NDArray[np.int64]:
        """`[B]`: actions by the network, or with probability ε uniformly."""
        uniform = possible / possible.sum(axis=1, keepdims=True)
        is_random = self.rng.random(len(possible)) < self.sizes.random_rate
        chance = np.where(is_random[:, None], uniform, probabilities)
        drawn = [self.rng.choice(len(row), p=row / row.sum()) for row in chance]
        return np.asarray(drawn, dtype=np.int64)

    def _observe(self, done: Sequence[Candidate]) -> None:
        for candidate in done:
            step = self._steps.pop(candidate.signature, None)
            if step is not None:
                throughput = 0.0 if candidate.latency_s is None else 1 / candidate.latency_s
                self._results.append((step, throughput))
        if not self._steps:
            self._train()

    def _train(self) -> None:
        """One step of each network whose programs were in the plan."""
        best = 0.0 if self.best is None else 1 / (self.best.latency_s or np.inf)
        for sketch in dict.fromkeys(step.sketch for step, _ in self._results):
            pairs = [(step, reward) for step, reward in self._results if step.sketch is sketch]
            steps, rewards = zip(*pairs, strict=True)
            done = Transitions(
                np.stack([step.state for step in steps]),
                np.stack([step.possible for step in steps]),
                np.asarray([step.action for step in steps]),
                np.asarray(rewards) / (best or 1.0),
            )
            self._walker(sketch).network.train(done)
        self._results = []

    def _walker(self, sketch: Sketch) -> _Walker:
        if sketch not in self._walkers:
            states, actions = StateTables(sketch), len(self._graph(sketch).column)
            network = ActorCriticNetwork(states.width, actions, self.sizes, self.rng)
            self._walkers[sketch] = _Walker(states, network)
        return self._walkers[sketch]
