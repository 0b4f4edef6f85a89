"""OpenVINO on the exported network, in each of its precisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openvino

from ansor.compare.case import Case

_PRECISION = "INFERENCE_PRECISION_HINT"
_NAMES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}


def float32(case: Case) -> Any:
    """In float32, which some processors would leave by default."""
    return _compiled(case, case.onnx, {_PRECISION: "f32"})


def bfloat16(case: Case) -> Any:
    """In bfloat16, if it has such kernels."""
    return _compiled(case, case.onnx, {_PRECISION: "bf16"})


def by_default(case: Case) -> Any:
    """In the precision that it chooses for this processor."""
    return _compiled(case, case.onnx, {})


def int8(case: Case) -> Any:
    """The network in 8-bit integers; its floats have the precision that OpenVINO chooses."""
    return _compiled(case, case.quantized, {})


def default_precision(_: Case) -> str:
    """The precision that it chooses for this processor."""
    found: str = openvino.Core().get_property("CPU", _PRECISION).to_string()
    return _NAMES.get(found, found)


def _compiled(case: Case, file: Path, settings: dict[str, Any]) -> Any:
    """Tuned for latency, with the case's number of threads."""
    common = {"INFERENCE_NUM_THREADS": case.threads, "PERFORMANCE_HINT": "LATENCY"}
    compiled = openvino.Core().compile_model(str(file), "CPU", {**common, **settings})
    request = compiled.create_infer_request()
    return lambda x: request.infer([x])[compiled.output(0)]
