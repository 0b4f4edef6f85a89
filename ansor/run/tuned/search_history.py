"""`SearchHistory`: the data of a search that a tuned network keeps for explanations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansor.config import SketchConfig
from ansor.database.database import Database
from ansor.explain.explain import Subject, explain
from ansor.explain.explanation import Explanation
from ansor.explain.trials import Trials, trials_of
from ansor.measure.device import TaskProgram
from ansor.program.sketch import Sketch
from ansor.report.document.search_data import Trial
from ansor.run.search.task_search import space_of
from ansor.sketch.rule import Rule
from ansor.targets.registry import backend_of
from ansor.task import Task


@dataclass(frozen=True, eq=False)
class SearchHistory:
    """The search of a network.

    Attributes:
        machine: parameters of the machine that ran the programs.
        config: limits of the search space.
        rules: of the user.
        trials: by function and kind of its variants, all measurements in the database.
        measured: measurements of this run, in order.
        functions: the function of each task, by the key of the task.
    """

    machine: Any
    config: SketchConfig
    rules: Sequence[Rule[Any]]
    trials: Mapping[str, Mapping[str, Trials]]
    measured: tuple[Trial, ...] = ()
    functions: Mapping[str, str] = field(default_factory=dict)

    def sketches(self, task: Task) -> list[Sketch]:
        """The search space of a task."""
        search = backend_of(task.target).search
        return space_of(task, search, self.machine, self.config, self.rules)

    def explained(self, winner: TaskProgram, latency_s: float | None) -> Explanation:
        """Explains the winner of a function.

        Args:
            winner: task and program.
            latency_s: seconds of one run; None if it was not measured.
        """
        task, program = winner
        trials = self.trials[task.group]
        subject = Subject(task, program, latency_s, self.sketches(task), trials)
        return explain(subject, self.machine, backend_of(task.target).search)


def trials_by_function(tasks: Iterable[Task], records: Database) -> dict[str, dict[str, Trials]]:
    """The measurements of tasks, by the function and the kind of the variant."""
    found: dict[str, dict[str, Trials]] = {}
    for task in tasks:
        trials = trials_of(records.records(task.key, task.target))
        found.setdefault(task.group, {})[task.kind] = trials
    return found
