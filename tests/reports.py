"""Reports by hand."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from ansor.report.document.comparison_data import ComparisonData, SystemTimes
from ansor.report.document.document import (
    CurvePoint,
    Document,
    FailureCount,
    FunctionRow,
    Prediction,
    ProgramText,
)
from ansor.report.document.search_data import MachineFigures

NASTY = "</script><script>window.broken=1</script><b title='\"&`|$"

COMPARISON = ComparisonData(
    tuned="ansor",
    untuned="untuned",
    reference="torch",
    threads=2,
    systems=(
        SystemTimes("ansor", 2e-3, (1.9e-3, 2.1e-3), 1.0, 1e-6, "float32"),
        SystemTimes("torch", 3e-3, (2.9e-3, 3.1e-3), 1.5, 0.0, "float32"),
        SystemTimes("untuned", 9e-2, (9e-2,), 45.0, 1e-6, "float32"),
    ),
    missing={"openvino": "not installed"},
)
CURVE = (CurvePoint(1, 0.5, 4e-3), CurvePoint(5, 2.0, 2e-3), CurvePoint(9, 4.0, 2e-3))
DOCUMENT = Document(
    title="network",
    latency_s=2e-3,
    functions_s=1.9e-3,
    trials=9,
    search_s=4.0,
    reason="all trials spent",
    comparison=COMPARISON,
    machine=MachineFigures("processor", 1e11, 2e10, {"caches": "32 KiB"}),
    functions=(
        FunctionRow("fused_conv2d", 2, 8e-4, 1.6e-3, 0.84, 10**7, 10**5, 1.25e10, 0.125, trials=5),
        FunctionRow("mean", 1, 3e-4, 3e-4, 0.16, 10**4, 10**5, 3.3e7, 3.3e-4, trials=4, failed=2),
        FunctionRow("transpose", 1, None, None, None),
    ),
    network_curve=CURVE,
    function_curves={"fused_conv2d": CURVE, "mean": CURVE[:1]},
    predictions=(Prediction("mean", 1e-4, 3e-4), Prediction("mean", 2e-4, 4e-4)),
    ordered_share=1.0,
    failures=(FailureCount("mean", "build", 1, "no such"), FailureCount("mean", "run", 1, "")),
    programs=(ProgramText("mean", "for i in 4:\n  y <- x", "pseudo code", "ret", "all of it"),),
    checks=("import: as torch",),
    environment={"threads": "2"},
)


def with_texts(value: Any, text: str) -> Any:
    """A copy with a text appended to every text of a value, at any depth."""
    if isinstance(value, str):
        return value + text
    if isinstance(value, tuple):
        return tuple(with_texts(each, text) for each in value)
    if isinstance(value, dict):
        return {with_texts(k, text): with_texts(v, text) for k, v in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in fields(value)]
        return replace(value, **{n: with_texts(getattr(value, n), text) for n in names})
    return value
