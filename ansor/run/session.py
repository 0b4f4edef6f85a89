"""`Session`: the phases of one run, from the models to the tuned networks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ansor.callbacks import Finish
from ansor.database.database import Database
from ansor.database.journal import Journal, open_journal
from ansor.executor import Executor
from ansor.frontend.deploy.foreign import ForeignModel
from ansor.frontend.importers.sizes import Sizes
from ansor.measure.device import Device
from ansor.measure.remote_machine import RemoteMachine
from ansor.policy.registry import policy_named
from ansor.report.document.search_data import Trial
from ansor.run.arguments import check_records
from ansor.run.budget import INTERRUPTED, NOTHING, Budget, together
from ansor.run.candidates import (
    Candidate,
    compiling,
    fastest_first,
    near_fastest,
    were_compared,
    winners_of,
)
from ansor.run.check.network import SourceComparison
from ansor.run.identity import resumption, run_request
from ansor.run.precision.phase import PrecisionPhase
from ansor.run.prepare import Network, merged, prepare_network
from ansor.run.remarks import NOT_CHECKED, choice_remarks, machine_remarks, transfer_remarks
from ansor.run.search_history import SearchHistory, trials_by_function
from ansor.run.settings import Settings
from ansor.run.task_choice import check_choices, chosen_functions
from ansor.run.templates import offered
from ansor.run.time_plan import TimePlan
from ansor.run.tuned import TunedModel
from ansor.run.tuner import Tuner
from ansor.targets.registry import backend_of
from ansor.targets.target import Target, runs_here
from ansor.task import Task
from ansor.templates.metaschedule_records import recorded_traces
from ansor.templates.template import Offer, offers

K = TypeVar("K")


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
        clock: seconds since this call began.
        remote: the machine of the device, if it is not this one.
        earlier: records of earlier runs.
        networks: the imported networks by name.
        comparisons: of networks with their originals.
        candidates: the networks in several precisions that may be the fastest, by name.
        spent: by key, programs of each task that the run has measured.
        measured: programs that the run has measured.
        journal: of what the run measures, from the search on.
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

    def import_models(
        self,
        models: Mapping[str, object],
        example_inputs: Mapping[str, object],
        sizes: Mapping[str, Sizes],
    ) -> None:
        """Imports the models and compares those that have an original with it."""
        for name, model in models.items():
            self.note(f"importing {name}")
            examples, kinds = example_inputs.get(name), self.settings.variants
            network = prepare_network(
                model, self.target, self.text, examples, kinds, sizes.get(name)
            )
            comparison = None
            if self.settings.check_import and network.source is not None:
                self.note(f"comparing the import of {name} with the original")
                comparison = SourceComparison(network.source, self.target)
                comparison.check_import(network.mod)
                self.comparisons[name] = comparison
            self.networks[name] = self.precision.entered(name, network, comparison)
        alone = not self.settings.sketches
        self.networks = offered(self.networks, self._offers(), alone)

    def _offers(self) -> list[Offer]:
        """The schedules of the settings."""
        given = self.settings
        if given.seeds is None:
            return offers(given.templates)
        tasks = [task for network in self.networks.values() for task in network.tasks]
        return offers([*given.templates, *recorded_traces(given.seeds, [t.func for t in tasks])])

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

    def search(self) -> tuple[Tuner, Finish]:
        """Searches until the budget ends; returns the tuner and how it ended.

        Where the latencies choose the precision, the first part of the budget is for the functions
        in both precisions, and the rest for those of the fastest mixture.
        """
        given, (tasks, calls) = self.settings, merged(self.networks)
        check_choices(tasks, given.choices)
        if given.searches:
            request = run_request(given, self.text, tasks, calls)
            self.journal = open_journal(self.records, self.clock, request, given.resume)
            self.settings = given = given.on_new(tasks, self.journal.records)
        elif given.trials is None:
            check_records(self.records, tasks, self.text)
        if (interrupted := self.journal.interrupted) is not None:
            self.note(resumption(interrupted, self.journal.recovered, given))
        remarks = choice_remarks(tasks, given.choices, self.records)
        for remark in remarks + transfer_remarks(tasks, self.earlier):
            self.note(remark)
        machine = self.machine
        whole = Budget(given.trials, self._plan.search_s, given.limits)
        if not self.precision.mixtures:
            return self._searched(whole, machine)
        both, first = self._searched(whole.share(given.config.forms_share), machine)
        self.networks |= self.precision.mixed(both, machine)
        tuner, last = self._searched(whole.after(first), machine)
        self._add_rivals(machine)
        return tuner, together(first, last)

    def _add_rivals(self, machine: Any) -> None:
        """Finds the networks in one precision that may be faster than the mixtures."""
        all_rivals = self.precision.rivals(self.networks)
        named = {f"{n}/{i}": each for n, own in all_rivals.items() for i, each in enumerate(own)}
        tuner = self._tuner(*merged(named), machine)
        most = self._plan.affordable
        for name, (mixture, *pure) in all_rivals.items():
            found = near_fastest(mixture, pure, tuner, most)
            self.candidates[name] = [Candidate(network, tuner) for network in found]

    def _searched(self, budget: Budget, machine: Any) -> tuple[Tuner, Finish]:
        """Searches the tasks of the networks as they are."""
        tasks, calls = merged(self.networks)
        for remark in machine_remarks(tasks, backend_of(self.target), machine):
            self.note(remark)
        unknown = {task.group for task in tasks if not self.records.count(task.key, self.text)}
        self.device.start(len(unknown) if budget.is_empty else None)
        tuner = self._tuner(tasks, calls, machine)
        return tuner, tuner.run(budget)

    def _tuner(self, tasks: list[Task], calls: npt.NDArray[np.int64], machine: Any) -> Tuner:
        given = self.settings
        return Tuner(
            tasks,
            machine,
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

    def finished(self, tuner: Tuner, finish: Finish) -> dict[str, TunedModel]:
        """Chooses the winners of a search, compiles the networks with them and compares these.

        Of a network in several precisions the fastest is taken.
        """
        candidates = {
            name: self.candidates.get(name) or [Candidate(network, tuner)]
            for name, network in self.networks.items()
        }
        numbered = {(n, i): each for n, own in candidates.items() for i, each in enumerate(own)}
        known = were_compared(numbered.values(), self.records, self.journal.ended_s)
        leaders = self._plan.leaders if self._is_long(finish) and not known else 1
        tuned = self._compiled(numbered, finish, leaders)
        found = {}
        for name, own in candidates.items():
            models = [tuned[name, number] for number in range(len(own))]
            ranked = fastest_first(models)
            pairs = [(own[number].network, models[number]) for number in ranked]
            found[name] = self._compared(name, pairs, finish)
        if finish.is_complete:
            self.journal.finish()
        return found

    def _compiled(
        self, candidates: Mapping[K, Candidate], finish: Finish, leaders: int
    ) -> dict[K, TunedModel]:
        """Networks with their winners, compiled.

        Args:
            candidates: the networks.
            finish: how the search of the run ended.
            leaders: programs of a function that are timed again.
        """
        is_checked = self.remote is not None or runs_here(self.target)
        self.note("checking the winners" if is_checked else NOT_CHECKED)
        given = self.settings
        measure, keeps = given.config.measure, bool(self.precision.allowed)
        with compiling(self.target, self.threads, candidates) as finishers:
            winners = {
                key: winners_of(each, self.device, self.records, measure, leaders, finishers[key])
                for key, each in candidates.items()
            }
            if not keeps:
                self.device.close()  # workers leave the cores to what is still to be compiled
            self.note("compiling")
            return {
                key: finishers[key].tuned(
                    winners[key],
                    _finish_of(each, finish),
                    given.seed,
                    self._history(each.network),
                )
                for key, each in candidates.items()
            }

    def _history(self, network: Network) -> SearchHistory:
        """The search of a network in this run, with the earlier records of its tasks."""
        trials = trials_by_function(network.tasks, self.records)
        given = self.settings
        functions = {task.key: task.group for task in network.tasks}
        measured = tuple(trial for trial in self.measured if trial.task in functions)
        space = self.machine, given.config.sketch, given.rules
        return SearchHistory(*space, trials, measured, functions)

    def _compared(
        self, name: str, tuned: Sequence[tuple[Network, TunedModel]], finish: Finish
    ) -> TunedModel:
        """The first of tuned networks that computes the right result, with its comparison.

        Args:
            name: of the network.
            tuned: in several precisions, the fastest first.
            finish: how their search ended.
        """
        allowed, comparison = self.precision.allowed.get(name), self.comparisons.get(name)
        if allowed is not None:
            compiled = partial(self._compiled_again, finish)
            return allowed.within_budget(tuned, compiled, self.note)
        _, model = tuned[0]
        if comparison is None:
            return model
        if isinstance(model.compiled, ForeignModel):
            if self.remote is not None:
                self.note(f"{name} is for another machine: its functions were checked there alone")
            return replace(model, checks=tuple(comparison.checks))
        comparison.check_tuned(model.compiled)
        return replace(model, checks=tuple(comparison.checks))

    def _compiled_again(self, finish: Finish, network: Network) -> TunedModel:
        """A network with the best programs that are known.

        New functions are searched in the time that is left. Without any, the draft chooses.
        """
        tuner = self._tuner(*merged({"": network}), self.machine)
        tuner.seed_unknown()
        left_s = self._plan.left_s or 0.0
        limits = self.settings.limits
        tuner.run(Budget(seconds=left_s, per_task=limits) if left_s > 0 else NOTHING)
        return self._compiled({"": Candidate(network, tuner)}, finish, leaders=1)[""]

    def _is_long(self, finish: Finish) -> bool:
        """Whether there was a search, to its end."""
        return self.settings.searches and finish.reason != INTERRUPTED

    @property
    def _plan(self) -> TimePlan:
        """How the time of the run is divided."""
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

    def note(self, text: str) -> None:
        """Tells the callbacks what is going on."""
        for callback in self.settings.callbacks:
            callback.on_stage(text)


def _finish_of(candidate: Candidate, finish: Finish) -> Finish:
    """How the search of a network ended: the last search of the run, or one for its rivals."""
    statuses = candidate.tuner.statuses
    return finish if finish.tasks == statuses else replace(finish, tasks=statuses)
