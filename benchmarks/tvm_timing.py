"""Times a function with any schedule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tvm

from ansor.config import MeasureConfig
from ansor.measure.child.timing import Timed, time_program
from ansor.measure.child.timing_conditions import Watch, core_sentinel
from ansor.targets.build import ENTRY, compile_function
from ansor.targets.host.threads import use_threads
from ansor.workloads.workload import Array, numpy_dtype
from benchmarks.operator_case import DISTURBED, REPEATS, WARM_UP_S, Case


def _unwritten(tensor: Any) -> Array:
    """An array for a result, full of values that no program computes."""
    dtype = numpy_dtype(str(tensor.dtype))
    value = np.iinfo(dtype).min if dtype.kind in "iu" else np.nan
    return np.full(tuple(int(size) for size in tensor.shape), value, dtype)


def ready_function(func: Any, case: Case, exact: bool) -> tuple[Array, Callable[[], float]]:
    """The output, and what tells median seconds of a run: of one turn.

    Args:
        func: a TensorIR function with the parameters of the case's workload.
        exact: compile as TVM does by default, with the library's transcendental functions.
    """
    use_threads(case.threads)
    told = tvm.target.Target(case.target) if exact else None
    module = compile_function(func, case.target, exact, told)
    workload = case.workload
    device = tvm.cpu()
    out = tvm.runtime.tensor(_unwritten(workload.tensors[-1]), device)
    arguments = [tvm.runtime.tensor(x, device) for x in case.inputs(workload)]
    sets = [[*arguments, out]]
    module[ENTRY](*sets[0])
    result = out.numpy().copy()
    warm_up = MeasureConfig(min_time_s=WARM_UP_S, repeats=1)
    config = MeasureConfig(min_time_s=case.seconds, repeats=REPEATS, disturbed_repeats=DISTURBED)
    sentinel = core_sentinel(case.target, config, case.peak_gflops * 1e9)
    watch = Watch(sentinel, config) if sentinel else None
    timed = Timed(module, device, sets, watch=watch)

    def turn() -> float:
        time_program(Timed(module, device, sets), math.inf, warm_up)
        return time_program(timed, math.inf, config).latency_s

    return result, turn
