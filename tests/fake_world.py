"""Three small tasks, a machine that answers from a formula, and a callback that remembers."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from definitions import HARDWARE, dag, sketches, workload

from ansor.callbacks import Callback, Finish, Round, Start
from ansor.config import CostModelConfig, EvolutionConfig, TuneConfig
from ansor.cost_model.scorer import seconds
from ansor.database.database import Database
from ansor.database.journal import Journal
from ansor.features.profile import profile
from ansor.measure.fake import FakeDevice, never
from ansor.measure.result import ErrorKind
from ansor.policy.base import PolicyFactory
from ansor.policy.policy import SearchPolicy
from ansor.program.nest import build_nest
from ansor.program.program import Program
from ansor.program.sketch import Population
from ansor.run.search.budget import Budget
from ansor.run.search.tuner import Tuner
from ansor.targets.cpu.draft.draft import draft
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.task import Task

CONFIG = TuneConfig(
    evolution=EvolutionConfig(initial=128, population=48, promise=64, generations=2, batch=8),
    cost_model=CostModelConfig(rounds=16),  # enough for a few hundred records
)
TARGET = "fake"
WEIGHTS = {"matmul_relu": 2, "depthwise_conv2d": 1, "row_sum": 3}

Trace = list[tuple[str, str, str]]
Fail = Callable[[Task, Program], ErrorKind | None]


@cache
def make_task(name: str) -> Task:
    return Task(name, workload(name).func, dag(name), TARGET, WEIGHTS.get(name, 1))


def make_tasks(*names: str) -> list[Task]:
    return [make_task(name) for name in names or tuple(WEIGHTS)]


def noise(program: Program) -> float:
    """Between 0.7 and 1.5, determined by the program alone: an effect that the draft cannot
    predict."""
    text = repr((program.sketch, sorted(program.values.items())))
    return 0.7 + 0.8 * int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32


_DRAFTED: dict[tuple[str, str], float] = {}  # task and program to the draft's seconds


def drafted(task: Task, program: Program) -> float:
    """Seconds by the draft."""
    (sketch,) = (s for s in sketches(task.name) if s.name == program.sketch)
    row = sketch.row_of(program)
    assert row is not None
    nest = build_nest(Population(sketch, row[None]))
    return float(seconds(draft(profile(nest), HARDWARE))[0])


def latency_of(task: Task, program: Program) -> float:
    """The fake machine; the untuned program takes a second."""
    if not program.steps:
        return 1.0
    key = (task.name, repr((program.sketch, sorted(program.values.items()))))
    if key not in _DRAFTED:
        _DRAFTED[key] = drafted(task, program)
    return _DRAFTED[key] * noise(program)


class Recorder(Callback):
    """Keeps every event."""

    def __init__(self) -> None:
        self.starts: list[Start] = []
        self.rounds: list[Round] = []
        self.finishes: list[Finish] = []

    def on_start(self, start: Start) -> None:
        self.starts.append(start)

    def on_round(self, done: Round) -> None:
        self.rounds.append(done)

    def on_finish(self, finish: Finish) -> None:
        self.finishes.append(finish)


class World:
    """A fake device, a database in memory unless one is given, and a tuner on both.

    `options` are further arguments of the tuner.
    """

    def __init__(
        self,
        *names: str,
        seed: int = 0,
        fail: Fail = never,
        interrupt_at: int | None = None,
        database: Database | None = None,
        config: TuneConfig = CONFIG,
        clock: Callable[[], float] = time.monotonic,
        journal: Journal | None = None,
        policy: PolicyFactory = SearchPolicy,
        device: Any = None,
        **options: Any,
    ) -> None:
        self.device = device or FakeDevice(latency_of, fail, interrupt_at)
        self.database = Database() if database is None else database
        self.events = Recorder()
        tasks: Sequence[Task] = make_tasks(*names)
        self.journal = journal or Journal(self.database, clock)
        self.tuner = Tuner(
            tasks,
            HARDWARE,
            CPU_SEARCH,
            self.device,
            self.journal,
            config,
            seed,
            [self.events],
            policy=policy,
            **options,
        )

    def run(self, trials: int | None = None, seconds: float | None = None) -> Finish:
        return self.tuner.run(Budget(trials, seconds))

    @property
    def trace(self) -> Trace:
        """Every measurement as text: task, sketch, values."""
        return [(k, p.sketch, repr(sorted(p.values.items()))) for k, p in self.device.trace]

    def best_s(self, name: str) -> float | None:
        (search,) = (s for s in self.tuner.searches if s.task.name == name)
        return search.best_s


def fingerprint(seed: int, trials: int) -> str:
    """Hash of the whole trace of a run."""
    world = World(seed=seed)
    world.run(trials)
    return hashlib.sha256(repr(world.trace).encode()).hexdigest()


def random_best(name: str, count: int, seed: int) -> float:
    """The best of `count` random programs: the least success of a search."""
    rng, found = np.random.default_rng(seed), []
    space = sketches(name)
    while len(found) < count:
        sketch = space[rng.integers(len(space))]
        row = [rng.integers(0, d.size) for d in sketch.decisions]
        program = Population(sketch, np.asarray([row], dtype=np.int32)).program(0)
        found.append(latency_of(make_task(name), program))
    return min(found)
