"""`auto_schedule`: a model in, a faster compiled network out. The wiring of all boxes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ansor.callbacks import Callback
from ansor.config import TuneConfig
from ansor.database.database import Database
from ansor.errors import ArgumentError
from ansor.executor import Executor, in_turns
from ansor.frontend.call_planning import call_plan
from ansor.frontend.importers.sizes import Sizes
from ansor.measure.device import Device
from ansor.measure.local_device import LocalDevice
from ansor.run.arguments import check_models, opened
from ansor.run.check.network import SourceComparison
from ansor.run.finish import Finisher
from ansor.run.garbage_collection import frozen_heap
from ansor.run.prepare import Network, merged, prepare_network
from ansor.run.settings import Settings, takes_settings
from ansor.run.tuned import TunedModel
from ansor.run.tuner import Budget, Tuner
from ansor.run.winners import Winner, choose_winners, finish_seconds, num_leaders
from ansor.targets.backend import Backend
from ansor.targets.host.threads import start_threads
from ansor.targets.machine import M
from ansor.targets.registry import backend_of
from ansor.targets.target import Target, check_runs_here, resolve_target, target_text
from ansor.task import Task


@takes_settings
def auto_schedule(
    model: object,
    target: str | Target = "native",
    *,
    example_inputs: object = None,
    shapes: Mapping[str, Sequence[int]] = MappingProxyType({}),
    dims: Mapping[str, int] = MappingProxyType({}),
    **settings: Any,
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
        shapes: of inputs, by name, which fix the dynamic dimensions of an ONNX model or an
            exported program.
        dims: sizes of dynamic dimensions, by their symbol.
        settings: budget and kind of the search, see `ansor.run.settings.Settings`: `minutes`,
            `trials`, `seed`, `database`, `threads` and more.

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
        sizes={"model": Sizes(shapes, dims)},
        **settings,
    )["model"]


@takes_settings
def auto_schedule_many(
    models: Mapping[str, object],
    target: str | Target = "native",
    *,
    example_inputs: Mapping[str, object] = MappingProxyType({}),
    sizes: Mapping[str, Sizes] = MappingProxyType({}),
    **settings: Any,
) -> dict[str, TunedModel]:
    """Tunes several networks at once: functions that they share are searched once, and the time
    goes where the objective gains most.

    Args:
        models: by name; each is anything that `auto_schedule` takes.
        example_inputs: by the name of the model that needs some.
        sizes: of dynamic dimensions, by the name of the model.
        settings: as for `auto_schedule`; the objective gets the latencies in the order of `models`.

    Other arguments, what is returned for each name, and errors are those of `auto_schedule`.
    """
    began = time.monotonic()
    check_models(models, example_inputs)
    given = Settings.of(settings, len(models))
    resolved = resolve_target(target)
    check_runs_here(resolved)
    cores = start_threads(given.threads)  # first: what TVM refuses must not show after the search
    text = target_text(resolved, cores)
    with (
        frozen_heap(),
        opened(given.database) as records,
        _measuring(given.device, text, cores, given.config) as (device, executor),
    ):
        device.start(1)  # in the background, where it takes as long as to import a model
        networks, checks = _imported(models, example_inputs, sizes, resolved, text, given)
        tasks, calls = merged(networks)
        if given.minutes is None and given.trials is None:
            _check_records(records, tasks, text)
        leaders, finish_s = _final_checks(networks, given)
        backend = backend_of(resolved)
        machine = backend.machine.detect(resolved, cores)
        seconds = _search_seconds(given.minutes, began, finish_s, given.config)
        budget = Budget(given.trials, seconds)
        for remark in _remarks(tasks, backend, machine):
            _stage(given.callbacks, remark)
        fresh = {task.group for task in tasks if not records.count(task.key, text)}
        device.start(len(fresh) if budget.is_empty else None)
        tuner = Tuner(
            tasks,
            machine,
            backend.search,
            device,
            records,
            given.config,
            given.seed,
            given.callbacks,
            given.rules,
            calls,
            given.objective,
            policy=given.policy,
            executor=executor,
        )
        finish = tuner.run(budget)
        _stage(given.callbacks, "checking the winners")
        count = 1 if budget.is_empty or finish.reason == "interrupted" else leaders
        with ThreadPoolExecutor(max_workers=1) as background:
            finishers = {n: Finisher(own, resolved, background) for n, own in networks.items()}
            winners = {
                name: _winners(network, tuner, device, records, count, finishers[name])
                for name, network in networks.items()
            }
            device.close()  # workers leave the cores to what is still to be compiled
            _stage(given.callbacks, "compiling")
            tuned = {
                name: finisher.tuned(winners[name], finish, given.seed, cores)
                for name, finisher in finishers.items()
            }
            return {name: _compared(model, checks.get(name)) for name, model in tuned.items()}


def _imported(
    models: Mapping[str, object],
    example_inputs: Mapping[str, object],
    sizes: Mapping[str, Sizes],
    target: Target,
    text: str,
    settings: Settings,
) -> tuple[dict[str, Network], dict[str, SourceComparison]]:
    """The networks, and how those with an original compare with it."""
    networks: dict[str, Network] = {}
    checks: dict[str, SourceComparison] = {}
    for name, model in models.items():
        _stage(settings.callbacks, f"importing {name}")
        examples, kinds = example_inputs.get(name), settings.variants
        network = prepare_network(model, target, text, examples, kinds, sizes.get(name))
        networks[name] = network
        if settings.check_import and network.source is not None:
            _stage(settings.callbacks, f"comparing the import of {name} with the original")
            checks[name] = SourceComparison(network.source, target)
            checks[name].check_import(network.mod)
    return networks, checks


def _final_checks(networks: Mapping[str, Network], settings: Settings) -> tuple[int, float]:
    """How many programs of a function are timed at the end, and the seconds for it."""
    functions = sum(len({task.group for task in n.tasks}) for n in networks.values())
    leaders = num_leaders(settings.minutes, functions, settings.config)
    return leaders, finish_seconds(leaders, functions, settings.config, len(networks))


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


def _remarks(tasks: Sequence[Task], backend: Backend[M], machine: M) -> list[str]:
    """What users should know of how their model is run, each thing once."""
    remarks = backend.search.remarks
    return list(dict.fromkeys(text for task in tasks for text in remarks(task.dag, machine)))


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
