"""`auto_schedule`: a model in, a faster compiled network out. The wiring of all boxes."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from typing import Any

import tvm

from ansor.arguments import (
    check_budget,
    check_model,
    check_seed,
    check_threads,
    check_variants,
    opened,
)
from ansor.callbacks import Callback, Finish
from ansor.config import FULL, TuneConfig
from ansor.database.database import Database
from ansor.errors import ArgumentError
from ansor.frontend.apply import apply_programs
from ansor.frontend.plan import call_plan
from ansor.frontend.runtime import compile_model
from ansor.frontend.variants import with_variants
from ansor.hardware.detect import detect
from ansor.hardware.target import resolve_target, target_text
from ansor.measure.build import pass_context
from ansor.measure.local import LocalDevice
from ansor.prepare import Network, prepare
from ansor.program.layout import packings
from ansor.program.lower import lower
from ansor.program.program import Program
from ansor.sketch.rules import Rule
from ansor.tuned import TaskResult, TunedModel
from ansor.tuner import Budget, Tuner
from ansor.winners import Winner, choose_winners, finish_seconds, num_leaders


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
    allow: Collection[str] | None = None,
    forbid: Collection[str] = (),
) -> TunedModel:
    """Tunes a network or an operator and compiles it with the best programs found.

    Args:
        model: a `torch.nn.Module` or `ExportedProgram`, an ONNX model (`onnx.ModelProto`, its
            bytes, or the path of a .onnx file), a Relax `IRModule`, TE tensors (a list, inputs
            first), a TensorIR `PrimFunc`, or the name of a built-in network.
        target: "native" (this machine), "llvm -mcpu=...", or a TVM target.
        example_inputs: tensors that fix the input shapes of a `torch.nn.Module`, and the dynamic
            dimensions of an ONNX model.
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
        allow: the only kinds of variants that may stand for a function, of "winograd2" and
            "winograd4", which round a little more; all of them by default.
        forbid: kinds of variants that may not.

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
    kinds = check_variants(allow, forbid)
    resolved = resolve_target(target)
    text = target_text(resolved, cores)
    with opened(database) as records:
        _stage(callbacks, "importing the model")
        network = prepare(model, resolved, text, example_inputs, kinds)
        functions = len({task.group for task in network.tasks})
        leaders = num_leaders(minutes, functions, config)
        finish_s = finish_seconds(leaders, functions, config)
        budget = Budget(trials, _search_seconds(minutes, began, finish_s, config))
        _check_records(records, network, text, budget)
        hardware = detect(resolved, cores)
        with LocalDevice(text, cores, config.measure) as device:
            tuner = Tuner(network.tasks, hardware, device, records, config, seed, callbacks, rules)
            finish = tuner.run(budget)
            _stage(callbacks, "checking the winners")
            count = 1 if budget.is_empty or finish.reason == "interrupted" else leaders
            plan = call_plan(network.mod)
            winners = choose_winners(tuner.functions, plan, device, records, config.measure, count)
    _stage(callbacks, "compiling")
    return _finished(network, resolved, winners, finish, seed, threads)


def _finished(
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
    with pass_context():
        applied = apply_programs(with_variants(network.mod, chosen), scheduled, widths)
        compiled = compile_model(applied, target, threads)
    tasks = [_result(name, winner, finish) for name, winner in winners.items()]
    tasks += [
        TaskResult(name, 1, 0, None, 0, Program().sketch, None, note=f"runs unscheduled: {reason}")
        for name, reason in network.unscheduled.items()
    ]
    return TunedModel(compiled, tuple(tasks), finish, seed, network.mod)


def _result(name: str, winner: Winner, finish: Finish) -> TaskResult:
    """How a function of the network ended."""
    trials = [status.trials for status in finish.tasks if status.group == name]
    task = winner.task
    return TaskResult(
        name=name,
        weight=task.weight,
        flops=task.dag.flops,
        latency_s=winner.latency_s,
        trials=sum(trials),
        sketch=winner.program.sketch,
        difference=winner.difference,
        variant=task.kind,
        note=winner.note,
    )


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


def _check_records(records: Database, network: Network, target: str, budget: Budget) -> None:
    """Without a budget, records of another target only are a mistake worth stopping for."""
    if not budget.is_empty or budget.trials == 0 or records.count(target=target):
        return
    keys = [task.key for task in network.tasks]
    others = sorted({other for key in keys for other in records.targets(key)})
    if others:
        remedy = (
            f"it has records for {', '.join(others)}, none for {target}; give minutes or trials"
        )
        raise ArgumentError("database", "no records for this target", remedy)
