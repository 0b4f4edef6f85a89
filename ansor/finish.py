"""What comes after the search: winners put in place, the network compiled, the outcome noted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm

from ansor.callbacks import Finish
from ansor.frontend.apply import apply_programs
from ansor.frontend.runtime import compile_model
from ansor.frontend.variants import with_variants
from ansor.measure.build import pass_context
from ansor.prepare import Network
from ansor.program.layout import packings
from ansor.program.lower import lower
from ansor.program.program import Program
from ansor.task import Task
from ansor.tuned import TaskResult, TunedModel
from ansor.winners import Winner


def compile_tuned(
    network: Network,
    target: tvm.target.Target,
    winners: dict[str, Winner],
    finish: Finish,
    seed: int,
    threads: int | None,
) -> TunedModel:
    """Puts the winners in place and compiles."""
    chosen = {
        name: network.variants[winner.task.name]
        for name, winner in winners.items()
        if winner.task.original is not None
    }
    scheduled: dict[str, Any] = {}
    widths: dict[str, dict[int, int]] = {}
    for winner in winners.values():
        task, program = winner.task, winner.program
        if program.steps:
            scheduled[task.name] = lower(task.func, program)
            names = list(task.dag.buffers)
            widths[task.name] = {names.index(b): w for b, w in packings(program).items()}
    with pass_context(target, scheduled.values()):
        applied = apply_programs(with_variants(network.mod, chosen), scheduled, widths)
        compiled = compile_model(applied, target, threads)
    return TunedModel(compiled, _results(network, winners, finish), finish, seed, network.mod)


def _results(
    network: Network, winners: dict[str, Winner], finish: Finish
) -> tuple[TaskResult, ...]:
    """How the functions of the network ended."""
    tuned = [
        _result(winner, [task for task in network.tasks if task.group == name], finish)
        for name, winner in winners.items()
    ]
    unscheduled = [
        TaskResult(name, 1, 0, None, 0, Program().sketch, None, note=f"runs unscheduled: {reason}")
        for name, reason in network.unscheduled.items()
    ]
    return (*tuned, *unscheduled)


def _result(winner: Winner, variants: Sequence[Task], finish: Finish) -> TaskResult:
    keys = {task.key for task in variants}
    task = winner.task
    return TaskResult(
        name=task.group,
        weight=task.weight,
        flops=variants[0].dag.flops,
        latency_s=winner.latency_s,
        trials=sum(status.trials for status in finish.tasks if status.key in keys),
        sketch=winner.program.sketch,
        difference=winner.difference,
        variant=task.kind,
        note=winner.note,
    )
