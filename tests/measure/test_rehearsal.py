"""Programs timed in the run of a network: who is called with what, and whose time it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from clock import Clock, with_clock

from ansor.config import MeasureConfig
from ansor.measure.call_plan import CallPlan, PlannedCall
from ansor.measure.child import rehearsal
from ansor.measure.child.rehearsal import CompiledKernel, costs, rehearse
from ansor.targets.build import ENTRY

CONFIG = MeasureConfig()

# first(input, weight, a), second(a, weight, b), first(b, weight, a): the last call reuses storage.
PLAN = CallPlan(
    (
        PlannedCall("first", (0, None, 1)),
        PlannedCall("second", (1, None, 2)),
        PlannedCall("first", (2, None, 1)),
    ),
    (64, 64, 128),
)


@dataclass(frozen=True)
class Param:
    shape: tuple[int, ...]
    dtype: str = "float32"


class Log:
    """Kernels that record their arguments."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.calls: list[tuple[str, list[tuple[int, tuple[int, ...]]]]] = []
        self.values: list[Any] = []

    def candidate(self, name: str, *params: Param, seconds: float = 1e-3) -> CompiledKernel:
        def kernel(*tensors: Any) -> None:
            arrays = [np.from_dlpack(tensor) for tensor in tensors]
            self.calls.append((name, [(a.ctypes.data, a.shape) for a in arrays]))
            self.values += [a.copy() for a in arrays]
            self.clock.sleep(seconds)

        entry: dict[str, Callable[..., None]] = {ENTRY: kernel}
        return CompiledKernel(entry, params)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    return Log(with_clock(monkeypatch, rehearsal))


def small(*shapes: tuple[int, ...]) -> tuple[Param, ...]:
    return tuple(Param(shape) for shape in shapes)


def test_a_small_network_is_run_no_more_often_than_it_needs(log: Log) -> None:
    own = [log.candidate(name, *small((16,), (4, 8), (16,)), seconds=1e-6) for name in "abc"]
    rehearse(PLAN, {"first": own}, 10.0, MeasureConfig(rehearsal_rounds=7))
    first, *runs = [name for name, _ in log.calls][::2]  # two calls each; the first run sizes them
    assert first == "a"
    assert Counter(runs) == {"a": 7, "b": 7, "c": 7}


def test_storages_are_shared_and_weights_are_not(log: Log) -> None:
    plain = log.candidate("plain", *small((16,), (4, 8), (16,)))
    packed = log.candidate("packed", *small((16,), (2, 4, 8), (16,)))
    other = log.candidate("other", *small((16,), (3, 3), (16,)))
    rehearse(PLAN, {"first": [plain, packed], "second": [other]}, 0.1, CONFIG)
    for start in range(0, len(log.calls), 3):
        (_, a), (_, b), (_, c) = log.calls[start : start + 3]
        assert a[2][0] == b[0][0] == c[2][0], "an operand lies where it was written"
        assert b[2][0] == c[0][0]
        assert len({a[1][0], b[1][0], c[1][0], a[0][0], a[2][0], b[2][0]}) == 6
    weights = {name: {own[1] for n, own in log.calls if n == name} for name in ("plain", "packed")}
    assert {shape for _, shape in weights["plain"]} == {(4, 8)}
    assert {shape for _, shape in weights["packed"]} == {(2, 4, 8)}
    assert len(weights["plain"]) == len(weights["packed"]) == 2, "one for each call"
    ends = sorted((first, first + 256) for first, _ in weights["packed"])
    assert ends[0][1] <= ends[1][0], "weights of two calls do not overlap"
    assert all(first % 64 == 0 for _, own in log.calls for first, _ in own)


def test_all_candidates_get_their_turns_and_their_own_times(log: Log) -> None:
    slow = log.candidate("slow", *small((16,), (8,), (16,)), seconds=4e-3)
    fast = log.candidate("fast", *small((16,), (8,), (16,)), seconds=1e-3)
    other = log.candidate("other", *small((16,), (8,), (16,)), seconds=2e-3)
    found = rehearse(PLAN, {"first": [slow, fast], "second": [other]}, 0.1, CONFIG)
    assert found["first"] == pytest.approx([8e-3, 2e-3])  # two calls in each run
    assert found["second"] == pytest.approx([2e-3])
    counts = Counter(name for name, _ in log.calls)
    assert abs(counts["slow"] - counts["fast"]) <= 2, "but for the first run"


def test_slow_networks_are_run_with_fewer_candidates(log: Log) -> None:
    own = [log.candidate(str(i), *small((16,), (8,), (16,)), seconds=1e-2) for i in range(5)]
    found = rehearse(PLAN, {"first": own}, 0.15, CONFIG)
    assert 1 <= len(found["first"]) <= 2, "of 20 ms a run, three with each"
    assert {name for name, _ in log.calls} <= {"0", "1"}
    assert len(rehearse(PLAN, {"first": own}, 0.001, CONFIG)["first"]) == 1


def test_functions_without_candidates_are_left_out(log: Log) -> None:
    only = log.candidate("only", *small((16,), (8,), (16,)))
    assert set(rehearse(PLAN, {"second": [only]}, 0.0, CONFIG)) == {"second"}
    assert {name for name, _ in log.calls} == {"only"}


def test_values_are_small_and_indices_are_in_range(log: Log) -> None:
    params = (Param((16,)), Param((8,), "int32"), Param((16,)))
    rehearse(PLAN, {"first": [log.candidate("a", *params)]}, 0.0, CONFIG)
    for value in log.values:
        if value.dtype == np.int32:
            assert not value.any()
        else:
            assert 0 < np.abs(value).max() <= 0.01


def test_what_the_next_call_takes_counts() -> None:
    """Candidate 1 of the first call is faster, but the second call suffers more than that."""
    rng = np.random.default_rng(0)
    choices = np.stack([rng.permutation(400) % 2, rng.permutation(400) % 3], axis=1)
    first = np.where(choices[:, 0] == 0, 10.0, 9.0)
    second = np.asarray([5.0, 7.0, 6.0])[choices[:, 1]] + np.where(choices[:, 0] == 0, 0.0, 4.0)
    noise = rng.normal(0, 0.05, (400, 2))
    own, other = costs(np.stack([first, second], axis=1) + noise, choices)
    assert own[1] - own[0] == pytest.approx(3.0, abs=0.3)
    assert np.argsort(other).tolist() == [0, 2, 1], "all of them suffer alike"


def test_without_a_next_call_the_middle_half_counts() -> None:
    times = np.asarray([[0.1], [5.0], [1.0], [5.0], [1.2], [5.0], [9.0], [5.0]])
    (own,) = costs(times, np.asarray([[0], [1]] * 4))
    assert own.tolist() == pytest.approx([1.1, 5.0])


def test_bfloat16_has_tensors_too(log: Log) -> None:
    params = (Param((16,), "bfloat16"), Param((8,), "bfloat16"), Param((16,)))

    def kernel(*tensors: Any) -> None:
        log.values += [str(tensor.dtype) for tensor in tensors]
        log.clock.sleep(1e-3)

    rehearse(PLAN, {"first": [CompiledKernel({ENTRY: kernel}, params)]}, 0.0, CONFIG)
    assert set(log.values) == {"bfloat16", "float32"}
