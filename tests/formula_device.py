"""A device that is written through the public seams alone: seconds from a hash of the program."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ansor.executor import in_turns
from ansor.measure.device import Device, OnResult, TaskProgram, ignored
from ansor.measure.result import Measurement, Verification, successful_measurement
from ansor.program.codec import encode
from ansor.program.program import Program
from ansor.task import Task


def seconds(program: Program) -> float:
    """Between one and two milliseconds."""
    digest = hashlib.sha256(encode(program).encode()).digest()
    return 1e-3 + 1e-3 * int.from_bytes(digest[:4], "big") / 2**32


class FormulaDevice(Device):
    """Answers at once; every program is right."""

    def __init__(self) -> None:
        self.count, self.is_closed = 0, False

    def measure(
        self,
        task: Task,
        programs: Sequence[Program],
        best_s: float | None,
        on_result: OnResult = ignored,
    ) -> list[Measurement]:
        self.count += len(programs)
        return [successful_measurement((seconds(program),), 0.0, 0.0) for program in programs]

    def verify(self, candidates: Sequence[TaskProgram]) -> list[Verification]:
        return [Verification(0.0) for _ in candidates]

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        return [seconds(program) for program in programs]

    def close(self) -> None:
        self.is_closed = True


class LocalFormula(FormulaDevice):
    """Takes the place of the worker processes of this machine."""

    share = staticmethod(in_turns)

    def __init__(self, *_: object) -> None:
        super().__init__()
