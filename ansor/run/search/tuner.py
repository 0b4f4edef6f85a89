"""The loop that spends trials: scheduler, policies, device, records (Ansor, figure 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ansor.callbacks import Callback, Finish, Start, TaskStatus
from ansor.config import TuneConfig
from ansor.cost_model.gbdt import ResidualModel
from ansor.cost_model.learned import LearnedModelFactory
from ansor.cost_model.model import CostModel
from ansor.database.database import Database
from ansor.database.journal import Journal
from ansor.errors import ArgumentError, DatabaseError
from ansor.executor import Executor, in_turns
from ansor.measure.batches import queue_of
from ansor.measure.device import Device
from ansor.policy.base import Policy, PolicyFactory
from ansor.policy.policy import SearchPolicy
from ansor.program.sketch import Sketch
from ansor.report.document.search_data import Trial
from ansor.run.search.allocation import Allocation
from ansor.run.search.budget import INTERRUPTED, Budget
from ansor.run.search.effort import Effort
from ansor.run.search.function_searches import searches_by_function, seconds_of
from ansor.run.search.rounds import OpenRound, Rounds, event_of
from ansor.run.search.task_search import TaskSearch, space_of
from ansor.run.search.transfer import teach
from ansor.run.search.trials import trial_of
from ansor.sketch.rule import Rule
from ansor.targets.machine import M
from ansor.targets.search import TargetSearch
from ansor.task import Task
from ansor.task_scheduler.networks import Networks
from ansor.task_scheduler.objective import Objective, total_latency


class Tuner:
    """Tunes the tasks of one or several networks on one device.

    Args:
        tasks: to be tuned, each definition once.
        machine: parameters for rules and the draft.
        search: rules, limits and draft of the kind of target.
        device: builds, times and checks programs.
        journal: of the run, with earlier records, the destination of new ones, and the time.
        config: all settings.
        seed: the same seed gives the same candidates if the device gives the same answers.
        callbacks: told of progress.
        user_rules: derivation rules tried before the built-in ones.
        calls: `[networks, tasks]`, number of calls of each task in each network; by default one
            network with the tasks' weights.
        objective: function to be minimised.
        policy: makes the search of each task.
        executor: spreads the work of the policies over the cores.
        cost_model: makes the model that learns from measurements.
        chosen: names of the functions to tune; by default all. Other functions are not measured.
        earlier: records of earlier runs, for the first batches and the cost model.
        spent: by key, number of programs of each task that this run has measured; updated.
        measured: measurements of this run; extended.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        machine: M,
        search: TargetSearch[M],
        device: Device,
        journal: Journal,
        config: TuneConfig,
        seed: int = 0,
        callbacks: Sequence[Callback] = (),
        user_rules: Sequence[Rule[Any]] = (),
        calls: npt.NDArray[np.int64] | None = None,
        objective: Objective = total_latency,
        policy: PolicyFactory = SearchPolicy,
        executor: Executor = in_turns,
        cost_model: LearnedModelFactory = ResidualModel,
        chosen: Collection[str] | None = None,
        earlier: Sequence[Database] = (),
        spent: Counter[str] | None = None,
        measured: list[Trial] | None = None,
    ) -> None:
        self.config, self.seed = config, seed
        groups = [task.group for task in tasks]
        own_calls = np.array([[task.weight for task in tasks]]) if calls is None else calls
        self._networks = Networks(own_calls, groups, objective)
        self._earlier = earlier
        self._effort = Effort(journal.clock, Counter() if spent is None else spent)
        self._measured = list[Trial]() if measured is None else measured
        self._open = Rounds(queue_of(device), journal, seed, config.measure)
        self._journal = journal
        self._make_policy, self._executor = policy, executor
        self._callbacks = callbacks
        self.model = CostModel(machine, search, config.cost_model, config.sketch, seed, cost_model)
        streams = np.random.SeedSequence(seed).spawn(len(tasks) + 1)
        spaces = [space_of(task, search, machine, config.sketch, user_rules) for task in tasks]
        self.searches = [
            TaskSearch.on(machine, config.measure, task, self._policy(task, space, stream))
            for task, space, stream in zip(tasks, spaces, streams, strict=False)
        ]
        self._allocation = Allocation(
            self.searches,
            self._networks,
            groups if chosen is None else chosen,
            config,
            self._effort,
            self._open,
            np.random.default_rng(streams[-1]),
        )
        self.restored = 0
        for own in self.searches:
            self.restored += own.restore(journal.records(own.task.key, own.task.target))
        self._known_errors, self._told = self._errors, set[str]()
        for own in self.searches:
            teach(self.model, own.task, own.policy.sketches, earlier)
        self.model.fit()

    def _policy(
        self, task: Task, sketches: Sequence[Sketch], stream: np.random.SeedSequence
    ) -> Policy:
        evolution, rng = self.config.evolution, np.random.default_rng(stream)
        return self._make_policy(task.key, sketches, self.model, evolution, rng, self._executor)

    def functions(self, tasks: Sequence[Task]) -> dict[str, list[TaskSearch]]:
        """See `searches_by_function`."""
        return searches_by_function(self.searches, tasks)

    def seconds_of(self, tasks: Sequence[Task]) -> float | None:
        """See `function_searches.seconds_of`."""
        return seconds_of(self.searches, tasks)

    @property
    def statuses(self) -> list[TaskStatus]:
        """The current status of all tasks."""
        return [search.status for search in self.searches]

    def seed_unknown(self) -> None:
        """Lets the draft's choices for tasks without records begin with programs of similar
        tasks."""
        for search in self.searches:
            if not search.policy.trials:
                search.seed(self._journal, self._earlier)

    @property
    def _errors(self) -> Counter[str]:
        """Programs that failed, by kind, earlier runs' records included."""
        return sum((search.errors for search in self.searches), Counter[str]())

    def run(self, budget: Budget) -> Finish:
        """Searches until the budget is spent, no program is left, or Ctrl-C comes. A failure of an
        objective or a database also ends the search.

        At the end, every measurement is in the database, except one that could not be written.
        Each task keeps its best program.
        """
        start = Start(
            self.statuses,
            budget.trials,
            budget.seconds,
            self._networks.goal_s,
            self._networks.reference_s,
        )
        self._tell(lambda callback: callback.on_start(start))
        is_complete = False
        try:
            reason, is_complete = self._loop(budget), True
        except KeyboardInterrupt:
            reason = INTERRUPTED
        except (ArgumentError, DatabaseError) as error:  # results so far are not lost
            reason = str(error)
        finally:
            for left in self._open.abandon():
                self._learn(left)
        errors = self._errors - self._known_errors
        trials, elapsed_s = self._effort.trials, self._effort.elapsed_s
        finish = Finish(reason, self.statuses, trials, elapsed_s, is_complete, errors)
        self._tell(lambda callback: callback.on_finish(finish))
        return finish

    def _loop(self, budget: Budget) -> str:
        """Keeps all places of the device busy; returns the reason for the end of the search."""
        if budget.is_empty:
            return "no budget"
        self._effort.begin_rounds()
        while True:
            reason = self._fill(budget)
            if not self._open.busy:
                return reason
            for search, trials in self._open.left_behind(self.searches):
                self._effort.count(search.task.key, trials)
            done = self._open.finished()
            self._learn(done)
            self._effort.end_round()
            self._report(done)

    def _fill(self, budget: Budget) -> str:
        """Starts rounds while the device has places; returns the reason why no further one may
        start."""
        while self._open.has_place:
            search, reason = self._allocation.choose(budget)
            if search is None:
                return reason
            self._begin(search, budget)
        return ""

    def _begin(self, search: TaskSearch, budget: Budget) -> None:
        """Proposes a batch of a task and gives it to the device."""
        count = self._allocation.batch_size(search, budget)
        if not search.policy.trials:
            search.seed(self._journal, self._earlier)
        self._open.begin(search, search.policy.propose(count), count)
        self.model.prepare()

    def _learn(self, done: OpenRound) -> None:
        """Takes in the results of a round; after an interrupt, some are missing."""
        places = sorted(done.results)
        results = [done.results[i] for i in places]
        batch = [done.candidates[i] for i in places]
        done.search.learn(batch, results, done.asked)
        key, now_s = done.search.task.key, self._journal.clock()
        self._measured += map(partial(trial_of, key, now_s), batch, results)
        self.model.fit()
        self._effort.count(key, len(places))

    def _report(self, done: OpenRound) -> None:
        """Reports a finished round."""
        latency_s = self.latency_s
        network_s = None if latency_s is None else float(latency_s.sum())
        event = event_of(done, self._told, self._effort, network_s)
        self._told |= set(event.new_errors)
        self._tell(lambda callback: callback.on_round(event))

    @property
    def latency_s(self) -> npt.NDArray[np.float64] | None:
        """Seconds of each network; None until each function has a program."""
        return self._networks.latency_s([search.best_s for search in self.searches])

    def _tell(self, event: Callable[[Callback], None]) -> None:
        for callback in self._callbacks:
            event(callback)
