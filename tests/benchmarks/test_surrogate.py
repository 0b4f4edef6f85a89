"""Surrogates: fitted to records, stored, and asked like any device."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from definitions import HARDWARE, dag, sketches, workload
from fake_world import drafted

from ansor.annotate.sample import sample
from ansor.config import FULL
from ansor.database.database import Database
from ansor.database.record import Record, here_and_now
from ansor.errors import ArgumentError
from ansor.executor import in_turns
from ansor.measure.fake import FakeDevice
from ansor.measure.result import ErrorKind, Measurement
from ansor.program.codec import encode
from ansor.program.program import Program
from ansor.program.sketch import Population
from ansor.task import Task
from benchmarks.surrogate_device import SurrogateDevice
from benchmarks.surrogate_fitting import fitted, runs_s, sample_of
from benchmarks.surrogate_inputs import aligned, inputs_of, varying
from benchmarks.surrogate_measuring import MEASURING, Measuring
from benchmarks.surrogate_model import Surrogate, SurrogateError, read, write

NAME = "matmul_relu"
TASK = Task(NAME, workload(NAME).func, dag(NAME), "fake")
OTHER = Task("matmul", workload("matmul").func, dag("matmul"), "fake")
SLOW_S = 1.2e-5  # programs that take longer fail


def drawn(count: int, seed: int) -> list[Population]:
    """Random programs of each sketch."""
    rng = np.random.default_rng(seed)
    return [sample(sketch, count, rng) for sketch in sketches(NAME)]


def programs(populations: list[Population]) -> list[Program]:
    return [p.program(row) for p in populations for row in range(len(p))]


def measured(program: Program) -> Measurement:
    """Seconds by the draft; slow programs run out of time."""
    latency_s = drafted(TASK, program)
    if latency_s > SLOW_S:
        return Measurement(error=ErrorKind.TIMEOUT, message="slow", build_s=0.5)
    run_s = 0.05 + runs_s(latency_s, None, FULL.measure)
    return Measurement((latency_s,), build_s=0.25, run_s=run_s)


@cache
def records() -> tuple[Record, ...]:
    origin = here_and_now(None)
    found = programs(drawn(60, 0))
    return tuple(Record(TASK.key, "fake", program, measured(program), origin) for program in found)


@cache
def made() -> Surrogate:
    return fitted("op", TASK, sample_of(sketches(NAME), records()), {"processor": "a"}, 7.0)


def device(surrogate: Surrogate | None = None) -> SurrogateDevice:
    """A device whose own time does not pass."""
    return SurrogateDevice([surrogate or made()], HARDWARE, workers=2, clock=lambda: 100.0)


def test_the_quality_is_that_of_programs_that_were_held_out() -> None:
    quality = made().quality
    failures = sum(record.latency_s is None for record in records())
    assert (quality.failures, quality.programs) == (failures, len(records()) - failures)
    assert 0 < quality.held_out < quality.programs / 3
    assert quality.spearman > 0.8
    assert quality.error < 0.25
    assert quality.best_of_10 < 1.5
    assert quality.failures_predicted is not None
    assert quality.failures_predicted > 0.5 > quality.false_failures
    assert made().overhead_s == pytest.approx(0.05)


def test_a_file_gives_back_the_same_predictions(tmp_path: Path) -> None:
    file = tmp_path / "op.json.xz"
    write(made(), file)
    again = read(file)
    fields = ("op", "key", "target", "about", "columns", "failure_kind", "overhead_s", "timeout_s")
    assert again.quality == made().quality
    assert [getattr(again, f) for f in fields] == [getattr(made(), f) for f in fields]
    for population in drawn(20, 1):
        first, second = made().predict(population), again.predict(population)
        np.testing.assert_array_equal(first.latency_s, second.latency_s)
        np.testing.assert_array_equal(first.build_s, second.build_s)
        np.testing.assert_array_equal(first.fails, second.fails)


def test_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(SurrogateError, match=r"absent.json.xz: there is no .*benchmarks.surrogate"):
        read(tmp_path / "absent.json.xz")
    for content in (b"text", lzma.compress(b"{}"), lzma.compress(b'{"version": 0}')):
        file = tmp_path / "broken.json.xz"
        file.write_bytes(content)
        with pytest.raises(SurrogateError, match=r"broken\.json\.xz"):
            read(file)


def test_too_few_programs_are_refused() -> None:
    with pytest.raises(SurrogateError, match="op: 0 programs ran, at least 32"):
        fitted("op", TASK, sample_of(sketches(NAME), []), {})


def test_the_device_is_deterministic_and_agrees_with_the_trees() -> None:
    batch = programs(drawn(8, 2))
    first, second = (device().measure(TASK, batch, None) for _ in range(2))
    assert first == second
    one_by_one = [device().measure(TASK, [program], None)[0] for program in reversed(batch)]
    assert [r.latency_s for r in reversed(one_by_one)] == [r.latency_s for r in first]
    errors = {result.error for result in first}
    assert errors == {None, ErrorKind.TIMEOUT}
    ratios = [
        result.latency_s / drafted(TASK, program)
        for program, result in zip(batch, first, strict=True)
        if result.latency_s is not None
    ]
    assert 0.8 < np.median(ratios) < 1.25
    times = device().compare(TASK, batch, 3)
    assert times == [result.latency_s for result in first]


def test_the_clock_has_the_seconds_of_builds_and_runs() -> None:
    batch = programs(drawn(8, 3))
    simulated = device()
    results = simulated.measure(TASK, batch, None)
    assert simulated.count == len(batch)
    build_s, run_s = sum(r.build_s for r in results), sum(r.run_s for r in results)
    assert simulated.now() == pytest.approx(100 + build_s / 2 + run_s)
    fast = [r for r in results if r.error is None]
    assert all(r.build_s == pytest.approx(0.25, rel=0.1) for r in fast)
    assert all(r.run_s > made().overhead_s for r in fast)
    failed = [r for r in results if r.error is not None]
    assert all(r.run_s == 7.0 for r in failed)


def test_unknown_tasks_and_sketches_are_named() -> None:
    with pytest.raises(ArgumentError, match="give one of op"):
        device().measure(OTHER, [], None)
    (result,) = device().measure(TASK, [Program()], None)
    assert result.error is ErrorKind.LOWER
    assert "no such sketch" in result.message


@pytest.mark.parametrize(
    ("latency_s", "best_s", "expected_s"),
    [
        (2.0, None, 2.0),  # once
        (0.2, None, 0.4),  # in one repeat
        (0.01, None, 0.04),  # a first run, and three repeats of one run
        (0.001, None, 0.001 * (1 + 3 * 7)),  # 20 ms in three repeats
        (0.01, 0.001, 0.01),  # much slower than the best
        (0.01, 0.006, 0.02),  # slower than the best
    ],
)
def test_seconds_of_a_measurement(
    latency_s: float, best_s: float | None, expected_s: float
) -> None:
    assert runs_s(latency_s, best_s, FULL.measure) == pytest.approx(expected_s)


def test_columns_are_aligned_by_name() -> None:
    parts = [inputs_of(population) for population in drawn(4, 4)]
    columns = varying(parts)
    assert 0 < len(columns) < len({name for part in parts for name in part.names})
    part = parts[-1]
    values = aligned(part, columns)
    for number, name in enumerate(columns):
        if name in part.names:
            np.testing.assert_array_equal(values[:, number], part.values[:, part.names.index(name)])
        else:
            assert np.isnan(values[:, number]).all()


class Shared(FakeDevice):
    """A device with an executor, as `LocalDevice` has one."""

    share = staticmethod(in_turns)


def test_measuring_goes_on_from_the_database(tmp_path: Path) -> None:
    inner = Shared(lambda task, program: drafted(TASK, program))

    def run(count: int) -> list[Record]:
        with Database(tmp_path / "records.sqlite") as database:
            measuring = Measuring(inner, HARDWARE, database, 1e9, lambda: 0.0)
            assert measuring.measure(TASK, count) == count
            return database.records(TASK.key, TASK.target)

    run(70)
    found = run(140)
    assert inner.count == 140 == len({encode(record.program) for record in found})
    random = sum(record.origin.seed is None for record in found)
    assert MEASURING.random_share * 140 <= random <= MEASURING.chunk * 2


def test_no_measurement_begins_after_the_time_is_up() -> None:
    inner = Shared(lambda task, program: 1e-3)
    with Database() as database:
        late = Measuring(inner, HARDWARE, database, 1.0, lambda: 1.0)
        assert late.measure(TASK, 64) == 0
    assert inner.count == 0
