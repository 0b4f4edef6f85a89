"""`auto_schedule`: a model in, a faster compiled network out. The wiring of all boxes."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

from ansor.callbacks import Callback
from ansor.config import FULL, TuneConfig
from ansor.database.database import Database
from ansor.errors import ArgumentError
from ansor.executor import Executor, in_turns
from ansor.frontend.importers.sizes import Sizes
from ansor.frontend.plan import call_plan
from ansor.hardware.detect import detect_machine
from ansor.hardware.gpu import Gpu, Machine
from ansor.hardware.target import Target, check_runs_here, resolve_target, target_text
from ansor.hardware.threads import start_threads
from ansor.measure.device import Device
from ansor.measure.local_device import LocalDevice
from ansor.policy.base import PolicyFactory
from ansor.policy.policy import SearchPolicy
from ansor.run.arguments import (
    check_budget,
    check_models,
    check_objective,
    check_seed,
    check_threads,
    check_variants,
    opened,
)
from ansor.run.check.network import SourceComparison
from ansor.run.finish import Finisher
from ansor.run.garbage_collection import frozen_heap
from ansor.run.prepare import Network, merged, prepare
from ansor.run.tuned import TunedModel
from ansor.run.tuner import Budget, Tuner
from ansor.run.winners import Winner, choose_winners, finish_seconds, num_leaders
from ansor.sketch.rule import Rule
from ansor.sketch.tensor_rules import left_to_plain_cores
from ansor.task import Task
from ansor.task_scheduler.objective import Objective, total_latency


def auto_schedule(
    model: object,
    target: str | Target = "native",
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
    objective: Objective = total_latency,
    shapes: Mapping[str, Sequence[int]] = MappingProxyType({}),
    dims: Mapping[str, int] = MappingProxyType({}),
    check_import: bool = True,
    policy: PolicyFactory = SearchPolicy,
    device: Device | None = None,
) -> TunedModel:
    """Tunes a network or an operator and compiles it with the best programs found.

    Args:
        model: a `torch.nn.Module` or `ExportedProgram`, an ONNX model (`onnx.ModelProto`, its
            bytes, or the path of a .onnx file), a Relax `IRModule`, TE tensors (a list, inputs
            first), a TensorIR `PrimFunc`, or the name of a built-in network.
        target: "native" (this machine), "llvm -mcpu=...", "cuda", or a TVM target; on "cuda -tf32"
            products in float32 may be rounded for tensor cores.
        example_inputs: arguments of a `torch.nn.Module`: one tensor, a sequence of arguments, or a
            mapping of their names, nested as the module takes them. For an ONNX model, arrays
            that fix its dynamic dimensions.
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
        allow: the only kinds of variants that may stand for a function, of "winograd2", "winograd3"
            and "winograd4", which round a little more; all of them by default.
        forbid: kinds of variants that may not.
        objective: what is to become small: `total_latency`, a `LatencyRequirement`, below which the
            search ends, or any function of an array with the network's latency in seconds.
        shapes: of inputs, by name, which fix the dynamic dimensions of an ONNX model or an
            exported program.
        dims: sizes of dynamic dimensions, by their symbol.
        check_import: whether the import is compared with the original model in PyTorch or ONNX
            Runtime before the search, and the tuned network after it.
        policy: makes the search of a task; a subclass of `ansor.policy.base.Policy`, by default
            Ansor's search.
        device: builds, times and checks programs, and is closed at the end; by default worker
            processes of this machine.

    Returns:
        the compiled network. An interrupt (Ctrl-C) ends the search, and the best so far is used.

    Raises:
        ArgumentError: an argument is wrong; nothing has been done yet.
        UnsupportedError: the model uses what cannot be imported, or its import computes something
            else than the original; the operator and its layer are named.
        ResultError: the tuned network computes something else than the original.
        DatabaseError: the database cannot be used.
        MeasureError: no measurement worker can be started.
    """
    return auto_schedule_many(
        {"model": model},
        target,
        example_inputs={"model": example_inputs},
        minutes=minutes,
        trials=trials,
        seed=seed,
        database=database,
        callbacks=callbacks,
        threads=threads,
        config=config,
        rules=rules,
        allow=allow,
        forbid=forbid,
        objective=objective,
        sizes={"model": Sizes(shapes, dims)},
        check_import=check_import,
        policy=policy,
        device=device,
    )["model"]


def auto_schedule_many(
    models: Mapping[str, object],
    target: str | Target = "native",
    *,
    example_inputs: Mapping[str, object] = MappingProxyType({}),
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
    objective: Objective = total_latency,
    sizes: Mapping[str, Sizes] = MappingProxyType({}),
    check_import: bool = True,
    policy: PolicyFactory = SearchPolicy,
    device: Device | None = None,
) -> dict[str, TunedModel]:
    """Tunes several networks at once: functions that they share are searched once, and the time
    goes where the objective gains most.

    Args:
        models: by name; each is anything that `auto_schedule` takes.
        example_inputs: by the name of the model that needs some.
        objective: as for `auto_schedule`; it is given the latencies in the order of `models`.
        sizes: of dynamic dimensions, by the name of the model.

    Other arguments, what is returned for each name, and errors are those of `auto_schedule`.
    """
    began = time.monotonic()
    check_budget(minutes, trials)
    check_seed(seed)
    check_threads(threads)
    check_models(models, example_inputs)
    check_objective(objective, len(models))
    kinds = check_variants(allow, forbid)
    resolved = resolve_target(target)
    check_runs_here(resolved)
    cores = start_threads(threads)  # now: what TVM refuses must not be found out after the search
    text = target_text(resolved, cores)
    with (
        frozen_heap(),
        opened(database) as records,
        _measuring(device, text, cores, config) as (measuring, executor),
    ):
        measuring.start(1)  # in the background, where it takes as long as to import a model
        networks: dict[str, Network] = {}
        checks: dict[str, SourceComparison] = {}
        for name, model in models.items():
            _stage(callbacks, f"importing {name}")
            network = prepare(
                model, resolved, text, example_inputs.get(name), kinds, sizes.get(name)
            )
            networks[name] = network
            if check_import and network.source is not None:
                _stage(callbacks, f"comparing the import of {name} with the original")
                checks[name] = SourceComparison(network.source, resolved)
                checks[name].check_import(network.mod)
        tasks, calls = merged(networks)
        if minutes is None and trials is None:
            _check_records(records, tasks, text)
        functions = sum(len({task.group for task in n.tasks}) for n in networks.values())
        leaders = num_leaders(minutes, functions, config)
        finish_s = finish_seconds(leaders, functions, config, len(networks))
        hardware = detect_machine(resolved, cores)
        budget = Budget(trials, _search_seconds(minutes, began, finish_s, config))
        for remark in _remarks(tasks, hardware):
            _stage(callbacks, remark)
        fresh = {task.group for task in tasks if not records.count(task.key, text)}
        measuring.start(len(fresh) if budget.is_empty else None)
        tuner = Tuner(
            tasks,
            hardware,
            measuring,
            records,
            config,
            seed,
            callbacks,
            rules,
            calls,
            objective,
            policy=policy,
            executor=executor,
        )
        finish = tuner.run(budget)
        _stage(callbacks, "checking the winners")
        count = 1 if budget.is_empty or finish.reason == "interrupted" else leaders
        with ThreadPoolExecutor(max_workers=1) as background:
            finishers = {n: Finisher(own, resolved, background) for n, own in networks.items()}
            winners = {
                name: _winners(network, tuner, measuring, records, count, finishers[name])
                for name, network in networks.items()
            }
            measuring.close()  # workers leave the cores to what is still to be compiled
            _stage(callbacks, "compiling")
            tuned = {
                name: finisher.tuned(winners[name], finish, seed, cores)
                for name, finisher in finishers.items()
            }
            return {name: _compared(model, checks.get(name)) for name, model in tuned.items()}


@contextmanager
def _measuring(
    device: Device | None, target: str, threads: int, config: TuneConfig
) -> Iterator[tuple[Device, Executor]]:
    """The device that measures, and what spreads the search over the cores of this machine."""
    if device is not None:
        with device:
            yield device, in_turns
        return
    with LocalDevice(target, threads, config.measure) as local:
        yield local, local.share


def _compared(tuned: TunedModel, comparison: SourceComparison | None) -> TunedModel:
    """The network with how it compares with the original model."""
    if comparison is None:
        return tuned
    comparison.check_tuned(tuned.compiled)
    return replace(tuned, checks=tuple(comparison.checks))


def _winners(
    network: Network,
    tuner: Tuner,
    device: Device,
    records: Database,
    leaders: int,
    finisher: Finisher,
) -> dict[str, Winner]:
    """What the functions of one of the networks end with."""
    functions, plan = tuner.functions(network.tasks), call_plan(network.mod)
    config = tuner.config.measure
    return choose_winners(functions, plan, device, records, config, leaders, finisher.begin)


def _search_seconds(
    minutes: float | None, began: float, finish_s: float, config: TuneConfig
) -> float | None:
    """What is left of the time for the search itself, after what is done and what comes last."""
    if minutes is None:
        return None
    left = minutes * 60 - (time.monotonic() - began) - finish_s
    return max(left, config.least_search_s)


def _remarks(tasks: Sequence[Task], machine: Machine) -> list[str]:
    """What users should know of how their model is run, each thing once."""
    if not isinstance(machine, Gpu):
        return []
    return list(dict.fromkeys(t for task in tasks for t in left_to_plain_cores(task.dag, machine)))


def _stage(callbacks: Sequence[Callback], text: str) -> None:
    for callback in callbacks:
        callback.on_stage(text)


def _check_records(records: Database, tasks: Sequence[Task], target: str) -> None:
    """Without a budget, records of another target only are a mistake worth stopping for."""
    if records.count(target=target):
        return
    keys = [task.key for task in tasks]
    others = sorted({other for key in keys for other in records.targets(key)})
    if others:
        remedy = (
            f"it has records for {', '.join(others)}, none for {target}; give minutes or trials"
        )
        raise ArgumentError("database", "no records for this target", remedy)
