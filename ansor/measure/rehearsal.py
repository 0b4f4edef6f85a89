"""Programs timed in the run of a whole network.

A program alone finds its input where the run before has left it. In a network other functions have
run in between: weights are out of the caches, inputs lie where their producer has put them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm

from ansor.hardware.memory import aligned, huge_block, plain_block
from ansor.measure.build import ENTRY
from ansor.measure.plan import Call, CallPlan

Bytes = npt.NDArray[np.uint8]
_LEAST_ROUNDS = 3
_DRAWN = 1 << 20  # random floats, of which weights are copies


@dataclass(frozen=True, eq=False)
class Candidate:
    """A built program and the parameters (shapes, dtypes) it wants."""

    module: Any
    params: Sequence[Any]


def rehearse(
    plan: CallPlan, candidates: Mapping[str, Sequence[Candidate]], seconds: float, seed: int
) -> dict[str, list[float]]:
    """Median seconds that each candidate takes for all calls of its function in one run.

    In each run every function is computed by one of its candidates, in a random order, but all
    equally often.

    Args:
        candidates: at least one for each function that is to be run; others are left out.
        seconds: to be spent on runs, as many as fit in, but at least three with each candidate.
    """
    rng = np.random.default_rng(seed)
    stage = _Stage(plan, candidates, rng)
    stage.run(dict.fromkeys(candidates, 0))
    most = max(map(len, candidates.values()))
    times: dict[str, list[list[float]]] = {n: [[] for _ in c] for n, c in candidates.items()}
    rounds, began = 0, time.perf_counter()
    while rounds < _LEAST_ROUNDS or time.perf_counter() - began < seconds:
        rounds += 1
        orders = {name: rng.permutation(most) % len(c) for name, c in candidates.items()}
        for turn in range(most):
            chosen = {name: int(order[turn]) for name, order in orders.items()}
            for name, elapsed in stage.run(chosen).items():
                times[name][chosen[name]].append(elapsed)
    return {name: [statistics.median(own) for own in lists] for name, lists in times.items()}


class _Stage:
    """Every call with the arguments that each candidate takes."""

    def __init__(
        self,
        plan: CallPlan,
        candidates: Mapping[str, Sequence[Candidate]],
        rng: np.random.Generator,
    ) -> None:
        calls = [call for call in plan.calls if call.function in candidates]
        storages = [_filled(plain_block(max(1, size)), rng) for size in plan.storage_bytes]
        weights = _Weights(calls, candidates, rng)
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

    def run(self, chosen: Mapping[str, int]) -> dict[str, float]:
        """One run of the network; seconds by function."""
        seconds = dict.fromkeys(chosen, 0.0)
        for name, prepared in self._calls:
            kernel, arguments = prepared[chosen[name]]
            began = time.perf_counter()
            kernel(*arguments)
            seconds[name] += time.perf_counter() - began
        return seconds


def _arguments(
    call: Call, candidate: Candidate, storages: Sequence[Bytes], weights: Bytes
) -> list[Any]:
    taken, arguments = 0, []
    for place, param in zip(call.buffers, candidate.params, strict=True):
        size = _num_bytes(param)
        if place is None:
            memory = weights[taken : taken + size]
            taken += aligned(size)
        else:
            memory = storages[place][:size]
        if _dtype(param).kind != "f":  # an index into anything must be in range
            memory = plain_block(size)
        arguments.append(tvm.runtime.from_dlpack(memory.view(_dtype(param)).reshape(_shape(param))))
    return arguments


def _filled(block: Bytes, rng: np.random.Generator) -> Bytes:
    """The block full of floats so small that activations stay finite, whatever weights are for."""
    drawn = rng.uniform(-0.01, 0.01, _DRAWN).astype(np.float32).view(np.uint8)
    for first in range(0, len(block), len(drawn)):
        part = block[first : first + len(drawn)]
        part[...] = drawn[: len(part)]
    return block


class _Weights:
    """One block of huge pages with the weights of each call after those of the one before."""

    def __init__(
        self,
        calls: Sequence[Call],
        candidates: Mapping[str, Sequence[Candidate]],
        rng: np.random.Generator,
    ) -> None:
        sizes = [
            max(_weight_bytes(call, candidate) for candidate in candidates[call.function])
            for call in calls
        ]
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        self._block = _filled(huge_block(int(self._starts[-1]) or 1), rng)

    def of(self, number: int) -> Bytes:
        """Memory of one call."""
        return self._block[self._starts[number] : self._starts[number + 1]]


def _weight_bytes(call: Call, candidate: Candidate) -> int:
    pairs = zip(call.buffers, candidate.params, strict=True)
    return sum(aligned(_num_bytes(param)) for place, param in pairs if place is None)


def _shape(param: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in param.shape)


def _dtype(param: Any) -> np.dtype[Any]:
    return np.dtype(str(param.dtype))


def _num_bytes(param: Any) -> int:
    return int(np.prod(_shape(param))) * _dtype(param).itemsize
