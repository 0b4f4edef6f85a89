"""Saved networks: reading them back, and exporting them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ansor.errors import UnsupportedError
from ansor.frontend.calling import Calling, calling_from_json
from ansor.frontend.deploy.built import DeployableNetwork, rebuilt
from ansor.frontend.deploy.export.write import export_network
from ansor.frontend.deploy.runtime import loaded
from ansor.frontend.deploy.saved_notes import known_fields
from ansor.frontend.deploy.storage import load_model
from ansor.report.precision_table import PrecisionRow
from ansor.results import TaskResult
from ansor.run.check.network import check_from_json
from ansor.run.tuned.tuned_model import TunedModel
from ansor.targets.host.threads import start_threads
from ansor.targets.registry import backend_of
from ansor.targets.target import NATIVE, check_runs_here, resolve_target


def export_saved(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    runtime: str | os.PathLike[str] | None = None,
) -> None:
    """Exports a saved network, which may be for another machine than this one.

    Args:
        path: a file that `TunedModel.save` wrote.

    Other arguments and errors are those of `TunedModel.export`, and StorageError for a file that
    cannot be read.
    """
    stored = load_model(path)
    model, notes = stored.model, stored.notes
    threads = int(notes.get("threads", model.target.attrs.get("num-cores", 1)))
    if model.code is None:
        model = rebuilt(model, model.target, threads)
    export_network(model, stored.state, _calling(notes), threads, folder, runtime)


def load(
    path: str | os.PathLike[str], threads: int | None = None, *, recompile: bool = False
) -> TunedModel:
    """Reads a tuned network, which is ready to run: nothing is tuned or compiled.

    There are two exceptions, which are compiled: a file of another version of TVM, and code that
    this package cannot store (for GPUs, and processors other than x86-64).

    Args:
        path: a file that `TunedModel.save` wrote.
        threads: that the network runs on; all cores by default.
        recompile: whether its loops are compiled for this machine, which takes some seconds. The
            programs remain those for the machine of the search.

    Raises:
        ArgumentError: no such file, or fewer threads than one.
        StorageError: the file cannot be read, is not ours, or is damaged.
        UnsupportedError: the file is for another kind of machine.
    """
    stored = load_model(path)
    count = start_threads(threads)
    compiled = loaded(_ready(stored.model, os.fspath(path), count, recompile), count)
    notes = stored.notes
    checks = tuple(map(check_from_json, notes.get("checks", ())))
    precision = tuple(known_fields(PrecisionRow, row) for row in notes.get("precision", ()))
    seed, tasks = int(notes.get("seed", 0)), _tasks(notes)
    return TunedModel(
        compiled,
        tasks,
        None,
        seed,
        calling=_calling(notes),
        state=stored.state,
        checks=checks,
        precision=precision,
    )


def _calling(notes: Mapping[str, Any]) -> Calling | None:
    return calling_from_json(notes["calling"]) if "calling" in notes else None


def _ready(model: DeployableNetwork, path: str, threads: int, recompile: bool) -> DeployableNetwork:
    """The network with code for this machine.

    Raises:
        UnsupportedError: it has none.
    """
    on_host = backend_of(model.target).execution.on_host
    if recompile and on_host:
        return rebuilt(model, resolve_target(NATIVE), threads)
    try:
        check_runs_here(model.target)
    except UnsupportedError as error:
        remedy = "tune the model on this machine"
        if on_host:
            remedy += ", or load the file with recompile=True"
        raise UnsupportedError(f"{path}: {error.problem}", remedy) from error
    needs_code = model.code is None or recompile
    return rebuilt(model, model.target, threads) if needs_code else model


def _tasks(notes: Mapping[str, Any]) -> tuple[TaskResult, ...]:
    rows: Sequence[Mapping[str, Any]] = notes.get("tasks", ())
    return tuple(known_fields(TaskResult, row) for row in rows)
