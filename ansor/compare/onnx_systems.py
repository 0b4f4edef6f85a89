"""ONNX Runtime on the exported network."""

from __future__ import annotations

from typing import Any

import onnxruntime

from ansor.compare.case import Case


def runtime(case: Case) -> Any:
    """A session with all optimisations and the case's number of threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = case.threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(str(case.onnx), options, providers=providers)
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})[0]
