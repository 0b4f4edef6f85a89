"""`auto_schedule`: a model in, a faster compiled network out. The wiring of all boxes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm

from ansor.arguments import check_budget, check_model, check_seed, check_threads, opened
from ansor.callbacks import Callback, Finish
from ansor.config import FULL, TuneConfig
from ansor.dag.from_tir import read_dag
from ansor.database.database import Database
from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend.apply import apply_programs
from ansor.frontend.extract import extract_functions
from ansor.frontend.graph import optimize
from ansor.frontend.importer import import_model
from ansor.frontend.operator import import_operator, is_operator
from ansor.frontend.runtime import compile_model
from ansor.hardware.detect import detect
from ansor.hardware.target import resolve_target, target_text
from ansor.measure.build import pass_context
from ansor.measure.local import LocalDevice
from ansor.program.layout import packings
from ansor.program.lower import lower
from ansor.program.program import Program
from ansor.sketch.rules import Rule
from ansor.task import Task
from ansor.tuned import TaskResult, TunedModel
from ansor.tuner import Budget, Tuner
from ansor.winners import Winner, choose_winner, finish_seconds, num_leaders


@dataclass(frozen=True, eq=False)
class Workload:
    """A network ready to be tuned: the fused module, its tasks, and what cannot be scheduled."""

    mod: tvm.IRModule
    tasks: tuple[Task, ...]
    unscheduled: dict[str, str] = field(default_factory=dict)  # function to reason


def auto_schedule(
    model: object,
    target: str | tvm.target.Target = "native",
    *,
    example_inputs: object = None,
    minutes: float | None = None,
    trials: int | None = None,
    seed: int = 0,
    database: str | os.PathLike[str] | Database | None = None,
    callbacks: Sequence[Callback] = (),
    threads: int | None = None,
    config: TuneConfig = FULL,
    rules: Sequence[Rule] = (),
) -> TunedModel:
    """Tunes a network or an operator and compiles it with the best programs found.

    Args:
        model: a `torch.nn.Module` or `ExportedProgram`, a Relax `IRModule`, TE tensors (a list,
            inputs first), a TensorIR `PrimFunc`, or the name of a built-in network.
        target: "native" (this machine), "llvm -mcpu=...", or a TVM target.
        example_inputs: tensors that fix the input shapes of a `torch.nn.Module`.
        minutes: time for everything, from the call to the result.
        trials: programs to measure, over all tasks. Without `minutes` and `trials`, or with
            ``trials=0``, nothing is measured: each task takes the best program that `database`
            knows, or else the one that the draft model prefers.
        seed: of all randomness.
        database: file of records, read and extended; None keeps them in memory.
        callbacks: told of progress.
        threads: that programs run on; all cores by default.
        config: settings of the search.
        rules: derivation rules tried before the built-in ones.

    Returns:
        the compiled network. An interrupt (Ctrl-C) ends the search, and the best so far is used.

    Raises:
        ArgumentError: an argument is wrong; nothing has been done yet.
        UnsupportedError: the model uses what cannot be scheduled; it is named.
        DatabaseError: the database cannot be used.
        MeasureError: no measurement worker can be started.
    """
    began = time.monotonic()
    check_budget(minutes, trials)
    check_seed(seed)
    cores = check_threads(threads)
    check_model(model)
    resolved = resolve_target(target)
    text = target_text(resolved, cores)
    with opened(database) as records:
        _stage(callbacks, "importing the model")
        workload = prepare(model, resolved, text, example_inputs)
        leaders = num_leaders(minutes, len(workload.tasks), config)
        finish_s = finish_seconds(leaders, len(workload.tasks), config)
        budget = Budget(trials, _search_seconds(minutes, began, finish_s, config))
        _check_records(records, workload, text, budget)
        hardware = detect(resolved, cores)
        with LocalDevice(text, cores, config.measure) as device:
            tuner = Tuner(workload.tasks, hardware, device, records, config, seed, callbacks, rules)
            finish = tuner.run(budget)
            _stage(callbacks, "checking the winners")
            count = 1 if budget.is_empty or finish.reason == "interrupted" else leaders
            winners = {
                search.task.name: choose_winner(search, device, records, config.measure, count)
                for search in tuner.searches
            }
    _stage(callbacks, "compiling")
    return _finished(workload, resolved, winners, finish, seed, threads)


def prepare(
    model: object, target: tvm.target.Target, target_key: str, example_inputs: object = None
) -> Workload:
    """Imports and optimises a model and splits it into tasks.

    Args:
        model: anything that `auto_schedule` takes.
        target: decides on layouts.
        target_key: canonical text of the target, under which records are kept.
        example_inputs: as for `auto_schedule`.
    """
    if is_operator(model):
        mod = import_operator(model)
    else:
        mod = optimize(import_model(model, example_inputs).mod, target)
    tasks, unscheduled = [], {}
    functions = extract_functions(mod)
    cold_bytes = sum(function.weight * function.constant_bytes for function in functions)
    for function in functions:
        try:
            dag = read_dag(function.func, function.constants)
        except UnsupportedError as error:
            if is_operator(model):
                raise
            unscheduled[function.name] = str(error)
            continue
        task = Task(function.name, function.func, dag, target_key, function.weight, cold_bytes)
        tasks.append(task)
    return Workload(mod, tuple(tasks), unscheduled)


def _finished(
    workload: Workload,
    target: tvm.target.Target,
    winners: dict[str, Winner],
    finish: Finish,
    seed: int,
    threads: int | None,
) -> TunedModel:
    """Puts the winners in place and compiles."""
    scheduled: dict[str, Any] = {}
    widths: dict[str, dict[int, int]] = {}
    for task in workload.tasks:
        program = winners[task.name].program
        if program.steps:
            scheduled[task.name] = lower(task.func, program)
            names = list(task.dag.buffers)
            widths[task.name] = {names.index(b): w for b, w in packings(program).items()}
    with pass_context():
        applied = apply_programs(workload.mod, scheduled, widths)
        compiled = compile_model(applied, target, threads)
    status = {task.name: task for task in finish.tasks}
    tasks = [
        TaskResult(
            name=task.name,
            weight=task.weight,
            flops=task.dag.flops,
            latency_s=winners[task.name].latency_s,
            trials=status[task.name].trials,
            sketch=winners[task.name].program.sketch,
            difference=winners[task.name].difference,
            note=winners[task.name].note,
        )
        for task in workload.tasks
    ]
    tasks += [
        TaskResult(name, 1, 0, None, 0, Program().sketch, None, f"runs unscheduled: {reason}")
        for name, reason in workload.unscheduled.items()
    ]
    return TunedModel(compiled, tuple(tasks), finish, seed, workload.mod)


def _search_seconds(
    minutes: float | None, began: float, finish_s: float, config: TuneConfig
) -> float | None:
    """What is left of the time for the search itself, after what is done and what comes last."""
    if minutes is None:
        return None
    left = minutes * 60 - (time.monotonic() - began) - finish_s
    return max(left, config.least_search_s)


def _stage(callbacks: Sequence[Callback], text: str) -> None:
    for callback in callbacks:
        callback.on_stage(text)


def _check_records(records: Database, workload: Workload, target: str, budget: Budget) -> None:
    """Without a budget, records of another target only are a mistake worth stopping for."""
    if not budget.is_empty or budget.trials == 0 or records.count(target=target):
        return
    keys = [task.key for task in workload.tasks]
    others = sorted({other for key in keys for other in records.targets(key)})
    if others:
        remedy = (
            f"it has records for {', '.join(others)}, none for {target}; give minutes or trials"
        )
        raise ArgumentError("database", "no records for this target", remedy)
