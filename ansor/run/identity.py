"""The identity of a run: equal calls have the same one, so that an interrupted run is found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from ansor.database.record import here_and_now
from ansor.database.runs import RunRequest, RunRow
from ansor.run.settings import Settings
from ansor.task import Task

# These settings decide on outputs and callbacks of a run, not on its results.
_OUTPUTS = ("database", "resume", "log", "callbacks")
_SHOWN = ("trials", "minutes", "trials_per_task", "early_stopping", "seed", "policy", "precision")


def run_request(
    settings: Settings, target: str, tasks: Sequence[Task], calls: npt.NDArray[np.int64]
) -> RunRequest:
    """The identity of a call.

    Args:
        settings: of the call.
        target: canonical text of the target.
        tasks: of all networks.
        calls: `[networks, tasks]`, how often each network runs each task.
    """
    deciding = [field.name for field in fields(settings) if field.name not in _OUTPUTS]
    told = {name: stable_text(getattr(settings, name)) for name in deciding}
    told["target"], told["calls"] = target, str(calls.tolist())
    told["tasks"] = str([(task.key, task.weight, task.kind) for task in tasks])
    told["versions"] = str(dict(here_and_now(None).versions))
    identity = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    shown = {name: value for name in _SHOWN if (value := getattr(settings, name)) is not None}
    text = {"tasks": str(len(tasks))} | {name: str(value) for name, value in shown.items()}
    return RunRequest(identity, json.dumps(text))


def stable_text(value: object) -> str:
    """A text of a setting that is the same in every process. It has the names of functions, and the
    classes of objects without fields."""
    if value is None or isinstance(value, str | bool):
        return repr(value)
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        return f"{_name(type(value))}{stable_text(named)}"
    if isinstance(value, Mapping):
        return str([(stable_text(key), stable_text(value[key])) for key in value])
    if isinstance(value, Sequence | set | frozenset):
        texts = [stable_text(each) for each in value]
        return str(texts if isinstance(value, Sequence) else sorted(texts))
    if isinstance(value, partial):
        return stable_text((value.func, value.args, value.keywords))
    return _name(value) if hasattr(value, "__qualname__") else _name(type(value))


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def resumption(run: RunRow, trials: int, settings: Settings) -> str:
    """A readable line on the run that continues.

    Args:
        run: the interrupted one.
        trials: that it made.
        settings: of the call.
    """
    of_trials = "" if settings.trials is None else f" of {settings.trials}"
    of_minutes = "" if settings.minutes is None else f" of {settings.minutes:g}"
    spent = f"{trials}{of_trials} trials, {run.spent_s / 60:.1f}{of_minutes} min spent"
    return f"resumed: {spent}"
