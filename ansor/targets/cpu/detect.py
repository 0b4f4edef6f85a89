"""Fills in a `Hardware` for this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tvm.target import Target

from ansor.program.tile_instructions import TILE_INSTRUCTIONS, TILE_ROWS, TILE_WORDS
from ansor.targets.cpu.caches import Caches, read_caches
from ansor.targets.cpu.known_cores import known_core
from ansor.targets.cpu.low_precision import dot_instructions, peak_of
from ansor.targets.cpu.machine import DotUnit, Hardware
from ansor.targets.cpu.probe.benchmark import CHAINS, Probe, peak_meter, start_meter
from ansor.targets.cpu.probe.benchmark_kernels import ACCUMULATORS
from ansor.targets.cpu.probe.kept import Run, measured, processor_name
from ansor.targets.cpu.probe.meter import Spec
from ansor.targets.cpu.target import text
from ansor.targets.cpu.vectors import vector_unit

_LEAST_WAITING = 16.0  # least window in multiply-adds; a measured one is lower on in-order cores
_EXPLAINED = 1.15  # ratio of measured to expected cycles that the ends of loops may explain
# Cycles until a sum can be used: uops.info, Zen 4 and Sapphire Rapids; Arm's optimisation guide of
# Neoverse V1. If a step has several instructions, only the additions wait for the sum.
_LATENCIES = {
    "vdpbf16ps": 6.0,
    "vpdpbusd": 4.0,
    "vpmaddubsw": 1.0,
    "vpmaddwd": 2.0,
    "bfdot": 4.0,
    "sdot": 3.0,
    "udot": 3.0,
    "usdot": 3.0,
}
# Instructions for a register of an operand: two for `uint8`, three for `int8`.
_WIDENING = {"vpmaddwd": 2.5}
# Of products of tiles: Intel's manual of optimization, "Intel AMX".
_TILES_PER_CYCLE, _TILE_LATENCY = 1 / 16, 52.0
_NO_SLOWER = 0.75  # share of the speed on whole registers; units of full width give half


def detect(target: Target, threads: int, *, run: Run | None = None) -> Hardware:
    """The parameters of this machine for programs on `threads` threads; for code of another
    machine, the parameters of a known core.

    The first call measures the machine, which takes three to eleven seconds. Later calls read the
    result from the user's cache. Unknown parameters keep their defaults.

    Args:
        target: a CPU target.
        threads: threads that programs run on.
        run: does the measuring; by default a process of its own.
    """
    hardware = read_system(target, threads)
    if known_core(target) is not None:
        return hardware
    found = measured(spec_of(target, hardware), run=run)
    return hardware if found is None else with_probe(hardware, found)


def read_system(target: Target, threads: int) -> Hardware:
    """The parameters that the target and the system give, without any measurement."""
    known = known_core(target)
    if known is not None:
        known = replace(known, cores=threads)
        return replace(known, dot_units=_dot_units(target, known))
    return described(target, threads, processor_name(), read_caches())


def described(target: Target, threads: int, name: str, caches: Caches | None) -> Hardware:
    """The parameters that follow from a target, and from the name and the caches of a processor."""
    unit = vector_unit(target)
    hardware = Hardware(
        name=name,
        cores=threads,
        vector_bytes=unit.bytes,
        vector_registers=unit.registers,
    )
    hardware = replace(hardware, dot_units=_dot_units(target, hardware))
    if caches is None:
        return hardware
    return replace(hardware, cache_bytes=caches.sizes, line_bytes=caches.line)


def _dot_units(target: Target, hardware: Hardware) -> tuple[DotUnit, ...]:
    """The target's instructions for groups of products, on vectors at the rate of multiply-adds."""
    vectors = (
        DotUnit(
            each.name,
            hardware.fma_per_cycle,
            _LATENCIES[each.mnemonic],
            _WIDENING.get(each.mnemonic, 0.0),
        )
        for each in dot_instructions(target)
    )
    tiles = (
        DotUnit(each.name, _TILES_PER_CYCLE, _TILE_LATENCY, vectors=TILE_ROWS * TILE_WORDS)
        for each in TILE_INSTRUCTIONS
        if peak_of(each.name).is_available(target)
    )
    return (*vectors, *tiles)


def with_probe(hardware: Hardware, probe: Probe) -> Hardware:
    """`hardware` with the measured parameters.

    The clock is the one at which `fma_per_cycle` gives the measured peak. So `peak_flops` is the
    measured peak, even if `fma_per_cycle` is wrong.
    """
    hardware = _with_vector_issue(_with_slots(hardware, probe), probe)
    per_cycle = 2 * hardware.lanes(4) * hardware.fma_per_cycle * hardware.cores
    frequency = probe.peak_flops / per_cycle
    level2, last, memory = (b / frequency / hardware.cores for b in probe.stream_bytes)
    return replace(
        _with_chains(hardware, probe.chain_s, frequency),
        dot_units=_measured_units(hardware, probe, frequency),
        frequency_hz=frequency,
        cache_bandwidth=(level2, last, memory),
        memory_bandwidth=probe.stream_bytes[2],
        parallel_overhead_s=probe.parallel_overhead_s,
    )


def _measured_units(hardware: Hardware, probe: Probe, frequency_hz: float) -> tuple[DotUnit, ...]:
    """The units with their measured rates."""
    rates, cycles = dict(probe.instructions), frequency_hz * hardware.cores

    def measured_unit(unit: DotUnit) -> DotUnit:
        peak = peak_of(unit.instruction)
        if peak.name not in rates:
            return unit
        operations = peak.operations(hardware.vector_bytes)
        return replace(unit, per_cycle=rates[peak.name] / cycles / operations)

    return tuple(map(measured_unit, hardware.dot_units))


def _with_chains(hardware: Hardware, chain_s: tuple[float, float], frequency_hz: float) -> Hardware:
    """`hardware` with the latency of a multiply-add, and with the number w of waiting ones.

    A run of n dependent multiply-adds takes n - w latencies, because the next run begins when w of
    them are left.
    """
    (short, long), (short_s, long_s) = CHAINS, chain_s
    latency_s = (long_s - short_s) / (long - short)
    if latency_s <= 0:  # disturbed
        return hardware
    waiting = max(short - short_s / latency_s, _LEAST_WAITING)
    return replace(hardware, fma_latency=latency_s * frequency_hz, scheduler_window=waiting)


def _with_slots(hardware: Hardware, probe: Probe) -> Hardware:
    """`hardware` with units of half the width, if vectors of half the width lose no speed."""
    if probe.half_flops < _NO_SLOWER * probe.core_flops:
        return hardware
    return replace(
        hardware,
        slots=2,
        fma_per_cycle=hardware.fma_per_cycle / 2,
        loads_per_cycle=hardware.loads_per_cycle / 2,
        stores_per_cycle=hardware.stores_per_cycle / 2,
    )


def _with_vector_issue(hardware: Hardware, probe: Probe) -> Hardware:
    """`hardware` with the number of operations on whole registers that it issues per cycle. It is
    needed if neither units nor loads explain the time of multiply-adds with a loaded operand.

    A step of that kernel is 12 multiply-adds, 12 loads of one element and one of a vector.
    """
    adds, loads = float(ACCUMULATORS), 1 + ACCUMULATORS / hardware.slots
    in_units = adds / hardware.fma_per_cycle
    explained = max(in_units, loads / hardware.loads_per_cycle)
    cycles = in_units * probe.core_flops / probe.product_flops
    if cycles < _EXPLAINED * explained:
        return hardware
    return replace(hardware, vector_issue=(2 * ACCUMULATORS + 1) / cycles)


def peak_flops(
    target: Target, threads: int, *, fresh: bool = False, run: Run | None = None
) -> float | None:
    """Measured fp32 multiply-add peak of `threads` cores in FLOP/s; None if it cannot be measured.

    Args:
        target: a CPU target.
        fresh: measure even if there is an earlier result.
        run: does the measuring; by default a process of its own.
    """
    found = measured(spec_of(target, read_system(target, threads)), run=run, fresh=fresh)
    return None if found is None else found.peak_flops


def peak_meter_here(target: Target, threads: int) -> Callable[[], float]:
    """A function that measures the current peak in GFLOP/s in this process. The pool of threads
    must have its size."""
    flops = peak_meter(spec_of(target, read_system(target, threads)))
    return lambda: flops() / 1e9


def start_meter_here(target: Target, threads: int) -> Callable[[], float]:
    """A function that measures the current seconds of a start of threads, like
    `peak_meter_here`."""
    return start_meter(spec_of(target, read_system(target, threads)))


def spec_of(target: Target, hardware: Hardware) -> Spec:
    """The specification of the micro-benchmark for a target."""
    return Spec(
        text(target, hardware.cores), hardware.cores, hardware.vector_bytes, hardware.cache_bytes
    )
