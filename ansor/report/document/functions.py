"""Rows of a network's functions, and the bytes that each moves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import tvm
from tvm import tirx

from ansor.measure.function_arguments import num_bytes
from ansor.report.document.document import FunctionRow
from ansor.results import TaskResult, longest_first


def function_rows(
    results: Sequence[TaskResult], peak_flops: float | None, moved: Mapping[str, int]
) -> tuple[FunctionRow, ...]:
    """The functions, those with the largest share of the time first.

    Args:
        results: of the functions of a network.
        peak_flops: of the machine.
        moved: bytes of the arguments and results of each function.
    """
    ranked, whole_s = longest_first(results)
    return tuple(_row(each, whole_s, peak_flops, moved.get(each.name)) for each in ranked)


def _row(
    result: TaskResult, whole_s: float, peak_flops: float | None, moved: int | None
) -> FunctionRow:
    rate = _ratio(result.flops, result.latency_s)
    return FunctionRow(
        name=result.name,
        calls=result.weight,
        latency_s=result.latency_s,
        total_s=result.total_s,
        share=_ratio(result.total_s, whole_s),
        flops=result.flops or None,
        moved_bytes=moved,
        rate=rate,
        peak_share=_ratio(rate, peak_flops),
        speedup=result.speedup,
        margin=result.margin,
        spread=result.spread,
        trials=result.trials,
        failed=sum(result.errors.values()),
        variant=result.variant,
        sketch=result.sketch,
        difference=_finite(result.difference),
        note=result.note,
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
