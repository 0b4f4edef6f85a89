"""`ChosenPrograms`: the definitions and programs of a network before they were lowered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import tvm
from tvm import s_tir

from ansor.errors import ArgumentError
from ansor.lowering.trace import traced
from ansor.measure.device import TaskProgram


@dataclass(frozen=True, eq=False)
class ChosenPrograms:
    """The programs of a network before they were lowered.

    Attributes:
        mod: the network with the chosen definitions, not scheduled.
        of: task and program of each function.
    """

    mod: tvm.IRModule
    of: Mapping[str, TaskProgram]

    def trace(self, function: str) -> s_tir.Trace:
        """The program of a function as a trace of TVM's schedule, which prints as Python.

        Raises:
            ArgumentError: there is no such function.
            UnsupportedError: a trace cannot express the program.
        """
        if function not in self.of:
            raise ArgumentError("function", function, f"give one of {', '.join(self.of)}")
        task, program = self.of[function]
        return traced(task.func, program, task.by_hand)

    def traces(self) -> dict[str, s_tir.Trace]:
        """The traces of all functions that are scheduled, by their names in `mod`.

        Raises:
            UnsupportedError: a trace cannot express a program.
        """
        scheduled = {name: task for name, (task, program) in self.of.items() if program.steps}
        return {task.name: self.trace(name) for name, task in scheduled.items()}
