"""An imported trace of TVM's schedule, as a schedule for tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np
import tvm
from tvm import ir, s_tir, tirx

from ansor.dag.from_tir.read import read_dag
from ansor.dag.from_tir.signature import signature
from ansor.errors import ArgumentError, LoweringError, TemplateMismatchError
from ansor.program.decision import Decision, category, factorisations
from ansor.program.hand_schedule import HandSchedule, Values

# Of an instruction in the JSON form of a trace: its kind, inputs, attributes and outputs.
_KIND, _ATTRIBUTES = 0, 2
_TILE, _CATEGORY = "SamplePerfectTile", "SampleCategorical"
# TVM compiles the value of such an annotation ("_llvm", "_c") as code of the function's module.
_IMPORTS = "pragma_import"
_MAY_LACK = ("TransformLayout",)  # an attribute: the value of padding


@dataclass(frozen=True, eq=False)
class ImportedTrace:
    """A trace of `tvm.s_tir.Schedule` for ``templates=[...]``.

    Without knobs it is one program, which competes with the sketches. With knobs, its sampled tiles
    and categories are decisions, and the search begins anywhere among them. Sampled places of
    stages are fixed, because their choices depend on other decisions.

    Attributes:
        text: JSON form of the trace.
        workload: the function that it is of; None for any function on which it replays.
        knobs: whether its samples are decisions.

    Raises:
        ArgumentError: it brings code in another language, which would run unchecked.
    """

    text: str
    workload: tirx.PrimFunc | None = None
    knobs: bool = False
    name: str = field(default="")

    def __post_init__(self) -> None:
        if any(_imports_code(instruction) for instruction in json.loads(self.text)[0]):
            remedy = f"its annotation {_IMPORTS}_… brings code along; give a trace without"
            raise ArgumentError("trace", f"{self.text[:40]}…", remedy)
        if not self.name:
            digest = hashlib.sha256(self.text.encode()).hexdigest()[:8]
            object.__setattr__(self, "name", f"trace{'s' if self.knobs else ''}_{digest}")

    @cached_property
    def _decisions(self) -> dict[int, Decision]:
        """The decisions by the number of their instruction."""
        return dict(_sampled(*json.loads(self.text))) if self.knobs else {}

    def fitted(self, func: tirx.PrimFunc) -> HandSchedule:
        """See `Offer`."""
        if self.workload is not None and read_dag(func).key != read_dag(self.workload).key:
            raise TemplateMismatchError(
                "the trace is of another function", "give the trace of this function"
            )
        numbers = {decision.name: n for n, decision in self._decisions.items()}
        apply = partial(_scheduled, self.text, numbers)
        trace = partial(_traced, self.text, numbers)
        try:
            apply(func, {})
        except LoweringError as error:
            raise TemplateMismatchError(str(error), "give the trace of this function") from error
        return HandSchedule(self.name, tuple(self._decisions.values()), apply, "", trace)


def _imports_code(instruction: Sequence[Any]) -> bool:
    return any(str(attribute).startswith(_IMPORTS) for attribute in instruction[_ATTRIBUTES])


def import_trace(
    trace: s_tir.Trace | s_tir.Schedule,
    workload: tirx.PrimFunc | None = None,
    *,
    knobs: bool = False,
) -> ImportedTrace:
    """A trace of TVM's schedule as one program, or as a space, for ``templates=[...]``.

    Args:
        trace: of the schedule of one function "main", or a schedule that has one.
        workload: the function that it is of; by default any function on which it replays.
        knobs: whether its sampled tiles and categories are decisions of the search.

    Raises:
        ArgumentError: it is no trace, or brings code in another language along.
    """
    found = trace.trace if isinstance(trace, s_tir.Schedule) else trace
    if not isinstance(found, s_tir.Trace):
        raise ArgumentError("trace", trace, "give a trace, or a schedule with one")
    return ImportedTrace(json_text(found), workload, knobs)


def json_text(trace: s_tir.Trace) -> str:
    """The JSON form of a trace, with its decisions."""
    return json.dumps(trace.as_json(), default=_plain)


def _plain(value: object) -> object:
    """A literal of TVM as JSON has it.

    Raises:
        TypeError: it is no literal.
    """
    if isinstance(value, tirx.IntImm | tirx.FloatImm | ir.StringImm):
        return value.value
    raise TypeError(f"a trace holds {type(value).__name__}")


def _sampled(
    instructions: Sequence[Sequence[Any]], decisions: Sequence[tuple[int, Any]]
) -> Iterator[tuple[int, Decision]]:
    """The tiles and categories of a trace, with the numbers of their instructions."""
    for number, chosen in decisions:
        kind, attributes = instructions[number][_KIND], instructions[number][_ATTRIBUTES]
        name = f"sample{number}"
        if kind == _TILE:
            table = factorisations(prod(chosen), len(chosen))
            kept = table[table[:, -1] <= max(attributes[1], chosen[-1])]
            yield number, Decision(name, name, np.ascontiguousarray(kept))
        elif kind == _CATEGORY:
            yield number, category(name, name, tuple(range(len(attributes[0]))))


def _scheduled(
    text: str, numbers: Mapping[str, int], func: tirx.PrimFunc, values: Values
) -> tirx.PrimFunc:
    """The function after a trace; see `replayed`."""
    return replayed(text, numbers, func, values).mod["main"]


def _traced(
    text: str, numbers: Mapping[str, int], func: tirx.PrimFunc, values: Values
) -> s_tir.Trace:
    """The trace with other decisions; see `replayed`."""
    return replayed(text, numbers, func, values).trace


def replayed(
    text: str, numbers: Mapping[str, int], func: tirx.PrimFunc, values: Values
) -> s_tir.Schedule:
    """The schedule after a trace.

    Args:
        text: JSON form of the trace.
        numbers: of the instructions of its decisions.
        func: the definition.
        values: of the decisions; those without a value are as in the trace.

    Raises:
        LoweringError: the trace does not replay, or changes the parameters.
    """
    instructions, decisions = json.loads(text)
    wanted = {numbers[name]: row for name, row in values.items() if name in numbers}
    # Kept alive: TVM changes a module in place that only the schedule holds, and `func` with it.
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    sch = s_tir.Schedule(module)
    try:
        chosen = [
            [n, _decision(instructions[n], wanted[n]) if n in wanted else kept]
            for n, kept in decisions
        ]
        _check_attributes(instructions)
        s_tir.Trace.apply_json_to_schedule([instructions, chosen], sch)
    except Exception as error:  # TVM's own are of many kinds
        reason = str(error).strip().splitlines()[-1:]
        raise LoweringError(f"the trace does not replay: {' '.join(reason)}") from error
    found = signature(sch.mod["main"])
    if found != signature(func):
        raise LoweringError(f"the trace changes the parameters to {found}")
    return sch


def _check_attributes(instructions: Sequence[Sequence[Any]]) -> None:
    """Raises a ValueError for an attribute without a value, at which TVM ends the process."""
    for instruction in instructions:
        if None in instruction[_ATTRIBUTES] and instruction[_KIND] not in _MAY_LACK:
            raise ValueError(f"an attribute of {instruction[_KIND]} has no value")


def _decision(instruction: Sequence[Any], row: tuple[int, ...]) -> int | list[int]:
    """A chosen row as TVM keeps it."""
    return list(row) if instruction[_KIND] == _TILE else row[0]
