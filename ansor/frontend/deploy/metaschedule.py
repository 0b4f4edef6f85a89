"""Writes networks for plain TVM: a module, and MetaSchedule's records of its functions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tvm
from tvm import s_tir, tirx
from tvm.s_tir import meta_schedule
from tvm.target import Target

from ansor.errors import ArgumentError
from ansor.lowering.trace import no_change
from ansor.targets.registry import backend_of

NETWORK_FILE = "network.json"
RECORD_FILES = ("database_workload.json", "database_tuning_record.json")  # TVM's names
UNMEASURED_S = 1.0  # TVM ignores records without a time; each function has one record

Folder = str | os.PathLike[str]
Seconds = Mapping[str, float | None]  # latency by the name of a function


def write_final(mod: tvm.IRModule, target: Target, threads: int, times: Seconds, to: Folder) -> int:
    """Writes a network with its compiled functions.

    Args:
        mod: the network with scheduled functions and weights.
        target: that it is for.
        threads: that it will run on.
        times: of its functions, if they are known.
        to: a folder for `NETWORK_FILE` and `RECORD_FILES`.

    Returns:
        the number of records.

    Raises:
        ArgumentError: the folder has records or cannot be written to.
    """
    compiler = backend_of(target).compiler
    ready = compiler.portable(mod, target, threads)
    plain = {variable: _without_marks(func) for variable, func in ready.functions.items()}
    ready = tvm.IRModule(plain, attrs=mod.attrs)
    return _write(ready, _marks(ready), compiler.target(target), times, to)


def write_traces(
    mod: tvm.IRModule, traces: Mapping[str, s_tir.Trace], target: Target, times: Seconds, to: Folder
) -> int:
    """Writes a network with its definitions without schedules, and traces of its functions.

    Args:
        mod: the network with weights.
        traces: of the functions, by name.

    Other arguments, the result and errors are those of `write_final`.
    """
    return _write(mod, traces, backend_of(target).compiler.target(target), times, to)


def workload(func: tirx.PrimFunc) -> tvm.IRModule:
    """The module that is MetaSchedule's key for the records of a function."""
    if not (func.attrs and "global_symbol" in func.attrs):
        func = func.with_attr("global_symbol", "main")
    return tvm.IRModule({"main": func.with_attr("tirx.noalias", True)})


def _write(
    mod: tvm.IRModule, traces: Mapping[str, s_tir.Trace], target: Target, times: Seconds, to: Folder
) -> int:
    folder = _new_folder(to)
    database = meta_schedule.database.JSONDatabase(work_dir=str(folder))
    for variable, func in mod.functions.items():
        name = variable.name_hint
        if name in traces:
            kept = database.commit_workload(workload(func))
            time_s = times.get(name) or UNMEASURED_S
            arguments = meta_schedule.arg_info.ArgInfo.from_prim_func(func)
            database.commit_tuning_record(
                meta_schedule.database.TuningRecord(traces[name], kept, [time_s], target, arguments)
            )
    (folder / NETWORK_FILE).write_text(tvm.ir.save_json(mod), encoding="utf-8")
    return len(database)


def _new_folder(path: Folder) -> Path:
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError("folder", str(path), f"give a folder to write to: {error}") from error
    if any((folder / name).exists() for name in RECORD_FILES):
        raise ArgumentError("folder", str(path), "it has records already; give a new folder")
    if not os.access(folder, os.W_OK):
        raise ArgumentError("folder", str(path), "give a folder that can be written to")
    return folder


def _without_marks(func: Any) -> Any:
    """A function without the attribute that keeps TVM from applying records to it."""
    return func.without_attr("tirx.is_scheduled") if isinstance(func, tirx.PrimFunc) else func


def _marks(mod: tvm.IRModule) -> dict[str, s_tir.Trace]:
    """For each function a trace that changes nothing."""
    return {
        variable.name_hint: no_change(workload(func))
        for variable, func in mod.functions.items()
        if isinstance(func, tirx.PrimFunc)
    }
