"""ONNX Runtime on the exported network, and on its form in 8-bit integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from ansor.compare.case import Case

_ON_GPU = "CUDAExecutionProvider"


def absence(_: Case) -> str:
    """Why it cannot run on a GPU; nothing, if it can."""
    if _ON_GPU not in onnxruntime.get_available_providers():
        return "ONNX Runtime was built without CUDA; install onnxruntime-gpu instead"
    return ""


def onnx_runtime(case: Case) -> Any:
    """A session with all optimisations and the case's number of threads.

    On a GPU it takes and gives PyTorch's tensors.
    """
    return _session(case, case.onnx)


def onnx_runtime_int8(case: Case) -> Any:
    """ONNX Runtime on the network in 8-bit integers."""
    return _session(case, case.quantized)


def _session(case: Case, file: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = case.threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    providers: list[Any] = ["CPUExecutionProvider"]
    if case.device == "cuda":
        settings = {"use_tf32": int(case.tf32), "cudnn_conv_algo_search": "EXHAUSTIVE"}
        providers.insert(0, (_ON_GPU, settings))
    session = onnxruntime.InferenceSession(str(file), options, providers=providers)
    if case.device == "cuda":
        return in_place(session, case.device)
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})[0]


def in_place(session: Any, device: str) -> Any:
    """The network as a function of a PyTorch tensor on a device, where its result stays."""
    import torch  # optional

    source, result = session.get_inputs()[0], session.get_outputs()[0]
    out = torch.empty(result.shape, dtype=torch.float32, device=device)

    def run(x: Any) -> Any:
        binding = session.io_binding()
        where = (device, 0, np.float32)
        binding.bind_input(source.name, *where, tuple(x.shape), x.data_ptr())
        binding.bind_output(result.name, *where, tuple(out.shape), out.data_ptr())
        session.run_with_iobinding(binding)
        return out

    return run
