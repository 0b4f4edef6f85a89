"""`Session`: the state that the phases of one run share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ansor.database.database import Database
from ansor.database.journal import Journal
from ansor.executor import Executor
from ansor.measure.device import Device
from ansor.measure.remote_machine import RemoteMachine
from ansor.policy.registry import policy_named
from ansor.report.document.search_data import Trial
from ansor.run.candidates import Candidate
from ansor.run.check.network import SourceComparison
from ansor.run.precision.phase import PrecisionPhase
from ansor.run.prepare import Network
from ansor.run.search.tuner import Tuner
from ansor.run.settings import Settings
from ansor.run.task_choice import chosen_functions
from ansor.run.time_plan import TimePlan
from ansor.targets.registry import backend_of
from ansor.targets.target import Target
from ansor.task import Task


@dataclass
class Session:
    """The state of one run.

    Attributes:
        settings: of the run.
        target: that the networks are tuned for.
        text: canonical text of the target.
        threads: of the programs.
        records: the database.
        device: builds, times and checks programs.
        executor: spreads the search over the cores.
        clock: seconds since this call began.
        remote: the machine of the device, if it is not this one.
        earlier: records of earlier runs.
        networks: the imported networks by name.
        comparisons: of networks with their originals.
        candidates: the networks in several precisions that may be the fastest, by name.
        spent: by key, programs of each task that the run has measured.
        measured: programs that the run has measured.
        journal: of the run's measurements, from the search on.
    """

    settings: Settings
    target: Target
    text: str
    threads: int
    records: Database
    device: Device
    executor: Executor
    clock: Callable[[], float]
    remote: RemoteMachine | None = None
    earlier: tuple[Database, ...] = ()
    networks: dict[str, Network] = field(default_factory=dict)
    comparisons: dict[str, SourceComparison] = field(default_factory=dict)
    candidates: dict[str, list[Candidate]] = field(default_factory=dict)
    spent: Counter[str] = field(default_factory=Counter)
    measured: list[Trial] = field(default_factory=list)
    journal: Journal = field(init=False)

    def __post_init__(self) -> None:
        self.journal = Journal(self.records, self.clock)

    @cached_property
    def machine(self) -> Any:
        """The parameters of the machine that runs the programs."""
        if self.remote is not None:
            return self.remote.parameters
        return backend_of(self.target).machine.detect(self.target, self.threads)

    @cached_property
    def precision(self) -> PrecisionPhase:
        """Puts the networks into the precision of the settings."""
        return PrecisionPhase(self.settings, self.target, self.text, self.note)

    @property
    def plan(self) -> TimePlan:
        """The plan of the run's time."""
        given, networks = self.settings, self.networks.values()
        functions = sum(len({task.group for task in network.tasks}) for network in networks)
        candidates = 2 if self.precision.mixtures else 1
        return TimePlan(
            given.minutes,
            self.journal.clock,
            given.config,
            functions,
            len(self.networks),
            candidates,
        )

    def tuner(self, tasks: Sequence[Task], calls: npt.NDArray[np.int64]) -> Tuner:
        """The tuner of tasks; for `calls` see `merged`."""
        given = self.settings
        return Tuner(
            tasks,
            self.machine,
            backend_of(self.target).search,
            self.device,
            self.journal,
            given.config,
            given.seed,
            given.callbacks,
            given.rules,
            calls,
            given.objective,
            policy=policy_named(given.policy),
            executor=self.executor,
            cost_model=given.cost_model,
            chosen=chosen_functions(tasks, given.choices),
            earlier=self.earlier,
            spent=self.spent,
            measured=self.measured,
        )

    def note(self, text: str) -> None:
        """Sends a message to the callbacks."""
        for callback in self.settings.callbacks:
            callback.on_stage(text)
