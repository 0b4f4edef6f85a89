"""`Settings`: the keyword arguments of `auto_schedule`, in one place."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, TypeVar

from ansor.callbacks import Callback
from ansor.config import CHECK, FULL, TuneConfig
from ansor.cost_model.gbdt import ResidualModel
from ansor.cost_model.learned import LearnedModelFactory
from ansor.database.record import Record
from ansor.database.store import RecordStore
from ansor.errors import ArgumentError
from ansor.frontend.precision.stages import WIDE
from ansor.measure.device import Device
from ansor.policy.base import PolicyFactory
from ansor.policy.registry import DEFAULT, policy_named
from ansor.run.arguments import (
    Source,
    check_budget,
    check_device,
    check_log,
    check_objective,
    check_precision,
    check_seed,
    check_task_limits,
    check_templates,
    check_threads,
    check_variants,
    listed_sources,
)
from ansor.run.check.deviation import ErrorBudget, Metric, squared_error
from ansor.run.search.task_limits import TaskLimits
from ansor.run.task_choice import Choice, listed_choices, new_functions
from ansor.sketch.rule import Rule
from ansor.task import Task
from ansor.task_scheduler.objective import Objective, total_latency

F = TypeVar("F", bound=Callable[..., Any])
RecordsOf = Callable[[str, str], Sequence[Record]]


@dataclass(frozen=True)
class Settings:
    """The settings of a run.

    Attributes:
        minutes: time for everything, from the call to the result.
        trials: programs to measure, over all tasks. Without a budget, or with ``trials=0``,
            nothing is measured: each task takes the best program that `database` knows, or else
            the one that the draft model prefers.
        trials_per_task: programs of each task to measure. A variant of a function is a task.
        early_stopping: trials of a task without a gain after which its search ends. The run ends
            when all tasks have ended.
        tasks: functions to tune; by default all. Each entry is the name of a function, an operator
            such as "conv2d" or "dense", or a predicate of a `Task`. Other functions take what they
            take without a budget.
        only_new: whether functions with records for the target in `database` take their best
            program, and only the others are searched.
        seed: of all randomness.
        database: file of records, read and extended; None keeps them in memory. Or a store of
            records, see `ansor.database.store`.
        resume: whether a run with the same arguments that was interrupted goes on, if `database`
            knows one. Its trials and its minutes count. False begins a run anew, with the records
            of all runs.
        log: file that gets a line of JSON for each measurement, as soon as it is made.
        transfer: logs or databases of earlier runs. The search begins with the best programs of
            its tasks and of similar tasks, and the cost model learns from records of its tasks.
        callbacks: told of progress.
        threads: that programs run on; all cores by default, those of the target's machine.
        config: limits of the search space, sizes and rates of the search.
        rules: derivation rules tried before the built-in ones.
        allow: the only kinds of variants that may stand for a function, of "winograd2", "winograd3"
            and "winograd4", which round a little more; all of them by default.
        forbid: kinds of variants that may not.
        templates: schedules that users wrote, which compete with the derived sketches where they
            fit: templates with knobs (`ansor.template`), or functions of an `ansor.Schedule`.
        sketches: False leaves the derived sketches out where a template fits.
        seeds: folder of a database of MetaSchedule. The best records of the functions compete, each
            as one program and the best one of a function also with its samples as knobs.
        objective: what is to become small: `total_latency`, a `LatencyRequirement`, below which the
            search ends, or any function of an array with the latency of each network in seconds.
        precision: "float32", or "bfloat16": convolutions and products of matrices multiply bfloat16
            and add up in float32. On a target without instructions for that it is refused. With
            "auto" the measured latencies choose for each function; such a target has float32.
        max_error: of the results in another precision, by `metric`. If it is exceeded, functions go
            back to float32, the most sensitive first. By default 1e-4.
        metric: the error of an output, a function of the expected array and the actual one. By
            default it is the normalised mean squared error.
        check_import: whether the import is compared with the original model in PyTorch or ONNX
            Runtime before the search, and the tuned network after it.
        policy: the search of a task: a name of `ansor.policy.registry.POLICIES`, or a function that
            makes one, such as a subclass of `ansor.policy.base.Policy`.
        cost_model: makes the model that learns from measurements, from the settings of the cost
            model and a seed, see `ansor.cost_model.learned`; by default boosted trees.
        device: builds, times and checks programs; the run closes it. By default worker processes of
            this machine. `ansor.RpcDevice` runs programs on other machines, and determines the
            target and the threads. "ray" stands for the Ray cluster of this machine, and
            "ray:HOST:PORT" for another one.
    """

    minutes: float | None = None
    trials: int | None = None
    trials_per_task: int | None = None
    early_stopping: int | None = None
    tasks: Choice | Sequence[Choice] | None = None
    only_new: bool = False
    seed: int = 0
    database: Source | RecordStore | None = None
    resume: bool = True
    log: str | os.PathLike[str] | None = None
    transfer: Source | Sequence[Source] = ()
    callbacks: Sequence[Callback] = ()
    threads: int | None = None
    config: TuneConfig = FULL
    rules: Sequence[Rule[Any]] = ()
    allow: Collection[str] | None = None
    forbid: Collection[str] = ()
    templates: Sequence[object] = ()
    sketches: bool = True
    seeds: str | os.PathLike[str] | None = None
    objective: Objective = total_latency
    precision: str = WIDE
    max_error: float | None = None
    metric: Metric | None = None
    check_import: bool = True
    policy: str | PolicyFactory = DEFAULT
    cost_model: LearnedModelFactory = ResidualModel
    device: Device | str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], networks: int) -> Settings:
        """The checked settings from the keyword arguments of a call for one or several networks.

        Raises:
            ArgumentError: there is no such setting, or its value is wrong.
        """
        names = [field.name for field in fields(cls)]
        for name in given:
            if name not in names:
                near = get_close_matches(name, names, 1) or names
                raise ArgumentError(name, given[name], f"no such argument; try {', '.join(near)}")
        settings = cls(**given)
        check_budget(settings.minutes, settings.trials)
        check_task_limits(settings.trials_per_task, settings.early_stopping)
        check_log(settings.log)
        check_device(settings.device)
        listed_choices(settings.tasks)
        listed_sources(settings.transfer)
        check_seed(settings.seed)
        check_threads(settings.threads)
        check_objective(settings.objective, networks)
        check_variants(settings.allow, settings.forbid)
        check_precision(settings.precision, settings.max_error, settings.metric)
        policy_named(settings.policy)
        check_templates(settings.templates, settings.precision, settings.seeds)
        return settings

    def on_new(self, tasks: Sequence[Task], records: RecordsOf) -> Settings:
        """The settings of a search of these tasks; if `only_new`, of those without records.

        Args:
            tasks: of all networks.
            records: that are known of a task's key and a target.
        """
        if not self.only_new:
            return self
        new = new_functions(tasks, self.choices, lambda task: bool(records(task.key, task.target)))
        return replace(self, tasks=new) if new else replace(self, trials=0)

    @property
    def limits(self) -> TaskLimits:
        """The limits of each task."""
        return TaskLimits(self.trials_per_task, self.early_stopping)

    @property
    def choices(self) -> tuple[Choice, ...] | None:
        """The functions to tune; None for all."""
        return listed_choices(self.tasks)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The logs and databases of earlier runs."""
        return listed_sources(self.transfer)

    @property
    def searches(self) -> bool:
        """Whether there is a budget for measurements."""
        budgets = (self.minutes, self.trials, self.trials_per_task, self.early_stopping)
        return self.trials != 0 and any(budget is not None for budget in budgets)

    @property
    def budget(self) -> ErrorBudget:
        """The error that a network in short floats may make."""
        limit = CHECK.max_squared_error if self.max_error is None else float(self.max_error)
        return ErrorBudget(limit, self.metric or squared_error)

    @property
    def variants(self) -> tuple[str, ...]:
        """The kinds of variants that may stand for a function."""
        return check_variants(self.allow, self.forbid)


def takes_settings(function: F) -> F:
    """Shows the settings in the signature of a function that takes them as `**settings`."""
    signature = inspect.signature(function, eval_str=False)
    before = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    after = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for field in fields(Settings)
    ]
    vars(function)["__signature__"] = signature.replace(parameters=[*before, *after])
    return function
