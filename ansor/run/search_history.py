"""`SearchHistory`: what a tuned network keeps of its search, for explanations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansor.config import SketchConfig
from ansor.database.database import Database
from ansor.explain.explain import Subject, explain
from ansor.explain.explanation import Explanation
from ansor.explain.trials import Trials, trials_of
from ansor.measure.device import TaskProgram
from ansor.run.task_search import space_of
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
    """

    machine: Any
    config: SketchConfig
    rules: Sequence[Rule[Any]]
    trials: Mapping[str, Mapping[str, Trials]]

    def explained(self, winner: TaskProgram, latency_s: float | None) -> Explanation:
        """Explains the winner of a function.

        Args:
            winner: task and program.
            latency_s: seconds of one run; None if it was not measured.
        """
        task, program = winner
        search = backend_of(task.target).search
        sketches = space_of(task, search, self.machine, self.config, self.rules)
        subject = Subject(task, program, latency_s, sketches, self.trials[task.group])
        return explain(subject, self.machine, search)


def trials_by_function(tasks: Iterable[Task], records: Database) -> dict[str, dict[str, Trials]]:
    """The measurements of tasks, by the function and the kind of the variant."""
    found: dict[str, dict[str, Trials]] = {}
    for task in tasks:
        trials = trials_of(records.records(task.key, task.target))
        found.setdefault(task.group, {})[task.kind] = trials
    return found
