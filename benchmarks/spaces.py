"""An operator as a task, and its search space, as the tuner makes them."""

from __future__ import annotations

from ansor.annotate.complete import complete
from ansor.config import TuneConfig
from ansor.program.sketch import Sketch
from ansor.run.prepare import prepare_network
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.targets.cpu.machine import Hardware
from ansor.targets.target import resolve_target, target_text
from ansor.task import Task
from benchmarks.operator_case import workload_of


def task_of(op: str, threads: int, dtype: str = "float32") -> Task:
    """The task of one operator on this machine.

    Raises:
        ArgumentError: no such operator or size, or the operator lacks the dtype.
    """
    target = resolve_target("native")
    tensors = list(workload_of(op, dtype=dtype).tensors)
    return prepare_network(tensors, target, target_text(target, threads)).tasks[0]


def sketches_of(task: Task, hardware: Hardware, config: TuneConfig) -> list[Sketch]:
    """All its sketches, complete."""
    states = generate(task.dag, hardware, CPU_RULES, config.sketch)
    return [complete(state, hardware, config.sketch) for state in states]
