"""One system in a separate process; ``python -m ansor.compare.child SYSTEM CASE``.

Its first output goes to the file "SYSTEM.npy" of the case's folder; then it takes its turns. As
SYSTEM, "export" writes the ONNX file and PyTorch's output in float32, and "quantize" writes the
ONNX file of integers. Both then end.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ansor.compare.case import Case, inputs, network
from ansor.compare.systems import SYSTEMS
from ansor.compare.turns import LATENCY, Answer, answer_turns
from ansor.config import COMPARE

EXPORT, QUANTIZE = "export", "quantize"


def main(system: str, case: Case) -> None:
    """The entry point of the process."""
    if system == EXPORT:
        # PyTorch is optional: only an export needs it.
        from ansor.compare.torch_systems import export_onnx

        export_onnx(case)
        return
    if system == QUANTIZE:
        # ONNX Runtime is optional, too.
        from ansor.compare.onnx_quantization import quantize_onnx

        quantize_onnx(case)
        return
    answer_turns(lambda: _loaded(system, case))


def _loaded(system: str, case: Case) -> tuple[Answer, Callable[[], Answer]]:
    """A system's network on its inputs, after a first run whose output is kept."""
    call = SYSTEMS[system].load(case)
    arguments = inputs(network(case))
    if case.device != "cpu":
        call, arguments = _on_gpu(call), _placed(arguments, case.device)
    np.save(case.output(system), _on_host(call(*arguments)))

    def turn() -> Answer:
        return {LATENCY: timed(lambda: call(*arguments), case.warm_up_s, case.seconds)}

    return SYSTEMS[system].told(case), turn


def _placed(arrays: Sequence[Any], device: str) -> list[Any]:
    """The inputs where the network is, so that no copy is timed."""
    import torch  # optional; comparisons on GPUs need it in any case

    return [torch.from_numpy(array).to(device) for array in arrays]


def _on_gpu(call: Callable[..., Any]) -> Callable[..., Any]:
    """A call that returns when the GPU has done its work."""
    import torch

    def run(*arguments: Any) -> Any:
        result = call(*arguments)
        torch.cuda.synchronize()
        return result

    return run


def _on_host(result: Any) -> Any:
    return np.asarray(result if isinstance(result, np.ndarray) else result.cpu())


def timed(call: Callable[[], Any], warm_up_s: float, seconds: float) -> float:
    """Median seconds of one call, each timed alone, after a warm-up."""
    _times(call, warm_up_s, 1)
    return statistics.median(_times(call, seconds, COMPARE.least_runs))


def _times(call: Callable[[], Any], seconds: float, least: int) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


if __name__ == "__main__":
    main(sys.argv[1], Case(**json.loads(sys.argv[2])))
