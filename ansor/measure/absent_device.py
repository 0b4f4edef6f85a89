"""A device for the code of a machine that is not available."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ansor.lowering.lower import lower
from ansor.measure.device import Device, OnResult, ignored
from ansor.measure.result import ErrorKind, Measurement, Verification
from ansor.program.program import Program
from ansor.targets.build import lowered_function

if TYPE_CHECKING:
    from ansor.measure.device import TaskProgram
    from ansor.task import Task


class AbsentDevice(Device):
    """A `Device` that runs nothing. Each measurement fails, and a program counts as right if TVM's
    passes compile it."""

    def measure(
        self,
        task: Task,
        programs: Sequence[Program],
        best_s: float | None,
        on_result: OnResult = ignored,
    ) -> list[Measurement]:
        """See `Device.measure`."""
        failed = Measurement(error=ErrorKind.RUN, message="this machine cannot run the program")
        return [failed for _ in programs]

    def verify(self, candidates: Sequence[TaskProgram]) -> list[Verification]:
        """See `Device.verify`; there is no difference, because nothing is compared."""
        return [_compiled(task, program) for task, program in candidates]

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        """See `Device.compare`."""
        return [None for _ in programs]

    def close(self) -> None:
        """See `Device.close`; there is nothing to free."""


def _compiled(task: Task, program: Program) -> Verification:
    """Whether TVM's passes accept a program."""
    try:
        lowered_function(lower(task.func, program, task.by_hand), task.target)
    except Exception as error:  # of lowering, and TVM's own, of many kinds
        lines = str(error).strip().splitlines() or [repr(error)]
        return Verification(error=ErrorKind.BUILD, message=lines[0])
    return Verification()
