"""The protocol of devices. `LocalDevice`, `RpcDevice` and `FakeDevice` are devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ansor.executor import R, in_turns
from ansor.measure.call_plan import CallPlan
from ansor.measure.remote_machine import RemoteMachine
from ansor.measure.result import InTurns, Measurement, Verification
from ansor.program.program import Program

if TYPE_CHECKING:  # a task imports TVM, which a device need not do
    from ansor.task import Task

TaskProgram = tuple["Task", Program]
D = TypeVar("D", bound="Device")
# Gets the place of a program in its batch, and its measurement.
OnResult = Callable[[int, Measurement], None]


def ignored(number: int, result: Measurement) -> None:
    """The default, for callers that wait for all results."""


class Device(Protocol):
    """Builds, times and checks programs. No behaviour of a program makes a method raise.

    A subclass implements `measure`, `verify`, `compare` and `close`. The defaults of the other
    methods are for a device of this machine that needs no preparation, has one time for each
    program, and runs no networks.
    """

    def remote(self) -> RemoteMachine | None:
        """The machine that runs the programs; None for this one."""
        return None

    def share(self, function: Callable[..., R], arguments: Sequence[tuple[Any, ...]]) -> list[R]:
        """An `Executor` for the search; by default this thread does everything."""
        return in_turns(function, arguments)

    def start(self, count: int | None = None) -> None:
        """Prepares for `count` programs at a time, at most its limit; returns at once.

        Calling it is not necessary. A device that needs no preparation does nothing.
        """
        return

    def measure(
        self,
        task: Task,
        programs: Sequence[Program],
        best_s: float | None,
        on_result: OnResult = ignored,
    ) -> list[Measurement]:
        """Builds and times programs.

        Args:
            task: of the programs.
            programs: to be measured.
            best_s: the task's best latency so far, in seconds; a program whose first run is much
                slower is not repeated.
            on_result: may be called with each measurement as soon as it is complete, at most once.
                The caller records it then, so that it survives the end of this process.
                Exceptions of `on_result` are passed on.

        Returns:
            one measurement per program, in the same order.
        """

    def verify(self, candidates: Sequence[TaskProgram]) -> list[Verification]:
        """Compares the results of programs with those of their tasks' definitions, on random
        inputs."""

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        """Times programs in turns, `rounds` times each; median seconds, None for a failure."""

    def compare_turns(
        self, task: Task, programs: Sequence[Program], rounds: int
    ) -> list[InTurns | None]:
        """Like `compare`, with the spread of the turns. The default has no spread."""
        times = self.compare(task, programs, rounds)
        return [None if seconds is None else InTurns(seconds) for seconds in times]

    def rehearse(
        self, plan: CallPlan, candidates: Mapping[str, Sequence[TaskProgram]], seconds: float
    ) -> dict[str, list[float | None]]:
        """Times programs in the run of a network.

        Args:
            plan: the network's calls.
            candidates: for each function of the plan, programs with their tasks.
            seconds: time for runs after all programs are built.

        Returns:
            for each function, the seconds that each candidate costs in a run, all calls together;
            None for all if the network could not be run.
        """
        return {name: [None] * len(programs) for name, programs in candidates.items()}

    def close(self) -> None:
        """Frees the resources of the device; may be called twice."""

    def __enter__(self: D) -> D:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
