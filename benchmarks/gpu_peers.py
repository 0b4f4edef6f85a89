"""Peers of operators on a GPU, and their timing: kernels alone, all warm."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm.ir import load_json

from ansor.targets.build import ENTRY, compile_function
from ansor.targets.cuda.machine import Gpu
from ansor.workloads.workload import Array
from benchmarks.operator_case import Case
from benchmarks.operator_peers import tune_metaschedule

Run = Callable[[], float]  # seconds of a run


def tvm_run(
    func: Any, inputs: Sequence[Array], expected: Array, target: str, exact: bool = False
) -> tuple[Run, float]:
    """A scheduled function, by events on the device, and the error of its result: the largest
    difference over the largest value. `exact` as for `compile_function`."""
    module, device = compile_function(func, target, exact), tvm.cuda(0)
    out = tvm.runtime.tensor(np.full(expected.shape, np.nan, dtype=expected.dtype), device)
    arguments = [*(tvm.runtime.tensor(x, device) for x in inputs), out]
    module[ENTRY](*arguments)
    error = float(np.abs(out.numpy() - expected).max() / np.abs(expected).max())

    def run() -> float:
        evaluator = module.time_evaluator(ENTRY, device, number=20, repeat=5, min_repeat_ms=20)
        return float(statistics.median(evaluator(*arguments).results))

    return run, error


def torch_run(op: str, inputs: Sequence[Array], channels_last: bool, tf32: bool) -> Run:
    """PyTorch's form of an operator as a recorded graph, so that no call from Python is timed; with
    `tf32` it may round operands in float32, as ours are."""
    import torch  # optional

    from benchmarks.peers_torch import form, shape_of

    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    made = form(op, inputs, channels_last, shape_of(op), "cuda")
    repeats = 20
    with torch.inference_mode():
        for _ in range(3):  # cuDNN tries its algorithms
            made.call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(repeats):
                made.call()

    def run() -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        graph.replay()
        times = []
        for _ in range(5):
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(float(start.elapsed_time(end)) / 1e3 / repeats)
        return statistics.median(times)

    return run


def metaschedule_target(gpu: Gpu) -> str:
    """Text of the target with the limits that MetaSchedule keeps to.

    Its rules for CUDA cores and for tensor cores are chosen by the architecture. It rounds nothing
    to tf32.
    """
    limits = {
        "max_threads_per_block": gpu.threads_per_block,
        "max_shared_memory_per_block": gpu.shared_per_block,
        "registers_per_block": gpu.registers_per_sm,
        "thread_warp_size": gpu.warp,
    }
    about = {"kind": "cuda", "arch": gpu.arch, "model": gpu.name}
    return json.dumps({**about, **limits}, sort_keys=True)


def metaschedule_program(case: Case) -> tuple[Any, dict[str, Any]]:
    """The best function that MetaSchedule finds, measured by its own runner on this machine's GPU,
    and "tuning_s" and "trials" of its search, of an earlier run if there was one.

    Raises:
        ChildError: it fails, hangs or is not installed; the last line of its output.
    """
    notes = tune_metaschedule(case)
    return load_json(case.program("metaschedule").read_text(encoding="utf-8")), notes
