"""Records of a MetaSchedule database as schedules that are offered to tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tvm import tirx
from tvm.s_tir import meta_schedule

from ansor.config import TEMPLATES
from ansor.dag.from_tir.read import read_dag
from ansor.errors import ArgumentError, UnsupportedError
from ansor.templates.imported_trace import ImportedTrace, json_text

WORKLOADS, RECORDS = "database_workload.json", "database_tuning_record.json"  # TVM's names


def recorded_traces(
    folder: str | os.PathLike[str], funcs: Iterable[tirx.PrimFunc]
) -> list[ImportedTrace]:
    """The best records of functions: each as one program, and the best also with its knobs.

    Args:
        folder: of a `JSONDatabase`.
        funcs: the functions of a model.

    Raises:
        ArgumentError: the folder has no database that TVM can read, or no record of a function.
    """
    best = _best_records(folder)
    keys = {read_dag(func).key for func in funcs}
    found = [
        ImportedTrace(json_text(record.trace), record.workload.mod["main"], knobs)
        for records in best
        if _key(records[0]) in keys
        for number, record in enumerate(records)
        for knobs in ([False, True] if number == 0 else [False])
    ]
    if not found:
        remedy = f"none of its {len(best)} functions with records is a function of the model"
        raise ArgumentError("seeds", os.fspath(folder), remedy)
    return found


def _best_records(folder: str | os.PathLike[str]) -> list[list[Any]]:
    """The fastest records of each workload, fastest first."""
    paths = [Path(folder) / name for name in (WORKLOADS, RECORDS)]
    if not all(path.is_file() for path in paths):
        remedy = f"give a folder with {WORKLOADS} and {RECORDS}"
        raise ArgumentError("seeds", os.fspath(folder), remedy)
    try:
        database = meta_schedule.database.JSONDatabase(*map(str, paths), allow_missing=False)
    except (RuntimeError, ValueError, TypeError) as error:
        reason = str(error).strip().splitlines()[0]
        remedy = f"TVM cannot read it, or a trace in it does not replay: {reason}"
        raise ArgumentError("seeds", os.fspath(folder), remedy) from error
    found: dict[int, list[Any]] = {}
    workloads: list[Any] = []
    for record in database.get_all_tuning_records():
        known = [n for n, each in enumerate(workloads) if each.same_as(record.workload)]
        if not known:
            workloads.append(record.workload)
            top = database.get_top_k(record.workload, TEMPLATES.imported_records)
            found[len(workloads)] = list(top)
    return [records for records in found.values() if records]


def _key(record: Any) -> str | None:
    """Key of the graph of a record's function; None for one that cannot be scheduled here."""
    try:
        return read_dag(record.workload.mod["main"]).key
    except UnsupportedError:
        return None
