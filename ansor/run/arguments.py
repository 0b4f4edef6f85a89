"""Checks of the arguments of public calls, before any work starts."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np

from ansor.database.database import Database
from ansor.database.store import RecordStore, StoredDatabase
from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend.importers.importer import is_onnx
from ansor.frontend.precision.stages import WIDE
from ansor.frontend.variants import KINDS
from ansor.models.registry import model_config
from ansor.targets.registry import backend_of
from ansor.targets.target import Target
from ansor.task import Task
from ansor.task_scheduler.objective import Objective, slopes
from ansor.templates.template import offers

SHORT, AUTO = "bfloat16", "auto"
PRECISIONS = (WIDE, SHORT, AUTO)
RAY = "ray"  # the device on a cluster: "ray", or "ray:" and the address of the cluster
Source = str | os.PathLike[str] | Database


def check_models(models: object, example_inputs: object) -> None:
    """Raises an `ArgumentError` unless both are mappings by name, with at least one model.

    Names of built-in networks are checked, too. Importers check other models.
    """
    if not isinstance(models, Mapping) or not models:
        raise ArgumentError("models", models, "give a mapping of names to models")
    if not isinstance(example_inputs, Mapping) or set(example_inputs) - set(models):
        raise ArgumentError("example_inputs", example_inputs, "give them by the model's name")
    for model in models.values():
        if isinstance(model, str) and not is_onnx(model):
            model_config(model)


def check_objective(objective: Objective, networks: int) -> None:
    """Raises an `ArgumentError` unless it is a function of as many latencies as there are
    networks."""
    if not callable(objective):
        raise ArgumentError("objective", objective, "must be a function of latencies in seconds")
    slopes(objective, np.ones(networks))


def check_budget(minutes: object, trials: object) -> None:
    """Raises an `ArgumentError` unless `minutes` and `trials` are sensible or None."""
    if minutes is not None and not (_is_number(minutes, Real) and minutes > 0):  # type: ignore[operator]
        raise ArgumentError("minutes", minutes, "must be a positive number")
    if trials is not None and not (_is_number(trials, Integral) and trials >= 0):  # type: ignore[operator]
        raise ArgumentError("trials", trials, "must be a whole number, zero for no measurements")


def check_task_limits(trials_per_task: object, early_stopping: object) -> None:
    """Raises an `ArgumentError` unless both are whole numbers above zero, or None."""
    given = {"trials_per_task": trials_per_task, "early_stopping": early_stopping}
    for name, value in given.items():
        if value is not None and not (_is_number(value, Integral) and value > 0):  # type: ignore[operator]
            raise ArgumentError(name, value, "must be a whole number, at least 1")


def listed_sources(transfer: object) -> tuple[Source, ...]:
    """Logs or databases of earlier runs, one or several.

    Raises:
        ArgumentError: something else.
    """
    is_one = isinstance(transfer, str | os.PathLike | Database)
    several = isinstance(transfer, Sequence) and not is_one
    found: tuple[Any, ...] = tuple(transfer) if several else (transfer,)  # type: ignore[arg-type]
    if not all(isinstance(each, str | os.PathLike | Database) for each in found):
        raise ArgumentError("transfer", transfer, "give paths of logs or databases")
    return found


def check_log(log: object) -> None:
    """Raises an `ArgumentError` unless it is a path or None."""
    if log is not None and not isinstance(log, str | os.PathLike):
        raise ArgumentError("log", log, "give the path of a file or None")


def check_device(device: object) -> None:
    """Raises an `ArgumentError` for a text that names no device."""
    if isinstance(device, str):
        cluster_address(device)


def cluster_address(device: str) -> str:
    """The address of the cluster of a device: "auto", or the text after "ray:".

    Raises:
        ArgumentError: the text names no device.
    """
    kind, colon, address = device.partition(":")
    if kind != RAY or (colon and not address):
        raise ArgumentError("device", device, f'give a Device, "{RAY}" or "{RAY}:HOST:PORT"')
    return address or "auto"


def check_seed(seed: object) -> None:
    """Raises an `ArgumentError` unless the seed is a whole number, not negative."""
    if not (_is_number(seed, Integral) and seed >= 0):  # type: ignore[operator]
        raise ArgumentError("seed", seed, "must be a whole number, not negative")


def check_threads(threads: int | None) -> None:
    """Raises an `ArgumentError` unless the threads are a positive number; None means all cores."""
    if threads is not None and not (_is_number(threads, Integral) and threads >= 1):
        raise ArgumentError("threads", threads, "must be a positive number")


def check_threads_here(threads: int | None) -> None:
    """Raises an `ArgumentError` if this machine has fewer cores."""
    most = len(os.sched_getaffinity(0))
    if threads is not None and threads > most:
        raise ArgumentError("threads", threads, f"must be between 1 and {most}")


def check_variants(allow: Collection[str] | None, forbid: Collection[str]) -> tuple[str, ...]:
    """Returns the kinds of variants that may be used.

    Raises:
        ArgumentError: unknown kind.
    """
    for name, kinds in (("allow", allow or ()), ("forbid", forbid)):
        unknown = sorted({kinds} if isinstance(kinds, str) else set(kinds) - set(KINDS))
        if unknown:
            raise ArgumentError(name, ", ".join(unknown), f"choose from {', '.join(KINDS)}")
    return tuple(k for k in KINDS if (allow is None or k in allow) and k not in forbid)


def check_precision(precision: object, max_error: object, metric: object) -> None:
    """Raises an `ArgumentError` unless the precision exists, and the limit of its error is a
    positive number."""
    if precision not in PRECISIONS:
        raise ArgumentError("precision", precision, f"must be one of {', '.join(PRECISIONS)}")
    given = {"max_error": max_error, "metric": metric}
    if precision == WIDE:
        for name, value in given.items():
            if value is not None:
                raise ArgumentError(name, value, 'give precision="bfloat16" or "auto" with it')
    if max_error is not None and not (_is_number(max_error, Real) and max_error > 0):  # type: ignore[operator]
        raise ArgumentError("max_error", max_error, "must be a positive number")
    if metric is not None and not callable(metric):
        raise ArgumentError("metric", metric, "must be a function of two arrays")
    if metric is not None and max_error is None:
        raise ArgumentError("max_error", max_error, "give the largest error of your metric")


def check_templates(templates: object, precision: object, seeds: object = None) -> None:
    """Raises an `ArgumentError` unless all are schedules with distinct names, and the network keeps
    its first precision."""
    if not isinstance(templates, Sequence) or isinstance(templates, str):
        raise ArgumentError("templates", templates, "give a list of templates and functions")
    offers(templates)
    if (templates or seeds is not None) and precision != WIDE:
        raise ArgumentError("precision", precision, f'templates need precision="{WIDE}"')


def check_short_products(precision: str, target: Target) -> None:
    """Raises an UnsupportedError if a target has no instruction for the products of a precision."""
    reason = backend_of(target).network.why_not_short(target, SHORT)
    if precision == SHORT and reason is not None:
        remedy = f'tune for a target that has one, or with precision="{WIDE}"'
        raise UnsupportedError(f"precision={precision!r}: {reason}", remedy)


@contextmanager
def opened(database: object) -> Iterator[Database]:
    """The database to use: the caller's, which stays open, or a new one, closed at the end.

    Raises:
        ArgumentError: neither a path nor a database nor None.
        DatabaseError: the file cannot be used.
    """
    if isinstance(database, Database):
        yield database
        return
    if isinstance(database, RecordStore):
        with StoredDatabase(database) as stored:
            yield stored
        return
    if database is not None and not isinstance(database, str | os.PathLike):
        remedy = "give a path, a Database, a RecordStore or None"
        raise ArgumentError("database", database, remedy)
    own = Database(database)
    try:
        yield own
    finally:
        own.close()


def _is_number(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def check_records(records: Database, tasks: Sequence[Task], target: str) -> None:
    """Refuses a run without a budget if all records are for other targets.

    Raises:
        ArgumentError: there are such records, and none for this target.
    """
    if records.count(target=target):
        return
    keys = [task.key for task in tasks]
    others = sorted({other for key in keys for other in records.targets(key)})
    if others:
        remedy = (
            f"it has records for {', '.join(others)}, none for {target}; give minutes or trials"
        )
        raise ArgumentError("database", "no records for this target", remedy)
