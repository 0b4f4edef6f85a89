"""Runs a schedule once, before the search, to list its knobs (AutoTVM's collect phase)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from tvm import tirx
from tvm.s_tir import Schedule, Trace

from ansor.config import TEMPLATES
from ansor.dag.from_tir.signature import signature
from ansor.dag.from_tir.tensors import prim_func
from ansor.errors import AnsorError, ArgumentError, LoweringError, UnsupportedError
from ansor.program.decision import Decision
from ansor.program.hand_schedule import HandSchedule, Values
from ansor.templates.choices import Choices
from ansor.templates.config import Config

# Runs the user's function on a definition, None where the function makes its definition itself.
Run = Callable[[Config, tirx.PrimFunc | None], Any]


@dataclass(frozen=True, eq=False)
class Recording:
    """A definition and a schedule of it with its knobs."""

    definition: tirx.PrimFunc
    schedule: HandSchedule


def record(name: str, module: str, run: Run, func: tirx.PrimFunc | None = None) -> Recording:
    """Runs a schedule and lists its knobs.

    A schedule may be illegal for the first values: other values are tried. Where all are illegal,
    the programs fail when they are measured.

    Args:
        name: of the schedule.
        module: of the user's function.
        run: the schedule.
        func: the definition; None where the schedule makes it.

    Raises:
        TemplateMismatchError: the schedule is not for the definition.
        ArgumentError: the function is wrong: it raises an error of Python, makes no knob before an
            illegal schedule, returns something else, or makes two knobs of one name.
    """
    rng = np.random.default_rng(0)  # the knobs must not depend on the seed of the search
    values: Values = {}
    known: Mapping[str, Decision] = {}
    failure = ""
    for _ in range(TEMPLATES.first_runs):
        config = Config(choices := Choices(values))
        try:
            scheduled = _scheduled(config, run(config, func))
        except AnsorError:
            raise
        except RuntimeError as error:  # TVM's schedule raises no other
            failure = _reason(error)
            known = max(known, choices.decisions, key=len)
            values = {n: _any_row(decision, rng) for n, decision in known.items()}
        except Exception as error:  # any error of the user's code
            remedy = f"repair it: its first run raised {type(error).__name__}: {error}"
            raise ArgumentError("templates", name, remedy) from error
        else:
            definition = config.definition or scheduled
            return _recording(name, module, run, definition, scheduled, choices.decisions)
    if not known or config.definition is None:
        remedy = f"repair it: it gives no legal schedule: {failure}"
        raise ArgumentError("templates", name, remedy)
    return _recording(name, module, run, config.definition, config.definition, known)


def _recording(
    name: str,
    module: str,
    run: Run,
    definition: tirx.PrimFunc,
    scheduled: tirx.PrimFunc,
    decisions: Mapping[str, Decision],
) -> Recording:
    if signature(scheduled) != signature(definition):
        remedy = f"its parameters {signature(scheduled)} must be {signature(definition)}"
        raise ArgumentError("templates", name, remedy)
    knobs = tuple(decisions.values())
    schedule = HandSchedule(name, knobs, partial(_replayed, run), module, partial(_traced, run))
    return Recording(definition, schedule)


def _replayed(run: Run, func: tirx.PrimFunc, values: Values) -> tirx.PrimFunc:
    """The scheduled function of the chosen values.

    Raises:
        LoweringError: the values give no legal schedule.
    """
    scheduled = _scheduled(*_rerun(run, func, values))
    if signature(scheduled) != signature(func):
        raise LoweringError(f"parameters {signature(scheduled)} in place of {signature(func)}")
    return scheduled


def _traced(run: Run, func: tirx.PrimFunc, values: Values) -> Trace:
    """The trace of the chosen values.

    Raises:
        LoweringError: the values give no legal schedule.
        UnsupportedError: the function makes no schedule.
    """
    config, result = _rerun(run, func, values)
    schedule = config.started if result is None else result
    if not isinstance(schedule, Schedule):
        raise UnsupportedError(
            "there is no trace of a template that returns tensors or a PrimFunc",
            "return the schedule",
        )
    return schedule.trace


def _rerun(run: Run, func: tirx.PrimFunc, values: Values) -> tuple[Config, Any]:
    """The result of the user's function for the chosen values.

    Raises:
        LoweringError: the values give no legal schedule.
    """
    config = Config(Choices(values, is_complete=True))
    try:
        return config, run(config, func)
    except AnsorError:
        raise
    except Exception as error:  # any error of the user's code
        raise LoweringError(_reason(error)) from error


def _scheduled(config: Config, result: object) -> tirx.PrimFunc:
    """The function that a run has scheduled; None stands for the schedule of the run."""
    if result is None:
        result = config.started
    if isinstance(result, Schedule):
        return result.mod["main"]
    if isinstance(result, tirx.PrimFunc):
        return result
    if isinstance(result, Sequence) and result:
        return prim_func(result)
    raise ArgumentError("templates", result, "return a schedule, a PrimFunc or TE tensors")


def _any_row(decision: Decision, rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(int(value) for value in decision.table[rng.integers(decision.size)])


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join([f"{type(error).__name__}:", *lines[-1:]])
