"""OpenVINO on the exported network."""

from __future__ import annotations

from typing import Any

import openvino

from ansor.compare.case import Case


def openvino_runtime(case: Case) -> Any:
    """Tuned for latency, with float32 arithmetic and the case's number of threads."""
    settings = {
        "INFERENCE_NUM_THREADS": case.threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",  # some processors would use bfloat16
    }
    compiled = openvino.Core().compile_model(str(case.onnx), "CPU", settings)
    request = compiled.create_infer_request()
    return lambda x: request.infer([x])[compiled.output(0)]
