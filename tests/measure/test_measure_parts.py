"""Small parts of the measurement that need no worker."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
import tvm
from clock import Clock, with_clock
from hypothesis import given
from hypothesis import strategies as st
from ml_dtypes import bfloat16

from ansor.config import MeasureConfig
from ansor.measure.channel import Channel
from ansor.measure.child import timing
from ansor.measure.child.timing import Timed, runs_per_repeat, time_program, time_round
from ansor.measure.child.worker import first_lines
from ansor.measure.function_arguments import (
    arguments_for,
    in_memory,
    in_rows,
    on_host,
    random_arrays,
    relative_difference,
    small_floats,
)
from ansor.measure.result import ErrorKind, Measurement, successful_measurement
from ansor.targets.host.memory import plain_block


def test_latency_is_the_median() -> None:
    assert successful_measurement((3.0, 1.0, 2.0), 0.0, 0.0).latency_s == 2.0


def test_unmeasured_is_none() -> None:
    assert Measurement(error=ErrorKind.BUILD).latency_s is None


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_what_is_no_time_is_a_failure(bad: float) -> None:
    found = successful_measurement((1.0, bad), 0.0, 0.0)
    assert found.error is ErrorKind.RUN
    assert found.latency_s is None


def test_no_times_are_a_failure() -> None:
    assert successful_measurement((), 0.0, 0.0).error is ErrorKind.RUN


@pytest.mark.parametrize(
    ("first_s", "runs"), [(1e-3, 10), (1.0, 1), (0.0, 1000), (1e-8, 1000), (4e-4, 25)]
)
def test_runs_per_repeat(first_s: float, runs: int) -> None:
    config = MeasureConfig(min_time_s=0.03, repeats=3, max_number=1000)
    assert runs_per_repeat(first_s, config) == runs


@dataclass
class Warming:
    """A module whose function takes `cold_s` in its first runs, then `warm_s`."""

    clock: Clock
    cold_s: float
    warm_s: float
    cold_runs: int = 3
    runs: int = 0
    number: int = 0
    cores: set[frozenset[int]] = field(default_factory=set)

    def __getitem__(self, _: str) -> Callable[[], None]:
        return self._run

    def _run(self) -> None:
        self.runs += 1
        self.cores.add(frozenset(os.sched_getaffinity(0)))
        self.clock.sleep(self.cold_s if self.runs <= self.cold_runs else self.warm_s)

    def time_evaluator(self, *_: object, number: int, repeat: int) -> Callable[[], object]:
        self.number = number
        return lambda: SimpleNamespace(results=[self.warm_s] * repeat)


def test_slow_first_runs_do_not_make_a_program_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = with_clock(monkeypatch, timing)

    def timed(cold_s: float, warm_s: float) -> Timed:
        return Timed(Warming(clock, cold_s, warm_s), tvm.cpu(), [[]])

    config = MeasureConfig(repeats=3, min_time_s=0.3, retry_below_s=0.05)
    assert time_program(timed(4e-3, 1e-4), 2e-3, config).latencies_s == (1e-4,) * 3
    assert time_program(timed(4e-3, 4e-3), 2e-3, config).latencies_s == (pytest.approx(4e-3),)
    slower = timed(0.1, 1e-4)
    assert time_program(slower, 2e-3, config).latencies_s == (pytest.approx(0.1),)
    assert slower.module.runs == 1, "what is slow beyond doubt is not run again"


def test_what_is_slower_than_the_best_is_repeated_less(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = with_clock(monkeypatch, timing)
    config = MeasureConfig(repeats=3, abort_factor=3.0, repeat_factor=1.4)
    for best_s, repeats in ((math.inf, 3), (4e-3, 3), (2.9e-3, 3), (2.8e-3, 1), (1.3e-3, 1)):
        module = Warming(clock, 4e-3, 4e-3)
        times = time_program(Timed(module, tvm.cpu(), [[]]), best_s, config).latencies_s
        assert times == (pytest.approx(4e-3),) * repeats
        assert (module.number > 0) == (best_s != 1.3e-3), "a first run says how slow it is"


def test_a_short_first_run_does_not_say_how_many_make_a_repeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = with_clock(monkeypatch, timing)
    config = MeasureConfig(repeats=3, min_time_s=0.03, warm_below_s=2e-4)
    short, long = Warming(clock, 1e-4, 1e-5, 1), Warming(clock, 1e-3, 5e-4, 1)
    for module, runs, number in ((short, 1 + 100, 1000), (long, 1, 10)):
        time_program(Timed(module, tvm.cpu(), [[]]), math.inf, config)
        assert module.runs == runs
        assert module.number == pytest.approx(number, rel=0.1)


def test_every_run_keeps_off_the_threads_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    core = frozenset({min(os.sched_getaffinity(0))})
    monkeypatch.setattr(timing, "free_cores", lambda: core)
    module = Warming(with_clock(monkeypatch, timing), 4e-3, 4e-3)
    time_program(Timed(module, tvm.cpu(), [[]]), 2e-3, MeasureConfig())
    time_round(Timed(module, tvm.cpu(), [[]]), MeasureConfig())
    assert module.cores == {core}


@given(st.lists(st.one_of(st.integers(), st.binary(max_size=2000), st.text()), max_size=5))
def test_messages_cross_a_channel(messages: list[object]) -> None:
    read_fd, write_fd = os.pipe()
    channel = Channel(read_fd, write_fd)
    for message in messages:
        channel.send([message])
    assert [channel.receive() for _ in messages] == [[m] for m in messages]
    channel.close()
    channel.close()


def test_a_channel_knows_its_end() -> None:
    read_fd, write_fd = os.pipe()
    os.close(write_fd)
    with pytest.raises(EOFError):
        Channel(read_fd, os.dup(read_fd)).receive()


def test_difference_is_relative_to_the_largest_value() -> None:
    assert relative_difference([np.array([1.0, 10.5])], [np.array([1.0, 10.0])]) == 0.05


def test_nan_equals_nan_only() -> None:
    nan, one = np.array([np.nan, 2.0]), np.array([1.0, 2.0])
    assert relative_difference([nan], [nan]) == 0.0
    assert relative_difference([nan], [one]) == math.inf
    assert relative_difference([one], [nan]) == math.inf


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "bool", "bfloat16"])
def test_a_tensor_s_values_reach_numpy_whatever_their_type(dtype: str) -> None:
    values = np.array([[0, 1], [1, 1]]).astype(dtype if dtype != "bfloat16" else bfloat16)
    tensor = tvm.runtime.tensor(values)
    found = on_host(tensor)
    del tensor
    assert found.dtype == values.dtype
    assert (found == values).all()


def test_long_arrays_repeat_a_block() -> None:
    """No dimension of the array is in step with the block, and the values are as they should be."""
    func = SimpleNamespace(params=(_Parameter("float32", (9, 1 << 20)),))
    (array,) = random_arrays(func, MeasureConfig(), -1.0)
    assert array.shape == (9, 1 << 20)
    assert -1.0 <= array.min() < -0.999
    assert 0.999 < array.max() < 1.0
    assert all((array[0] != row).any() for row in array[1:])


def test_arguments_lie_where_the_arrays_do_unless_they_change() -> None:
    """Arrays that are written, not aligned, or of another dtype are copied."""
    params = [_Parameter(dtype) for dtype in ("float32", "float32", "float64", "bfloat16", "int8")]
    drawn = [_Parameter(dtype) for dtype in ("float32", "float32", "float32", "bfloat16", "int8")]
    arrays = random_arrays(SimpleNamespace(params=drawn), MeasureConfig(), -1.0)
    arrays[4] = arrays[4][1:]
    tensors = arguments_for(params, arrays, tvm.cpu(), written={1})
    for tensor, array, param in zip(tensors, arrays, params, strict=True):
        assert tensor.dtype == param.dtype
        assert (on_host(tensor) == array).all()
    shared = [on_host(t).ctypes.data == a.ctypes.data for t, a in zip(tensors, arrays, strict=True)]
    assert shared == [True, False, False, True, False]


@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16"])
def test_a_tensor_in_memory_has_the_bytes_that_are_written_there(dtype: str) -> None:
    memory = plain_block(1024)
    tensor = in_memory(memory, _Parameter(dtype))
    values = np.arange(200).reshape(4, 50).astype(np.dtype(dtype))
    memory[: values.nbytes] = values.reshape(-1).view(np.uint8)
    assert str(tensor.dtype) == dtype
    assert (on_host(tensor) == values).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_small_floats_are_finite_in_every_dtype(dtype: str) -> None:
    values = small_floats(np.random.default_rng(0), 0.5, 1000).view(np.dtype(dtype))
    assert np.isfinite(values.astype(np.float64)).all()
    if dtype != "float16":
        assert 0.4 < np.abs(values.astype(np.float64)).max() < 0.51  # of float32, by the lower bits


def test_of_some_rows_the_others_stay_zero() -> None:
    params = [_Parameter("float32"), _Parameter("float32", (3, 4, 50))]
    rows = {1: np.array([0, 5, 11])}
    arrays = random_arrays(SimpleNamespace(params=params), MeasureConfig(), -1.0, rows)
    tensors = arguments_for(params, arrays, tvm.cpu(), written={1}, rows=rows)
    other = np.setdiff1d(np.arange(12), rows[1])
    for array in (arrays[1], on_host(tensors[1])):
        assert array.shape == (3, 4, 50)
        assert (in_rows(array, rows[1]) != 0).all()
        assert (in_rows(array, other) == 0).all()
    assert (on_host(tensors[1]) == arrays[1]).all()
    assert on_host(tensors[1]).ctypes.data != arrays[1].ctypes.data
    assert in_rows(arrays[0], None) is arrays[0]


class _Parameter:
    def __init__(self, dtype: str, shape: tuple[int, ...] = (4, 50)) -> None:
        self.shape, self.dtype = shape, dtype


class _Function:
    params = tuple(map(_Parameter, ["float32", "float16", "int8", "uint8", "int64", "bool"]))


def test_inputs_are_small_and_the_same_for_the_same_seed() -> None:
    first, again = (random_arrays(_Function(), MeasureConfig(), -1.0) for _ in range(2))
    other = random_arrays(_Function(), MeasureConfig(seed=1), -1.0)
    for a, b, c, parameter in zip(first, again, other, _Function.params, strict=True):
        assert str(a.dtype) == parameter.dtype
        assert np.array_equal(a, b)
        assert not np.array_equal(a, c)
        assert a.min() >= (-1 if a.dtype.kind == "f" else 0)
        assert a.max() <= 1
    assert first[0].min() < -0.5


def test_error_texts_are_cut() -> None:
    assert first_lines("a\n\n  b \n") == "a\n  b"
    assert len(first_lines("x" * 10_000)) < 1000
    assert first_lines("\n".join(map(str, range(100)))).count("\n") < 10
