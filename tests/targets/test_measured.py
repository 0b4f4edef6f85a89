"""The micro-benchmark and the file that keeps its results."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
import tvm

from ansor.targets.cpu.detect import read_system
from ansor.targets.cpu.probe import benchmark as probe
from ansor.targets.cpu.probe import benchmark_kernels
from ansor.targets.cpu.probe import kept as measured
from ansor.targets.cpu.probe.benchmark import Probe
from ansor.targets.cpu.probe.kept import ProbeError, key_of, run_probe
from ansor.targets.cpu.probe.meter import Spec, seconds_meter
from ansor.targets.target import resolve_target, target_text

PROBE = Probe(500e9, 250e9, 125e9, 240e9, (400e9, 200e9, 40e9), 2e-6, (130e-9, 450e-9))
OTHER = replace(PROBE, peak_flops=480e9)


def make_spec(threads: int = 2) -> Spec:
    target = resolve_target("native")
    hardware = read_system(target, threads)
    text = target_text(target, threads)
    return Spec(text, threads, hardware.vector_bytes, hardware.cache_bytes)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "hardware.json"


def _never(spec: Spec) -> Probe:
    raise AssertionError("measured again")


def _fails(spec: Spec) -> Probe:
    raise ProbeError("broken")


def test_a_result_is_kept(file: Path) -> None:
    assert measured.measured(make_spec(), run=lambda spec: PROBE, file=file) == PROBE
    assert measured.measured(make_spec(), run=_never, file=file) == PROBE


def test_of_a_fresh_result_what_is_better_is_kept(file: Path) -> None:
    """Rates that are higher, times that are shorter; the result itself is what was seen."""
    second = Probe(480e9, 255e9, 120e9, 245e9, (420e9, 190e9, 45e9), 1e-6, (120e-9, 460e-9))
    best = Probe(500e9, 255e9, 125e9, 245e9, (420e9, 200e9, 45e9), 1e-6, (120e-9, 450e-9))
    measured.measured(make_spec(), run=lambda spec: PROBE, file=file)
    found = measured.measured(make_spec(), run=lambda spec: second, file=file, fresh=True)
    assert found == second
    assert measured.measured(make_spec(), run=_never, file=file) == best


def test_results_of_other_numbers_of_threads_are_kept_beside(file: Path) -> None:
    measured.measured(make_spec(1), run=lambda spec: OTHER, file=file)
    measured.measured(make_spec(2), run=lambda spec: PROBE, file=file)
    assert measured.measured(make_spec(1), run=_never, file=file) == OTHER
    assert len(json.loads(file.read_text())) == 2


def test_the_key_tells_machines_and_versions_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    own = key_of(make_spec())
    monkeypatch.setattr(measured, "version", lambda package: "0.0")
    assert key_of(make_spec()) != own
    monkeypatch.undo()
    monkeypatch.setattr(measured, "processor_name", lambda: "abacus")
    assert key_of(make_spec()) != own


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"%s": 3}'])
def test_a_broken_file_is_written_anew(file: Path, text: str) -> None:
    file.parent.mkdir()
    file.write_text(text)
    assert measured.measured(make_spec(), run=lambda spec: PROBE, file=file) == PROBE
    assert measured.measured(make_spec(), run=_never, file=file) == PROBE


def test_a_kept_result_of_another_form_is_measured_again(file: Path) -> None:
    file.parent.mkdir()
    file.write_text(json.dumps({key_of(make_spec()): {"peak_flops": 1.0}}))
    assert measured.measured(make_spec(), run=lambda spec: PROBE, file=file) == PROBE


def test_a_failure_warns_and_is_not_kept(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert measured.measured(make_spec(), run=_fails, file=file) is None
    assert caplog.records[0].levelno == logging.WARNING
    assert "default figures are used: broken" in caplog.text
    assert not file.exists()


def test_a_disturbed_result_is_used_but_not_kept(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shared = replace(PROBE, peak_flops=PROBE.core_flops)
    assert measured.measured(make_spec(2), run=lambda spec: shared, file=file) == shared
    assert "measured again" in caplog.text
    assert measured.measured(make_spec(2), run=lambda spec: PROBE, file=file) == PROBE
    assert measured.measured(make_spec(2), run=_never, file=file) == PROBE


def test_a_place_that_cannot_be_written_only_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "hardware.json"
    assert measured.measured(make_spec(), run=lambda spec: PROBE, file=place) == PROBE
    assert "cannot keep" in caplog.text


def test_a_process_that_fails_is_a_probe_error() -> None:
    with pytest.raises(ProbeError, match="exit status 1"):
        run_probe(replace(make_spec(), target="no such target"))


def test_a_process_that_hangs_is_a_probe_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "_TIMEOUT_S", 0.01)
    with pytest.raises(ProbeError, match="timed out"):
        run_probe(make_spec())


def test_the_cache_is_the_users() -> None:
    assert measured.cache_file().name == "hardware.json"
    assert "ansor" in measured.cache_file().parts


def test_this_machine_measures_plausibly() -> None:
    """Bounds that any CPU of the last fifteen years keeps, however busy it is."""
    found = run_probe(make_spec(threads=2))
    assert 1e9 < found.core_flops < 1e12
    assert 0.2 * found.core_flops < found.peak_flops < 4 * found.core_flops
    assert 0.2 * found.core_flops < found.product_flops < 1.2 * found.core_flops
    level2, last, memory = found.stream_bytes
    assert 1e9 < memory < 1e12
    assert memory <= last <= level2 < 1e13
    assert 0 <= found.parallel_overhead_s < 1e-2
    short, long = found.chain_s  # 192 and 512 additions, of half a nanosecond at least
    assert 20e-9 < short < long < 100e-6


def _at_once() -> float:
    return 1.0


def test_no_level_is_slower_than_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when other work held a core during every run of an array in the second level."""
    rates = iter([17e9, 170e9, 40e9])
    monkeypatch.setattr(
        probe, "_stream_meter", lambda spec, size, meter: partial(float, next(rates))
    )
    monkeypatch.setattr(probe, "_PAUSE_S", 0.0)
    assert probe._streams(make_spec(), _at_once, seconds_meter) == (170e9, 170e9, 40e9)


def test_other_work_in_one_pass_does_not_change_the_start_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parallel and serial loops in turns; a parallel one was disturbed, and another serial one."""
    passes = {True: cycle([1.0e-6, 1.9e-6, 0.9e-6]), False: cycle([0.8e-6, 0.25e-6, 0.25e-6])}
    meters = iter([True, False])

    def meter(module: object, target: str, number: int) -> Callable[[], float]:
        parallel = next(meters)
        return lambda: next(passes[parallel])

    monkeypatch.setattr(probe, "_PAUSE_S", 0.0)
    assert probe._overhead(make_spec(), _at_once, meter) == pytest.approx(0.65e-6)


def test_a_pass_waits_until_no_core_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores of 100 flop/s: at half of that one is held, the pass runs when both are free."""
    seen: list[float] = []
    rates = cycle([100.0, 100.0, 195.0])

    def flops() -> float:
        seen.append(next(rates))
        return seen[-1]

    monkeypatch.setattr(probe, "_PAUSE_S", 0.0)
    found = probe._in_passes(lambda: seen[-1], lambda: probe._peak(flops, 200.0))
    assert found == [195.0] * probe._PASSES


def test_results_of_another_revision_are_measured_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured.measured(make_spec(), run=lambda spec: PROBE, file=file)
    monkeypatch.setattr(measured, "REVISION", probe.REVISION + 1)
    assert measured.measured(make_spec(), run=lambda spec: OTHER, file=file) == OTHER


def _run(module: tvm.IRModule, *arrays: np.ndarray) -> np.ndarray:
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    tvm.compile(module, "llvm")["main"](*tensors)
    return tensors[-1].numpy()


def test_the_fma_kernel_computes_what_it_says() -> None:
    source = np.random.default_rng(0).standard_normal((64, 4), dtype=np.float32)
    expected = np.zeros(4, dtype=np.float32)
    for row in np.tile(source, (2, 1)):
        expected = expected / 2 + row
    out = _run(
        benchmark_kernels.fma(2, 4, rounds=2), source, np.empty((2, 12, 4), dtype=np.float32)
    )
    np.testing.assert_allclose(out, np.broadcast_to(expected, out.shape), rtol=1e-5)
    assert benchmark_kernels.fma_flops(2, 4, 2) == 2 * 2 * 12 * 4 * 64 * 2


def test_the_product_kernel_computes_what_it_says() -> None:
    rng = np.random.default_rng(0)
    left = rng.standard_normal((64, 12), dtype=np.float32)
    right = rng.standard_normal((64, 4), dtype=np.float32)
    out = _run(benchmark_kernels.product(4, 2), left, right, np.empty((1, 12, 4), dtype=np.float32))
    np.testing.assert_allclose(out[0], 2 * left.T @ right, rtol=1e-4, atol=1e-4)


def test_the_stream_kernel_computes_what_it_says() -> None:
    source = np.random.default_rng(0).standard_normal((2, 5, 12, 4), dtype=np.float32)
    out = _run(benchmark_kernels.stream(2, 4, 5, 3), source, np.empty((2, 12, 4), dtype=np.float32))
    np.testing.assert_allclose(out, 3 * source.sum(axis=1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("parallel", [True, False])
def test_the_touch_kernel_computes_what_it_says(parallel: bool) -> None:
    source = np.arange(4, dtype=np.float32)
    out = _run(benchmark_kernels.touch(4, parallel), source, np.empty(4, dtype=np.float32))
    assert (out == source + 1).all()
