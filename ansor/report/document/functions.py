"""Rows of a network's functions, and the bytes that each moves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import tvm
from tvm import tirx

from ansor.measure.function_arguments import num_bytes
from ansor.report.document.document import FunctionRow


@dataclass(frozen=True)
class FunctionNotes:
    """What a saved network tells of a function; see `ansor.run.results.TaskResult`."""

    name: str
    weight: int
    flops: int
    latency_s: float | None
    trials: int
    sketch: str
    difference: float | None
    variant: str = ""
    note: str = ""
    runner_up_s: float | None = None
    untuned_s: float | None = None
    spread: float | None = None
    errors: Mapping[str, int] = field(default_factory=dict)

    @property
    def total_s(self) -> float | None:
        """Seconds of all calls in one run of the network."""
        return None if self.latency_s is None else self.weight * self.latency_s


def function_rows(
    notes: Sequence[FunctionNotes], peak_flops: float | None, moved: Mapping[str, int]
) -> tuple[FunctionRow, ...]:
    """The functions, those with the largest share of the time first.

    Args:
        notes: of a saved network.
        peak_flops: of the machine.
        moved: bytes of the arguments and results of each function.
    """
    whole_s = sum(each.total_s or 0.0 for each in notes)
    ranked = sorted(notes, key=lambda each: each.total_s or 0.0, reverse=True)
    return tuple(_row(each, whole_s, peak_flops, moved.get(each.name)) for each in ranked)


def _row(
    notes: FunctionNotes, whole_s: float, peak_flops: float | None, moved: int | None
) -> FunctionRow:
    rate = _ratio(notes.flops, notes.latency_s)
    behind = _ratio(notes.runner_up_s, notes.latency_s)
    return FunctionRow(
        name=notes.name,
        calls=notes.weight,
        latency_s=notes.latency_s,
        total_s=notes.total_s,
        share=_ratio(notes.total_s, whole_s),
        flops=notes.flops or None,
        moved_bytes=moved,
        rate=rate,
        peak_share=_ratio(rate, peak_flops),
        speedup=_ratio(notes.untuned_s, notes.latency_s),
        margin=None if behind is None else behind - 1,
        spread=notes.spread,
        trials=notes.trials,
        failed=sum(notes.errors.values()),
        variant=notes.variant,
        sketch=notes.sketch,
        difference=_finite(notes.difference),
        note=notes.note,
    )


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part and whole else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def scheduled_functions(mod: tvm.IRModule) -> dict[str, tirx.PrimFunc]:
    """The functions of a compiled network by name."""
    found = {variable.name_hint: function for variable, function in mod.functions.items()}
    return {n: f for n, f in found.items() if isinstance(f, tirx.PrimFunc)}


def moved_bytes(function: tirx.PrimFunc) -> int:
    """Bytes of all arguments and results of a function."""
    return sum(map(num_bytes, function.params))
