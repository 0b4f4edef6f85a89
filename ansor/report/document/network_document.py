"""The report of a saved network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansor.frontend.deploy.code_text import assembly_text, source_text
from ansor.frontend.deploy.storage import StorageError, StoredModel
from ansor.report.document.assembly_excerpt import excerpt
from ansor.report.document.curves import (
    failure_counts,
    function_curves,
    network_curve,
    ordered_share,
    predictions,
)
from ansor.report.document.document import Document, FailureCount, FunctionRow, ProgramText
from ansor.report.document.functions import (
    function_rows,
    moved_bytes,
    scheduled_functions,
)
from ansor.report.document.inputs import NetworkInputs, converted
from ansor.report.document.search_data import SearchData
from ansor.results import TaskResult
from ansor.targets.registry import backend_of
from ansor.targets.target import target_text

_COMPARISON = "`ansor demo --model NAME` compares a built-in network with its peers."
_SEARCH = (
    "`ansor tune` and `ansor demo` write search.json beside the network: give the folder, or the "
    "network in it."
)
_OF_SEARCH = ("machine", "network_curve", "function_curves", "predictions", "environment")


def network_document(inputs: NetworkInputs) -> Document:
    """Everything that is known of a tuned network.

    Raises:
        StorageError: the network is damaged, or the data of its search are.
        MissingPackageError: a package is not installed.
    """
    stored, search = inputs.stored, inputs.search
    results = _results(stored)
    functions = scheduled_functions(stored.model.bare())
    names = {each.name: each.name for each in results} | dict(search.compiled if search else {})
    compiled = {name: symbol for name, symbol in names.items() if symbol in functions}
    sizes = {name: moved_bytes(functions[symbol]) for name, symbol in compiled.items()}
    peak_flops = search.machine.peak_flops if search else None
    rows = function_rows(results, peak_flops, sizes)
    own = inputs.comparison.own if inputs.comparison else None
    document = Document(
        title=inputs.title,
        latency_s=own.latency_s if own else None,
        functions_s=sum(row.total_s or 0.0 for row in rows) or None,
        trials=sum(row.trials for row in rows),
        comparison=inputs.comparison,
        functions=rows,
        failures=_noted_failures(results),
        programs=_programs(stored, rows, compiled, search.loops if search else {}),
        checks=tuple(_check_text(check) for check in stored.notes.get("checks", ())),
        environment={"target": target_text(stored.model.target, _threads(stored))},
        absent={} if inputs.comparison else {"comparison": _COMPARISON},
    )
    if search is None:
        absent = dict.fromkeys(_OF_SEARCH, _SEARCH)
        return replace(document, absent={**document.absent, **absent})
    return _with_search(document, search)


def _with_search(document: Document, search: SearchData) -> Document:
    """The document with the measurements of the search.

    Raises:
        StorageError: a trial is of a task that the network does not have.
    """
    trials, functions = search.trials, search.functions
    unknown = {trial.task for trial in trials} - functions.keys()
    if unknown:
        raise StorageError(
            f"search.json has trials of unknown tasks: {', '.join(sorted(unknown))}",
            "tune the model again",
        )
    calls = {row.name: row.calls or 0 for row in document.functions if row.latency_s}
    expected = predictions(trials, functions)
    known_s = {row.name: row.latency_s for row in document.functions if row.latency_s}
    return replace(
        document,
        latency_s=document.latency_s or search.latency_s,
        trials=len(trials),
        search_s=search.elapsed_s,
        reason=search.reason,
        machine=search.machine,
        network_curve=network_curve(trials, functions, calls, known_s),
        function_curves=function_curves(trials, functions),
        predictions=expected,
        ordered_share=ordered_share(expected),
        failures=failure_counts(trials, functions),
        environment=search.environment,
    )


def _results(stored: StoredModel) -> list[TaskResult]:
    try:
        return [converted(row, TaskResult) for row in stored.notes.get("tasks", ())]
    except ValueError as error:
        raise StorageError(
            f"the notes of the network are damaged: {error}",
            "copy the file again, or tune the model again",
        ) from error


def _threads(stored: StoredModel) -> int:
    return int(stored.notes.get("threads", 1))


def _noted_failures(results: Sequence[TaskResult]) -> tuple[FailureCount, ...]:
    """Failures as the network counts them, without the texts of the errors."""
    return tuple(
        FailureCount(each.name, kind, count, "")
        for each in results
        for kind, count in each.errors.items()
    )


def _check_text(check: Mapping[str, Any]) -> str:
    return (
        f"{check.get('stage')}: compared with {check.get('framework')}, "
        f"largest difference {check.get('difference'):.1e}"
    )


def _programs(
    stored: StoredModel,
    rows: Sequence[FunctionRow],
    compiled: Mapping[str, str],
    loops: Mapping[str, str],
) -> tuple[ProgramText, ...]:
    """The winning program of each function.

    Args:
        stored: the network.
        rows: of its functions.
        compiled: names of the functions in the network.
        loops: pseudo code; where there is none, the scheduled function stands for it.
    """
    return tuple(
        _program(stored, row.name, compiled[row.name], loops.get(row.name))
        for row in rows
        if row.name in compiled
    )


def _program(stored: StoredModel, name: str, symbol: str, loops: str | None) -> ProgramText:
    program = ProgramText(name, loops or "", "pseudo code")
    if loops is None:
        program = ProgramText(name, source_text(stored.model, symbol), "TensorIR")
    if not backend_of(stored.model.target).execution.on_host:  # this needs the device's compiler
        return program
    part = excerpt(assembly_text(stored.model, symbol, _threads(stored)))
    return replace(program, assembly=part.text, assembly_note=part.note)
