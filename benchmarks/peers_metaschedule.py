"""MetaSchedule, from the same wheel, on the same definition, target and number of threads.

Its tuning and the seconds of it are kept in a folder for each definition, target, number of trials
and seed. A second run times the program that the first one found.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from pathlib import Path
from typing import Any

import tvm
from tvm.s_tir import meta_schedule
from tvm.s_tir.meta_schedule.builder import LocalBuilder

from ansor.errors import AnsorError
from benchmarks.operator_case import Case
from benchmarks.tensor_intrinsics import prepare_intrinsics

_NOTES = "tuning.json"  # written last: a folder without it is of a run that did not end


class NothingFoundError(AnsorError):
    """MetaSchedule has no program that runs."""


def best(case: Case) -> tuple[Any, dict[str, Any]]:
    """The best function found, and "tuning_s" and "trials" of the search."""
    func = case.workload.func
    folder = folder_of(func, case)
    if tvm.target.Target(case.target).kind.name == "llvm":
        prepare_intrinsics()
    if not (folder / _NOTES).is_file():
        _tune(func, case, folder)
    database = meta_schedule.database.JSONDatabase(work_dir=str(folder))
    target = tvm.target.Target(case.target)
    schedule = meta_schedule.tir_integration.compile_tir(database, func, target)
    if schedule is None:
        raise NothingFoundError(f"no program after {case.trials} trials")
    return schedule.mod["main"], json.loads((folder / _NOTES).read_text(encoding="utf-8"))


def folder_of(func: Any, case: Case) -> Path:
    """Where the search of this case is kept."""
    parts = [func.script(), case.target, case.threads, case.trials, case.seed, tvm.__version__]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
    name = "".join(c if c.isalnum() or c == "." else "_" for c in case.op)
    return Path(case.cache) / f"{name}-{digest}"


def _tune(func: Any, case: Case, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    target = tvm.target.Target(case.target)
    initializer = prepare_intrinsics if target.kind.name == "llvm" else None
    began = time.perf_counter()
    meta_schedule.tune_tir(
        func,
        target,
        str(folder),
        case.trials,
        builder=LocalBuilder(max_workers=case.threads, initializer=initializer),
        num_tuning_cores=case.threads,
        seed=case.seed,
    )
    notes = {"tuning_s": time.perf_counter() - began, "trials": case.trials}
    (folder / _NOTES).write_text(json.dumps(notes), encoding="utf-8")
