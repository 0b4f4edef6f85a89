"""`Session`: the phases of one run, from the models to the tuned networks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ansor.callbacks import Finish
from ansor.config import TuneConfig
from ansor.database.database import Database
from ansor.errors import ArgumentError
from ansor.executor import Executor, in_turns
from ansor.frontend.call_planning import call_plan
from ansor.frontend.importers.sizes import Sizes
from ansor.measure.device import Device
from ansor.measure.local_device import LocalDevice
from ansor.run.arguments import opened
from ansor.run.budget import NOTHING, Budget, together
from ansor.run.check.network import SourceComparison
from ansor.run.finish import Finisher
from ansor.run.garbage_collection import frozen_heap
from ansor.run.precision_phase import PrecisionPhase
from ansor.run.prepare import Network, merged, prepare_network
from ansor.run.settings import Settings
from ansor.run.tuned import TunedModel
from ansor.run.tuner import Tuner
from ansor.run.winners import Winner, choose_winners, finish_seconds, num_leaders
from ansor.targets.backend import Backend
from ansor.targets.host.threads import start_threads
from ansor.targets.registry import backend_of
from ansor.targets.target import Target, target_text
from ansor.task import Task


@contextmanager
def opened_session(settings: Settings, target: Target, began_s: float) -> Iterator[Session]:
    """A session with its database and its device.

    Args:
        settings: of the run.
        target: that the networks are tuned for.
        began_s: when the run began, by `time.monotonic`.
    """
    # Threads come first: a number that the system refuses must not show after the search.
    threads = start_threads(settings.threads)
    text = target_text(target, threads)
    with (
        frozen_heap(),
        opened(settings.database) as records,
        _measuring(settings.device, text, threads, settings.config) as (device, executor),
    ):
        device.start(1)  # in the background, where it takes as long as to import a model
        yield Session(settings, target, text, threads, records, device, executor, began_s)


@contextmanager
def _measuring(
    device: Device | None, target: str, threads: int, config: TuneConfig
) -> Iterator[tuple[Device, Executor]]:
    """The device that measures, and the executor of the search on the cores of this machine."""
    if device is not None:
        with device:
            yield device, in_turns
        return
    with LocalDevice(target, threads, config.measure) as local:
        yield local, local.share


@dataclass
class Session:
    """One run. Its phases are called in order: `import_models`, `search`, `finished`.

    Attributes:
        settings: of the run.
        target: that the networks are tuned for.
        text: canonical text of the target.
        threads: of the programs.
        records: the database.
        device: builds, times and checks programs.
        executor: spreads the search over the cores.
        began_s: when the run began, by `time.monotonic`.
        networks: the imported networks by name.
        comparisons: of networks with their originals.
    """

    settings: Settings
    target: Target
    text: str
    threads: int
    records: Database
    device: Device
    executor: Executor
    began_s: float
    networks: dict[str, Network] = field(default_factory=dict)
    comparisons: dict[str, SourceComparison] = field(default_factory=dict)

    def import_models(
        self,
        models: Mapping[str, object],
        example_inputs: Mapping[str, object],
        sizes: Mapping[str, Sizes],
    ) -> None:
        """Imports the models and compares those that have an original with it."""
        for name, model in models.items():
            self._note(f"importing {name}")
            examples, kinds = example_inputs.get(name), self.settings.variants
            network = prepare_network(
                model, self.target, self.text, examples, kinds, sizes.get(name)
            )
            comparison = None
            if self.settings.check_import and network.source is not None:
                self._note(f"comparing the import of {name} with the original")
                comparison = SourceComparison(network.source, self.target)
                comparison.check_import(network.mod)
                self.comparisons[name] = comparison
            self.networks[name] = self.precision.entered(name, network, comparison)

    @cached_property
    def precision(self) -> PrecisionPhase:
        """Puts the networks into the precision of the settings."""
        return PrecisionPhase(self.settings, self.target, self.text, self._note)

    def search(self) -> tuple[Tuner, Finish]:
        """Searches until the budget ends; returns the tuner and how it ended.

        Where the latencies choose the precision, the first part of the budget is for the functions
        in both precisions, and the rest for those of the fastest mixture.
        """
        given = self.settings
        if given.minutes is None and given.trials is None:
            check_records(self.records, merged(self.networks)[0], self.text)
        machine = backend_of(self.target).machine.detect(self.target, self.threads)
        whole = Budget(given.trials, self._search_seconds())
        if not self.precision.mixtures:
            return self._searched(whole, machine)
        both, first = self._searched(whole.share(given.config.forms_share), machine)
        self.networks |= self.precision.mixed(both, machine)
        tuner, last = self._searched(whole.after(first), machine)
        pure = self.precision.faster_pure(both, tuner, self.networks)
        if pure:
            self.networks |= pure
            tuner, _ = self._searched(NOTHING, machine)
        return tuner, together(first, last)

    def _searched(self, budget: Budget, machine: Any) -> tuple[Tuner, Finish]:
        """Searches the tasks of the networks as they are."""
        tasks, calls = merged(self.networks)
        backend = backend_of(self.target)
        for remark in _remarks(tasks, backend, machine):
            self._note(remark)
        unknown = {task.group for task in tasks if not self.records.count(task.key, self.text)}
        self.device.start(len(unknown) if budget.is_empty else None)
        tuner = self._tuner(tasks, calls, backend, machine)
        return tuner, tuner.run(budget)

    def _tuner(
        self, tasks: list[Task], calls: npt.NDArray[np.int64], backend: Backend[Any], machine: Any
    ) -> Tuner:
        given = self.settings
        return Tuner(
            tasks,
            machine,
            backend.search,
            self.device,
            self.records,
            given.config,
            given.seed,
            given.callbacks,
            given.rules,
            calls,
            given.objective,
            policy=given.policy,
            executor=self.executor,
        )

    def finished(self, tuner: Tuner, finish: Finish) -> dict[str, TunedModel]:
        """Chooses the winners of a search, compiles the networks with them and compares these."""
        self._note("checking the winners")
        with ThreadPoolExecutor(max_workers=1) as background:
            finishers = {
                name: Finisher(network, self.target, background)
                for name, network in self.networks.items()
            }
            leaders = self._leaders if self._is_long(finish) else 1
            winners = {
                name: self._winners(name, tuner, leaders, finisher)
                for name, finisher in finishers.items()
            }
            self.device.close()  # workers leave the cores to what is still to be compiled
            self._note("compiling")
            tuned = {
                name: finisher.tuned(winners[name], finish, self.settings.seed, self.threads)
                for name, finisher in finishers.items()
            }
            return {name: self._compared(name, model) for name, model in tuned.items()}

    def _winners(
        self, name: str, tuner: Tuner, leaders: int, finisher: Finisher
    ) -> dict[str, Winner]:
        """The winners of the functions of one network."""
        network = self.networks[name]
        functions, plan = tuner.functions(network.tasks), call_plan(network.mod)
        config = self.settings.config.measure
        return choose_winners(
            functions, plan, self.device, self.records, config, leaders, finisher.begin
        )

    def _compared(self, name: str, tuned: TunedModel) -> TunedModel:
        """The network with its comparison with the original model, if there is one."""
        comparison = self.precision.comparisons.get(name) or self.comparisons.get(name)
        if comparison is None:
            return tuned
        comparison.check_tuned(tuned.compiled)
        return replace(tuned, checks=tuple(comparison.checks))

    def _is_long(self, finish: Finish) -> bool:
        """Whether there was a search, to its end."""
        given = self.settings
        searched = given.trials != 0 and (given.trials is not None or given.minutes is not None)
        return searched and finish.reason != "interrupted"

    @property
    def _functions(self) -> int:
        """Functions of all networks."""
        return sum(len({task.group for task in n.tasks}) for n in self.networks.values())

    @property
    def _leaders(self) -> int:
        """Programs of a function that are timed again at the end."""
        return num_leaders(self.settings.minutes, self._functions, self.settings.config)

    def _search_seconds(self) -> float | None:
        """Seconds for the search itself; the import has taken some, and the end needs some."""
        minutes, config = self.settings.minutes, self.settings.config
        if minutes is None:
            return None
        finish_s = finish_seconds(self._leaders, self._functions, config, len(self.networks))
        left = minutes * 60 - (time.monotonic() - self.began_s) - finish_s
        return max(left, config.least_search_s)

    def _note(self, text: str) -> None:
        for callback in self.settings.callbacks:
            callback.on_stage(text)


def _remarks(tasks: Sequence[Task], backend: Backend[Any], machine: Any) -> list[str]:
    """What users should know about their models on this machine, each thing once."""
    remarks = backend.search.remarks
    return list(dict.fromkeys(text for task in tasks for text in remarks(task.dag, machine)))


def check_records(records: Database, tasks: Sequence[Task], target: str) -> None:
    """Refuses a run without a budget if all records are for other targets.

    Raises:
        ArgumentError: there are such records, and none for this target.
    """
    if records.count(target=target):
        return
    keys = [task.key for task in tasks]
    others = sorted({other for key in keys for other in records.targets(key)})
    if others:
        remedy = (
            f"it has records for {', '.join(others)}, none for {target}; give minutes or trials"
        )
        raise ArgumentError("database", "no records for this target", remedy)
