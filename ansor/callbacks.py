"""Events of a run for users: derive from `Callback` and override the methods that you need.

Progress comes through callbacks only; the package itself prints nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TaskStatus:
    """The current status of a task.

    Attributes:
        name: function of the network.
        key: hash of the compute definition.
        weight: calls per run of the network.
        flops: floating-point operations per call.
        trials: programs measured, earlier runs' records included.
        best_s: seconds of the best program; None before the first success.
        sketch: name of the best program's sketch.
        group: function of the network; differs from `name` in a variant.
        errors: programs that failed, by kind, e.g. ``{"build": 2}``.
        compute_s: seconds of the sums of products at the machine's peak; 0 if there are none.
        memory_s: seconds of inputs and outputs at the bandwidth of the memory; 0 if it is unknown.
    """

    name: str
    key: str
    weight: int
    flops: int
    trials: int
    best_s: float | None
    sketch: str | None = None
    group: str = ""
    errors: Mapping[str, int] = field(default_factory=dict)
    compute_s: float = 0.0
    memory_s: float = 0.0


@dataclass(frozen=True)
class Round:
    """One round: a batch of one task, measured.

    Attributes:
        number: counts all rounds of the run, from 1.
        task: the task's status after the round.
        measured: programs of the batch.
        errors: failures by kind, e.g. ``{"build": 2}``.
        new_errors: of the kinds that failed for the first time in the search, the text of the first
            failure.
        trials: programs measured so far in this run, all tasks.
        elapsed_s: seconds since the run began.
        network_s: weighted sum of the tasks' best latencies; None until each has one.
        current_s: seconds of the fastest program of the batch; None if all failed.
        disturbed: programs of the batch that were measured on a slow or busy machine.
        speed: of the machine, as a share of its best in the run, the median over the batch; None if
            the device does not know.
        recalled: programs of the batch that an interrupted run had measured.
    """

    number: int
    task: TaskStatus
    measured: int
    errors: Mapping[str, int]
    new_errors: Mapping[str, str]
    trials: int
    elapsed_s: float
    network_s: float | None
    current_s: float | None = None
    disturbed: int = 0
    speed: float | None = None
    recalled: int = 0


@dataclass(frozen=True)
class Start:
    """The beginning of a run.

    Attributes:
        tasks: as they stand.
        trials: programs that may be measured; None is no limit.
        seconds: that the search may take; None is no limit.
        goal_s: seconds of all networks together at which the objective asks for nothing more; None
            if it has no such limit.
        reference_s: seconds that the networks take elsewhere, together, if the objective has them.
    """

    tasks: Sequence[TaskStatus]
    trials: int | None
    seconds: float | None
    goal_s: float | None = None
    reference_s: float | None = None


@dataclass(frozen=True)
class Finish:
    """The end of a search.

    Attributes:
        reason: why it stopped.
        tasks: as they stand.
        trials: programs measured in this run, interruptions included.
        elapsed_s: seconds since the run began, interruptions left out.
        is_complete: whether it came to its end; False after an interrupt or an error. The same call
            then goes on with it.
        errors: programs of this run that failed, by kind.
    """

    reason: str
    tasks: Sequence[TaskStatus]
    trials: int
    elapsed_s: float
    is_complete: bool = True
    errors: Mapping[str, int] = field(default_factory=dict)


class Callback:
    """Receives events; does nothing by itself."""

    def on_start(self, start: Start) -> None:
        """Before the first round."""

    def on_round(self, done: Round) -> None:
        """After each round."""

    def on_finish(self, finish: Finish) -> None:
        """After the last round, before the network is compiled."""

    def on_stage(self, text: str) -> None:
        """When a stage other than the search begins, e.g. "compiling"."""
