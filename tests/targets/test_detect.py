"""Parameters that are read from the machine: vector unit, caches; and the use of measurements."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from tvm.target import Target

from ansor.targets.cpu.caches import Caches, read_caches
from ansor.targets.cpu.detect import detect, peak_flops, read_system, with_probe
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cpu.probe.benchmark import CHAINS, Probe
from ansor.targets.cpu.probe.kept import ProbeError
from ansor.targets.cpu.probe.meter import Spec
from ansor.targets.cpu.vectors import VectorUnit, vector_unit
from ansor.targets.target import resolve_target

# At 4 GHz an addition waits one nanosecond; 64 of a run are left when the next one begins.
CHAIN_S = tuple((length - 64) * 1e-9 for length in CHAINS)
PROBE = Probe(512e9, 262e9, 131e9, 255e9, (400e9, 200e9, 40e9), 2e-6, (CHAIN_S[0], CHAIN_S[1]))


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ansor.targets.cpu.probe.kept.cache_file", lambda: tmp_path / "hardware.json"
    )


@pytest.mark.parametrize(
    ("options", "width", "registers"),
    [
        ({"mcpu": "znver5"}, 64, 32),
        ({"mcpu": "skylake-avx512"}, 64, 32),
        ({"mcpu": "skylake-avx512", "mattr": ["-avx512f"]}, 32, 16),
        ({"mcpu": "haswell"}, 32, 16),
        ({"mcpu": "x86-64"}, 16, 16),
        ({"mcpu": "cortex-a72", "mtriple": "aarch64-linux-gnu"}, 16, 32),
    ],
)
def test_the_vector_unit_comes_from_the_features(
    options: dict[str, object], width: int, registers: int
) -> None:
    if options.get("mcpu") in ("znver5", "skylake-avx512", "haswell", "x86-64"):
        options = {"mtriple": "x86_64-linux-gnu", **options}
    assert vector_unit(Target({"kind": "llvm", **options})) == VectorUnit(width, registers)


def _cache(directory: Path, level: int, kind: str, size: str) -> None:
    directory.mkdir(parents=True)
    fields = {"level": str(level), "type": kind, "size": size, "coherency_line_size": "64"}
    for name, text in fields.items():
        (directory / name).write_text(f"{text}\n")


def test_caches_are_read_as_linux_has_them(tmp_path: Path) -> None:
    _cache(tmp_path / "index0", 1, "Data", "48K")
    _cache(tmp_path / "index1", 1, "Instruction", "32K")
    _cache(tmp_path / "index2", 2, "Unified", "1024K")
    _cache(tmp_path / "index3", 3, "Unified", "32M")
    assert read_caches(tmp_path) == Caches((48 << 10, 1 << 20, 32 << 20), 64)


def test_without_a_third_level_the_second_is_the_last(tmp_path: Path) -> None:
    _cache(tmp_path / "index0", 1, "Data", "32768")
    _cache(tmp_path / "index2", 2, "Unified", "512K")
    assert read_caches(tmp_path) == Caches((32 << 10, 512 << 10, 512 << 10), 64)


def test_unreadable_caches_are_unknown(tmp_path: Path) -> None:
    assert read_caches(tmp_path / "nowhere") is None
    _cache(tmp_path / "index0", 1, "Data", "48 of them")
    _cache(tmp_path / "index2", 2, "Unified", "1X")
    assert read_caches(tmp_path) is None


def test_the_system_is_plausible() -> None:
    hardware = read_system(resolve_target("native"), threads=2)
    level1, level2, last = hardware.cache_bytes
    assert hardware.cores == 2
    assert 8 << 10 <= level1 < level2 <= last
    assert hardware.vector_bytes in (16, 32, 64)
    assert hardware.line_bytes in (32, 64, 128)
    assert hardware.name


def test_a_system_without_caches_keeps_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansor.targets.cpu.detect.read_caches", lambda: None)
    assert read_system(resolve_target("native"), 1).cache_bytes == Hardware().cache_bytes


def test_the_measured_peak_is_the_peak() -> None:
    """By hand: 512 GFLOP/s = 2 cores x 2 FMAs x 16 lanes x 2 operations x 4 GHz."""
    hardware = with_probe(Hardware(cores=2, vector_bytes=64), PROBE)
    assert hardware.frequency_hz == pytest.approx(4e9)
    assert hardware.peak_flops == pytest.approx(512e9)
    assert hardware.cache_bandwidth == pytest.approx((50.0, 25.0, 5.0))
    assert hardware.memory_bandwidth == 40e9
    assert hardware.parallel_overhead_s == 2e-6


def test_chains_tell_the_latency_and_how_many_wait() -> None:
    hardware = with_probe(Hardware(cores=2, vector_bytes=64), PROBE)
    assert hardware.fma_latency == pytest.approx(4.0)
    assert hardware.scheduler_window == pytest.approx(64.0)


def test_runs_that_do_not_overlap_leave_a_small_window() -> None:
    apart = replace(PROBE, chain_s=(CHAINS[0] * 1e-9, CHAINS[1] * 1e-9))
    hardware = with_probe(Hardware(cores=2, vector_bytes=64), apart)
    assert 1 < hardware.scheduler_window < 32


def test_disturbed_chains_tell_nothing() -> None:
    default = Hardware(cores=2, vector_bytes=64)
    hardware = with_probe(default, replace(PROBE, chain_s=(3e-7, 2e-7)))
    assert hardware.fma_latency == default.fma_latency
    assert hardware.scheduler_window == default.scheduler_window


def test_units_are_half_as_wide_where_half_a_register_is_as_fast() -> None:
    """By hand: 512 GFLOP/s = 2 cores x 1 FMA x 16 lanes x 2 operations x 8 GHz."""
    plain = with_probe(Hardware(cores=2, vector_bytes=64), PROBE)
    assert (plain.slots, plain.fma_per_cycle, plain.stores_per_cycle) == (1, 2.0, 1.0)
    narrow = with_probe(
        Hardware(cores=2, vector_bytes=64), replace(PROBE, half_flops=PROBE.core_flops)
    )
    assert (narrow.slots, narrow.fma_per_cycle) == (2, 1.0)
    assert (narrow.loads_per_cycle, narrow.stores_per_cycle) == (1.0, 0.5)
    assert narrow.frequency_hz == pytest.approx(8e9)
    assert narrow.peak_flops == pytest.approx(512e9)


def test_operations_are_counted_where_nothing_else_explains_the_time() -> None:
    """By hand: 12 multiply-adds, 12 numbers and a vector loaded, in 12 cycles at 1 each; where they
    take 15, 25 operations do. Two loads each cycle explain 6.5 cycles of 2 multiply-adds each."""
    default = Hardware(cores=2, vector_bytes=32)
    half = replace(PROBE, half_flops=PROBE.core_flops)
    slow = replace(half, product_flops=half.core_flops * 12 / 15)
    assert with_probe(default, half).vector_issue == math.inf
    assert with_probe(default, slow).vector_issue == pytest.approx(25 / 15)
    by_loads = replace(PROBE, product_flops=PROBE.core_flops * 6 / 6.5)
    assert with_probe(default, by_loads).vector_issue == math.inf


@pytest.mark.parametrize("fma_per_cycle", [1.0, 2.0])
def test_the_peak_does_not_depend_on_the_assumed_issue_rate(fma_per_cycle: float) -> None:
    hardware = replace(Hardware(), fma_per_cycle=fma_per_cycle)
    assert with_probe(hardware, PROBE).peak_flops == pytest.approx(512e9)


def test_detect_puts_in_what_was_measured_once() -> None:
    asked: list[Spec] = []

    def run(spec: Spec) -> Probe:
        asked.append(spec)
        return PROBE

    target = resolve_target("native")
    first, second = (detect(target, 2, run=run) for _ in range(2))
    assert first == second
    assert first.peak_flops == pytest.approx(512e9)
    assert [spec.threads for spec in asked] == [2]
    assert peak_flops(target, 2, run=run) == pytest.approx(512e9)
    assert len(asked) == 1
    assert peak_flops(target, 2, fresh=True, run=run) == pytest.approx(512e9)
    assert len(asked) == 2


def test_a_machine_that_cannot_be_measured_keeps_the_defaults(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def run(spec: Spec) -> Probe:
        raise ProbeError("no compiler")

    target = resolve_target("native")
    hardware = detect(target, 2, run=run)
    assert hardware == read_system(target, 2)
    assert "default figures are used: no compiler" in caplog.text
    assert peak_flops(target, 2, run=run) is None
