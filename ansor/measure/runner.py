"""The worker's half of the work: tasks, built programs, timing, checking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import tvm
from tvm import tirx

from ansor.config import MeasureConfig
from ansor.errors import AnsorError
from ansor.measure.build import ENTRY, build
from ansor.measure.inputs import on_device, random_arrays, relative_difference
from ansor.measure.result import ErrorKind
from ansor.measure.timing import time_program, time_round
from ansor.program.program import Program

Lowering = Callable[[tirx.PrimFunc, Program], tirx.PrimFunc]


class StageError(AnsorError):
    """Something failed at a known stage."""

    def __init__(self, kind: ErrorKind, cause: Exception) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.kind = kind


@contextmanager
def stage(kind: ErrorKind) -> Iterator[None]:
    """Gives every exception inside the block a kind."""
    try:
        yield
    except Exception as error:
        raise StageError(kind, error) from error


@dataclass
class WorkerTask:
    """A task as the worker holds it; inputs and reference are made at first use and kept."""

    func: tirx.PrimFunc
    target: str
    config: MeasureConfig

    @cached_property
    def device(self) -> Any:
        """Where kernels run."""
        return tvm.runtime.Device(tvm.target.Target(self.target).get_target_device_type(), 0)

    @cached_property
    def arguments(self) -> list[Any]:
        """Arguments for timing; kernels overwrite the outputs."""
        return on_device(random_arrays(self.func, self.config, low=-1.0), self.device)

    @cached_property
    def reference(self) -> tuple[list[Any], list[Any]]:
        """Arguments for checking, and what the definition as written makes of them."""
        module = build(self.func, self.target, exact=True)
        for low in (-1.0, 0.0):  # a root or a logarithm of a negative number compares nothing
            arrays = random_arrays(self.func, self.config, low)
            results = self.run(module, arrays)
            if not any(np.isnan(r.astype(np.float64)).any() for r in results):
                break
        return arrays, results

    def run(self, module: Any, arrays: list[Any]) -> list[Any]:
        """Every argument after one run, as NumPy arrays."""
        tensors = on_device(arrays, self.device)
        module[ENTRY](*tensors)
        return [tensor.numpy() for tensor in tensors]


@dataclass
class Runner:
    """Answers the requests of `ansor.measure.protocol`, one method each."""

    config: MeasureConfig
    lowering: Lowering
    tasks: dict[str, WorkerTask] = field(default_factory=dict)
    slots: dict[int, tuple[WorkerTask, Any]] = field(default_factory=dict)

    def define(self, key: str, func_json: str, target: str) -> None:
        """Keeps a task."""
        self.tasks[key] = WorkerTask(tvm.ir.load_json(func_json), target, self.config)

    def build(self, key: str, slot: int, program: Program) -> None:
        """Lowers and compiles a program and keeps it."""
        self.slots[slot] = (self.tasks[key], self._compiled(self.tasks[key], program))

    def time(self, slot: int, limit_s: float | None) -> tuple[float, ...]:
        """Times a kept program and drops it."""
        task, module = self.slots.pop(slot)
        with stage(ErrorKind.RUN):
            return time_program(module, task.device, task.arguments, limit_s, self.config)

    def compare(self, slots: tuple[int, ...], rounds: int) -> list[tuple[float, ...]]:
        """Times kept programs in turns and drops them."""
        kept = [self.slots.pop(slot) for slot in slots]
        with stage(ErrorKind.RUN):
            times = [
                [time_round(module, task.device, task.arguments, self.config)
                 for task, module in kept]
                for _ in range(rounds)
            ]  # fmt: skip
        return list(zip(*times, strict=True))

    def verify(self, key: str, program: Program) -> float:
        """Difference between the program and the reference, relative to the largest value."""
        task = self.tasks[key]
        module = self._compiled(task, program)
        with stage(ErrorKind.RUN):
            arrays, expected = task.reference
            return relative_difference(task.run(module, arrays), expected)

    def _compiled(self, task: WorkerTask, program: Program) -> Any:
        with stage(ErrorKind.LOWER):
            func = self.lowering(task.func, program)
        with stage(ErrorKind.BUILD):
            return build(func, task.target)
