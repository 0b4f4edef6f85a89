"""Programs timed in the run of a whole network.

A program that runs alone finds its input in the caches, where its last run has left it. In a
network, other functions run in between: the caches hold no weights, and inputs are where their
producer has written them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ansor.config import MeasureConfig
from ansor.measure.call_plan import CallPlan, PlannedCall
from ansor.measure.function_arguments import (
    in_memory,
    is_float,
    num_bytes,
    parameter_dtype,
    small_floats,
)
from ansor.targets.build import ENTRY
from ansor.targets.host.memory import aligned, huge_block, plain_block

Bytes = npt.NDArray[np.uint8]
Seconds = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CompiledKernel:
    """A built program and its parameters (shapes, dtypes)."""

    module: Any
    params: Sequence[Any]


def rehearse(
    plan: CallPlan,
    candidates: Mapping[str, Sequence[CompiledKernel]],
    seconds: float,
    config: MeasureConfig,
) -> dict[str, list[float]]:
    """Seconds that each candidate costs in one run, all calls of its function together.

    In each run, one of its candidates computes each function. The order of candidates is random,
    and all run equally often. The effect on the time of the next call counts, too, because its
    input may be in the cache of the wrong core.

    Args:
        candidates: at least one for each function that is to be run; others are left out.
        seconds: to be spent on runs, as many as fit in.
        config: the least and largest number of turns of each candidate.

    Returns:
        by function, of the first of its candidates. There are fewer candidates if a run takes so
        long that their least number of turns exceeds the time.
    """
    rng = np.random.default_rng(config.seed)
    stage = _Stage(plan, candidates, rng, config.rehearsal_drawn)
    run_s = sum(stage.run(dict.fromkeys(candidates, 0)))
    fitting = max(1, int(seconds / (config.least_rounds * run_s)))
    candidates = {name: kernels[:fitting] for name, kernels in candidates.items()}
    most = max(map(len, candidates.values()))
    times: list[list[float]] = []
    choices: list[list[int]] = []
    rounds, began = 0, time.perf_counter()
    while rounds < config.least_rounds or (
        rounds < config.rehearsal_rounds and time.perf_counter() - began < seconds
    ):
        rounds += 1
        orders = {name: rng.permutation(most) % len(c) for name, c in candidates.items()}
        for turn in range(most):
            chosen = {name: int(order[turn]) for name, order in orders.items()}
            times.append(stage.run(chosen))
            choices.append([chosen[name] for name in stage.functions])
    found = costs(np.asarray(times), np.asarray(choices))
    total = {name: np.zeros(len(kernels)) for name, kernels in candidates.items()}
    for name, latencies in zip(stage.functions, found, strict=True):
        total[name] += latencies
    return {name: latencies.tolist() for name, latencies in total.items()}


def costs(times: Seconds, choices: npt.NDArray[np.int64]) -> list[Seconds]:
    """The cost of each candidate at each call.

    Args:
        times: `[runs, calls]`, seconds.
        choices: `[runs, calls]`, number of the candidate that was run.

    Returns:
        for each call, by candidate, its usual time, plus the usual time of the next call beyond the
        usual time of that call's candidate.
    """
    usual = [_usual(times[:, c], choices[:, c]) for c in range(times.shape[1])]
    beyond = np.stack([times[:, c] - own[choices[:, c]] for c, own in enumerate(usual)], axis=1)
    return [
        own if c + 1 == len(usual) else own + _usual(beyond[:, c + 1], choices[:, c])
        for c, own in enumerate(usual)
    ]


def _usual(values: Seconds, groups: npt.NDArray[np.int64]) -> Seconds:
    """Mean of the middle half of each group: it excludes disturbed runs and includes two modes."""
    found = []
    for group in range(groups.max() + 1):
        own = np.sort(values[groups == group])
        cut = len(own) // 4
        found.append(own[cut : len(own) - cut].mean())
    return np.asarray(found)


class _Stage:
    """Every call with the arguments of each candidate."""

    def __init__(
        self,
        plan: CallPlan,
        candidates: Mapping[str, Sequence[CompiledKernel]],
        rng: np.random.Generator,
        drawn: int,
    ) -> None:
        calls = [call for call in plan.calls if call.function in candidates]
        self.functions = [call.function for call in calls]
        storages = [_filled(plain_block(max(1, size)), rng, drawn) for size in plan.storage_bytes]
        weights = _Weights(calls, candidates, rng, drawn)
        self._calls = [
            (
                call.function,
                [
                    (candidate.module[ENTRY], _arguments(call, candidate, storages, weights.of(i)))
                    for candidate in candidates[call.function]
                ],
            )
            for i, call in enumerate(calls)
        ]

    def run(self, chosen: Mapping[str, int]) -> list[float]:
        """One run of the network; seconds by call."""
        seconds = []
        for name, prepared in self._calls:
            kernel, arguments = prepared[chosen[name]]
            began = time.perf_counter()
            kernel(*arguments)
            seconds.append(time.perf_counter() - began)
        return seconds


def _arguments(
    call: PlannedCall, candidate: CompiledKernel, storages: Sequence[Bytes], weights: Bytes
) -> list[Any]:
    taken, arguments = 0, []
    for place, param in zip(call.buffers, candidate.params, strict=True):
        size = num_bytes(param)
        if place is None:
            memory = weights[taken:]
            taken += aligned(size)
        else:
            memory = storages[place]
        if not _is_number(parameter_dtype(param)):  # indices must be in range
            memory = plain_block(max(1, size))
        arguments.append(in_memory(memory, param))
    return arguments


def _is_number(dtype: np.dtype[Any]) -> bool:
    """Whether values of a dtype are data: floats, and quantised numbers, which are bytes."""
    return is_float(dtype) or (dtype.kind in "iu" and dtype.itemsize == 1)


def _filled(block: Bytes, rng: np.random.Generator, drawn: int) -> Bytes:
    """The block filled with floats that are so small that activations stay finite."""
    values = small_floats(rng, 0.01, drawn)
    for first in range(0, len(block), len(values)):
        part = block[first : first + len(values)]
        part[...] = values[: len(part)]
    return block


class _Weights:
    """One block of huge pages with the weights of all calls, in their order."""

    def __init__(
        self,
        calls: Sequence[PlannedCall],
        candidates: Mapping[str, Sequence[CompiledKernel]],
        rng: np.random.Generator,
        drawn: int,
    ) -> None:
        sizes = [
            max(_weight_bytes(call, candidate) for candidate in candidates[call.function])
            for call in calls
        ]
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        self._block = _filled(huge_block(int(self._starts[-1]) or 1), rng, drawn)

    def of(self, number: int) -> Bytes:
        """Memory of one call."""
        return self._block[self._starts[number] : self._starts[number + 1]]


def _weight_bytes(call: PlannedCall, candidate: CompiledKernel) -> int:
    pairs = zip(call.buffers, candidate.params, strict=True)
    return sum(aligned(num_bytes(param)) for place, param in pairs if place is None)
