"""A model split into tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import tvm

from ansor.dag.from_tir.read import read_dag
from ansor.errors import UnsupportedError
from ansor.frontend.calling import Calling
from ansor.frontend.distinct_functions import ExtractedFunction, extract_functions
from ansor.frontend.importers.importer import import_model
from ansor.frontend.importers.sizes import Sizes
from ansor.frontend.importers.source import Array, ImportedModel, SourceModel
from ansor.frontend.operator import import_operator, is_operator
from ansor.frontend.variants import KINDS, Variant, operator_variants, optimize_with_variants
from ansor.report.precision_table import PrecisionRow
from ansor.run.check.network import uncompilable
from ansor.targets.registry import backend_of
from ansor.task import Converted, Original, Task
from ansor.templates.template import TemplateCall


@dataclass(frozen=True, eq=False)
class Network:
    """A network ready to be tuned.

    Attributes:
        mod: the fused module.
        tasks: one for each distinct function that can be scheduled, and for each variant of one.
        variants: by name of their task.
        unscheduled: function to the reason why it cannot be scheduled.
        calling: how users call it; None for tensors in a row.
        state: initial values of tensors that it keeps between calls.
        source: the model in its framework, if there is one.
        precision: precisions of its functions; empty for the precision of the model.
        short: numbers of the calls that multiply short floats.
    """

    mod: tvm.IRModule
    tasks: tuple[Task, ...]
    variants: dict[str, Variant] = field(default_factory=dict)
    unscheduled: dict[str, str] = field(default_factory=dict)
    calling: Calling | None = None
    state: tuple[Array, ...] = ()
    source: SourceModel | None = None
    precision: tuple[PrecisionRow, ...] = ()
    short: frozenset[int] = frozenset()


def prepare_network(
    model: object,
    target: tvm.target.Target,
    target_key: str,
    example_inputs: object = None,
    kinds: Collection[str] = tuple(KINDS),
    sizes: Sizes | None = None,
) -> Network:
    """Imports and optimises a model and splits it into tasks.

    Args:
        model: anything that `auto_schedule` takes.
        target: decides on layouts.
        target_key: canonical text of the target, under which records are kept.
        example_inputs: as for `auto_schedule`.
        kinds: of variants that may be used.
        sizes: of dynamic dimensions.

    Raises:
        UnsupportedError: an operator that cannot be scheduled; inside a network it is noted.
    """
    variants: tuple[Variant, ...] = ()
    imported: ImportedModel | None = None
    if isinstance(model, TemplateCall):
        plain = prepare_network(model.definition, target, target_key, kinds=())
        (task,) = plain.tasks
        return replace(plain, tasks=(replace(task, by_hand=model.schedule),))
    if is_operator(model):
        mod = import_operator(model)
        if backend_of(target).network.filtering:
            variants = operator_variants(mod, kinds)
    else:
        imported = import_model(model, example_inputs, sizes)
        mod, variants = _optimized(imported, target, kinds)
    network = split_network(mod, variants, target_key)
    if imported is None:
        if network.unscheduled:
            raise UnsupportedError(
                next(iter(network.unscheduled.values())),
                "give a definition whose loops can be scheduled",
            )
        return network
    return replace(network, calling=imported.calling, state=imported.state, source=imported.source)


def split_network(mod: tvm.IRModule, variants: Sequence[Variant], target_key: str) -> Network:
    """The tasks of an optimised module.

    Args:
        mod: calls the functions.
        variants: of its functions.
        target_key: canonical text of the target.
    """
    functions = extract_functions(mod)
    in_network = sum(function.weight for function in functions) > 1
    tasks, unscheduled = [], {}
    for function in functions:
        try:
            tasks.append(_task(function, target_key, in_network))
        except UnsupportedError as error:
            unscheduled[function.name] = error.problem
    plain = {function.name: function for function in functions}
    for variant in variants:
        original = _original(variant, plain[variant.replaces])
        tasks.append(_task(variant.function, target_key, in_network, original))
    return Network(mod, tuple(tasks), {v.function.name: v for v in variants}, unscheduled)


def _optimized(
    imported: ImportedModel, target: tvm.target.Target, kinds: Collection[str]
) -> tuple[tvm.IRModule, tuple[Variant, ...]]:
    """The network's functions, and their variants.

    Raises:
        UnsupportedError: an operator that TVM cannot compile, with its layer if it is known.
    """
    try:
        return optimize_with_variants(imported.mod, target, kinds)
    except Exception as error:  # TVM's passes raise errors of many unrelated kinds
        fault = uncompilable(imported.source, target) if imported.source else None
        if fault is None and isinstance(error, UnsupportedError):
            raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        what = str(fault) if fault else f"TVM cannot compile the network: {reason}"
        raise UnsupportedError(what, "export the model without the operator") from error


def _original(variant: Variant, replaced: ExtractedFunction) -> Original:
    weight, converted = variant.weight, None
    if weight is not None:
        converted = Converted(weight.position, weight.of)
    return Original(replaced.name, variant.kind, replaced.func, converted)


def _task(
    function: ExtractedFunction, target_key: str, in_network: bool, original: Original | None = None
) -> Task:
    dag = read_dag(function.func, function.constants)
    return Task(
        function.name, function.func, dag, target_key, function.weight, in_network, original
    )


def merged(networks: Mapping[str, Network]) -> tuple[list[Task], npt.NDArray[np.int64]]:
    """The tasks of several networks, each definition once, under names that include the network.

    Returns:
        the tasks, and the number of calls of each task (columns) in each network (rows).
    """
    if len(networks) == 1:
        (network,) = networks.values()
        return list(network.tasks), np.array([[task.weight for task in network.tasks]])
    found: dict[str, Task] = {}
    calls: dict[str, dict[str, int]] = {}
    for name, network in networks.items():
        first: dict[str, str] = {}  # by name here: name in the network of first use
        for task in network.tasks:
            known = found.setdefault(task.key, _named(task, name, first))
            if task.original is None:
                first[task.name] = known.name
            calls.setdefault(task.key, {})[name] = task.weight
            weight = sum(calls[task.key].values())
            found[task.key] = replace(known, weight=weight)
    table = [[calls[key].get(name, 0) for key in found] for name in networks]
    return list(found.values()), np.array(table)


def _named(task: Task, network: str, first: Mapping[str, str]) -> Task:
    original = task.original
    if original is not None:
        own = f"{network}/{original.name}"
        original = replace(original, name=first.get(original.name, own))
    return replace(task, name=f"{network}/{task.name}", original=original)
