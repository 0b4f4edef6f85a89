"""The tasks of a worker: their scheduled functions and their references."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import tirx

from ansor.config import MeasureConfig
from ansor.dag.from_tir.read import buffer_names
from ansor.lowering.lower import lower
from ansor.measure.child.worker_task import WorkerTask, run
from ansor.measure.function_arguments import arguments_for
from ansor.measure.pickled_schedule import unpickled
from ansor.measure.protocol import Define
from ansor.program.layout import packed_arrays
from ansor.program.program import Program
from ansor.targets.backend import Backend


@dataclass
class TaskTable:
    """The tasks of a worker by their keys.

    Attributes:
        config: how programs are measured.
        backend: of the kind of target.
        tasks: by key.
        uses: number of uses of all tasks so far.
    """

    config: MeasureConfig
    backend: Backend[Any]
    tasks: dict[str, WorkerTask] = field(default_factory=dict)
    uses: int = 0

    def add(self, task: Define) -> None:
        """Keeps a task."""
        func = tvm.ir.load_json(task.func_json)
        by_hand = None if task.by_hand is None else unpickled(task.by_hand)
        self.tasks[task.key] = WorkerTask(
            func,
            task.target,
            self.config,
            task.constants,
            task.in_network,
            task.original,
            by_hand=by_hand,
        )

    def lowered(self, task: WorkerTask, program: Program) -> tirx.PrimFunc:
        """The scheduled function of a program."""
        if task.by_hand is None:
            return self.backend.lower(task.func, program)
        return lower(task.func, program, task.by_hand)

    def difference(self, task: WorkerTask, program: Program, module: Any, device: Any) -> float:
        """Difference between the results of a module on a device and the reference, relative to
        the largest value."""
        arrays, _ = task.reference
        names = list(buffer_names(task.func).values())
        packed = packed_arrays(program, dict(zip(names, arrays, strict=False)))
        given = list(packed.values())
        params, written = task.func.params, task.written
        actual = run(module, arguments_for(params, given, device, written, task.rows))
        same_layout = [i for i, a in enumerate(packed.values()) if a.shape == arrays[i].shape]
        return task.difference(actual, same_layout)

    def make_room(self, task: WorkerTask) -> None:
        """Frees arrays of other tasks, least recently used first, while they exceed the limit."""
        self.uses += 1
        task.last_use = self.uses
        held = sum(other.held_bytes for other in self.tasks.values())
        for other in sorted(self.tasks.values(), key=lambda other: other.last_use):
            if other is not task and held > self.config.kept_bytes:
                held -= other.held_bytes
                other.forget()
