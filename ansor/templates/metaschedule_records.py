"""Records of a MetaSchedule database as schedules that are offered to tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable

from tvm import tirx

from ansor.config import TEMPLATES
from ansor.dag.from_tir.read import read_dag
from ansor.errors import ArgumentError, UnsupportedError
from ansor.templates.imported_trace import ImportedTrace
from ansor.templates.metaschedule_files import read_records


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
    best = read_records(folder, TEMPLATES.imported_records)
    keys = {read_dag(func).key for func in funcs}
    found = [
        ImportedTrace(record.trace, record.func, knobs)
        for records in best
        if _key(records[0].func) in keys
        for number, record in enumerate(records)
        for knobs in ([False, True] if number == 0 else [False])
    ]
    if not found:
        remedy = (
            f"none of its {len(best)} functions with records is a function of the model; give "
            "the records of this model"
        )
        raise ArgumentError("seeds", os.fspath(folder), remedy)
    return found


def _key(func: tirx.PrimFunc) -> str | None:
    """Key of the graph of a function; None for a record that cannot be scheduled here."""
    try:
        return read_dag(func).key
    except UnsupportedError:
        return None
