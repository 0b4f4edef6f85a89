"""Times PyTorch's form of an operator."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ansor.compare.child import timed
from ansor.config import MeasureConfig
from ansor.frontend.importers.from_torch.capture import array_of
from ansor.measure.child.quiet_times import Repeats, quiet_times
from ansor.measure.child.timing_conditions import Conditions, Sentinel
from ansor.workloads.workload import Array
from benchmarks.operator_case import DISTURBED, REPEATS, WARM_UP_S, Case
from benchmarks.peers_torch import form, shape_of
from benchmarks.peers_torch_int8 import integer_form

_SIZE = 256  # of a square product, 0.1 ms, that tells whether the machine runs at full speed


def ready_torch(case: Case, channels_last: bool) -> tuple[Array, Callable[[], float]]:
    """The output in the definition's layout, and what tells median seconds of a call: of one turn,
    while the machine runs at full speed, as our own are taken."""
    torch.set_num_threads(case.threads)
    inputs = case.inputs(case.workload)
    make = integer_form if case.dtype == "int8" else form
    made = make(case.op, inputs, channels_last, shape_of(case.op))
    with torch.inference_mode():
        out = array_of(made.finish(made.call()))
    config = MeasureConfig(disturbed_repeats=DISTURBED)
    square = torch.ones(_SIZE, _SIZE)
    sentinel = Sentinel(
        lambda: timed(lambda: torch.mm(square, square), 0.0, 0.0), config.quiet_factor
    )

    repeats, conditions = Repeats(REPEATS, 1, 1, math.inf), Conditions((sentinel,))

    def once(number: int) -> float:
        return timed(made.call, 0.0, case.seconds / REPEATS)

    def turn() -> float:
        with torch.inference_mode():
            timed(made.call, 0.0, WARM_UP_S)
            return quiet_times(once, repeats, conditions, config).latency_s

    return out, turn
