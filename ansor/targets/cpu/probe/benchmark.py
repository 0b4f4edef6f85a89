"""Measures this machine in a separate process: ``python -m ansor.targets.cpu.probe SPEC``.

TVM sizes its pool of threads on first use and from the environment, so the number of threads can
be chosen only before a process runs its first kernel. The result goes to standard output as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import tvm

from ansor.targets.cpu.probe import benchmark_kernels
from ansor.targets.cpu.probe.instruction_peak import INSTRUCTIONS, operations_meter
from ansor.targets.cpu.probe.meter import Meter, Spec, seconds_meter

T = TypeVar("T")

REVISION = 7  # of the measurements; results of other revisions are measured again
_FMA_ROUNDS = 4096  # about 0.4 ms at 250 GFLOP/s
CHAINS = (192, 512)  # dependent multiply-adds; more than a scheduler holds
_CHAIN_RUNS = 128
_PLACES = 3  # in memory for each measurement
_ATTEMPTS = 8  # at most, until all cores are free of other work
_PAUSE_S = 0.1  # between attempts, and between passes
_ALL_CORES = 0.9  # of a single core's rate, times cores: the best rate to expect
_BUSY = 0.55  # of the same; below it a core is shared, which halves the rate of all
_PASSES = 5  # of measurements that other work may disturb
_STREAM_BYTES = 64 << 20  # read from a cache in one run; from memory, the array is read once
_L2_SHARE = 0.375  # of the second cache; just half of it is read a fifth faster (Zen 5)
_MEMORY_FACTOR = 4  # ratio of an array to the last cache, so that it comes from memory
_MOST_MEMORY = 512 << 20  # bytes of that array


@dataclass(frozen=True)
class Probe:
    """The measurements, all in fp32.

    Attributes:
        peak_flops: multiply-adds of all cores, two operations each, per second.
        core_flops: the same of one core alone.
        half_flops: the same on vectors of half the width.
        product_flops: of one core alone, with a broadcast load for each multiply-add.
        stream_bytes: bytes per second that all cores together read from L2, last level, memory.
        parallel_overhead_s: seconds that starting and joining a parallel loop adds.
        chain_s: seconds of a run of dependent multiply-adds after another run, for a short and a
            long run (`CHAINS`).
        instructions: names of instructions that add up products in low precision, with the
            operations per second of all cores.
    """

    peak_flops: float
    core_flops: float
    half_flops: float
    product_flops: float
    stream_bytes: tuple[float, float, float]
    parallel_overhead_s: float
    chain_s: tuple[float, float]
    instructions: tuple[tuple[str, float], ...] = ()

    def at_best(self, other: Probe) -> Probe:
        """The better of each figure, because other work only makes a kernel slower."""
        return Probe(
            peak_flops=max(self.peak_flops, other.peak_flops),
            core_flops=max(self.core_flops, other.core_flops),
            half_flops=max(self.half_flops, other.half_flops),
            product_flops=max(self.product_flops, other.product_flops),
            stream_bytes=_each(max, self.stream_bytes, other.stream_bytes),
            parallel_overhead_s=min(self.parallel_overhead_s, other.parallel_overhead_s),
            chain_s=_each(min, self.chain_s, other.chain_s),
            instructions=_best_rates(self.instructions, other.instructions),
        )

    def was_disturbed(self, threads: int) -> bool:
        """Whether other work probably ran on one of the cores."""
        return self.peak_flops < _BUSY * threads * self.core_flops


def _best_rates(*rates: tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
    """The higher rate of each instruction."""
    best: dict[str, float] = {}
    for name, rate in (pair for each in rates for pair in each):
        best[name] = max(rate, best.get(name, 0.0))
    return tuple(sorted(best.items()))


def _each(better: Callable[[float, float], float], ours: Any, theirs: Any) -> Any:
    """Combines two results figure by figure."""
    return tuple(map(better, ours, theirs))


def probe(spec: Spec, meter: Meter = seconds_meter) -> Probe:
    """Runs the micro-benchmark; the pool of threads must have its size already.

    Args:
        meter: runs the kernels; by default in this process.
    """
    core, half, product = _core_flops(spec, meter)
    peak = partial(_peak, peak_meter(spec, meter), spec.threads * core)
    return Probe(
        peak_flops=peak(),
        core_flops=core,
        half_flops=half,
        product_flops=product,
        stream_bytes=_streams(spec, peak, meter),
        parallel_overhead_s=_overhead(spec, peak, meter),
        chain_s=_chains(spec, meter),
        instructions=_instruction_rates(spec, peak, meter),
    )


def _core_flops(spec: Spec, meter: Meter) -> tuple[float, float, float]:
    """Flop/s of one core on whole registers, on half registers, and of products; each at its best
    of a few passes, as the clock may change between them."""
    meters = (
        _flops_meter(spec, 1, spec.lanes, meter),
        _flops_meter(spec, 1, spec.lanes // 2, meter),
        _product_meter(spec, meter),
    )
    passes = _in_passes(lambda: [flops() for flops in meters])
    core, half, product = (max(found) for found in zip(*passes, strict=True))
    return core, half, product


def _flops_meter(spec: Spec, parts: int, lanes: int, meter: Meter) -> Callable[[], float]:
    best_s = meter(benchmark_kernels.fma(parts, lanes, _FMA_ROUNDS), spec.target, 3)
    return lambda: benchmark_kernels.fma_flops(parts, lanes, _FMA_ROUNDS) / best_s()


def _product_meter(spec: Spec, meter: Meter) -> Callable[[], float]:
    best_s = meter(benchmark_kernels.product(spec.lanes, _FMA_ROUNDS), spec.target, 3)
    return lambda: benchmark_kernels.fma_flops(1, spec.lanes, _FMA_ROUNDS) / best_s()


def peak_meter(spec: Spec, meter: Meter = seconds_meter) -> Callable[[], float]:
    """A function that measures the current flop/s of all cores; the pool of threads must have its
    size."""
    return _flops_meter(spec, spec.threads, spec.lanes, meter)


def start_meter(spec: Spec) -> Callable[[], float]:
    """A function that measures the current seconds to start and join threads; the pool of threads
    must have its size."""
    return seconds_meter(benchmark_kernels.touch(spec.threads, True), spec.target, 200)


def _peak(flops: Callable[[], float], expected: float) -> float:
    """Flop/s of all cores; if other work holds one of them, waits a little for its end."""
    best = 0.0
    for _ in range(_ATTEMPTS):
        best = max(best, flops())
        if best >= _ALL_CORES * expected:
            break
        time.sleep(_PAUSE_S)
    return best


def _streams(spec: Spec, wait: Callable[[], object], meter: Meter) -> tuple[float, float, float]:
    """Bytes per second from each level. The arrays are much smaller than the level and much larger
    than the one before. The best of a few passes counts, because other work may use shared levels.
    A level is at least as fast as the next one, even if its runs were disturbed.

    Args:
        wait: returns when no other work holds a core, or after a time limit.
    """
    level1, level2, last = spec.cache_bytes
    sizes = (
        max(int(_L2_SHARE * level2), 2 * level1),
        max(last // 2 // spec.threads, min(2 * level2, last // spec.threads)),
        min(_MEMORY_FACTOR * last, _MOST_MEMORY) // spec.threads,
    )
    meters = [_stream_meter(spec, size, meter) for size in sizes]
    passes = _in_passes(lambda: [rate() for rate in meters], wait)
    first, second, third = (max(found) for found in zip(*passes, strict=True))
    return max(first, second, third), max(second, third), third


def _stream_meter(spec: Spec, part_bytes: int, meter: Meter) -> Callable[[], float]:
    """A function that measures bytes per second of all cores, each from its own array of
    `part_bytes`."""
    rows = max(1, part_bytes // (benchmark_kernels.ACCUMULATORS * spec.vector_bytes))
    read = spec.threads * rows * benchmark_kernels.ACCUMULATORS * spec.vector_bytes
    rounds = max(1, _STREAM_BYTES // read)
    kernel = benchmark_kernels.stream(spec.threads, spec.lanes, rows, rounds)
    best_s = meter(kernel, spec.target, 1)
    return lambda: read * rounds / best_s()


def _overhead(spec: Spec, wait: Callable[[], object], meter: Meter) -> float:
    """Seconds that a parallel loop adds, by the best of a few short passes of both loops."""
    parallel, serial = (
        meter(benchmark_kernels.touch(spec.threads, parallel), spec.target, 200)
        for parallel in (True, False)
    )
    passes = _in_passes(lambda: (parallel(), serial()), wait)
    least = [min(seconds[loop] for seconds in passes) for loop in (0, 1)]
    return max(least[0] - least[1], 0.0)


def _chains(spec: Spec, meter: Meter) -> tuple[float, float]:
    """Seconds of one run of each length; the best of a few arrays, because addresses matter."""
    short, long = (
        min(
            meter(benchmark_kernels.chains(_CHAIN_RUNS, length, spec.lanes), spec.target, 10)()
            for _ in range(_PLACES)
        )
        for length in CHAINS
    )
    return short / _CHAIN_RUNS, long / _CHAIN_RUNS


def _instruction_rates(
    spec: Spec, wait: Callable[[], object], meter: Meter
) -> tuple[tuple[str, float], ...]:
    """Operations per second of the instructions; the best of a few passes."""
    target = tvm.target.Target(spec.target)
    available = [each for each in INSTRUCTIONS if each.is_usable(target)]
    rates = {each.name: operations_meter(each, spec, meter) for each in available}
    passes = _in_passes(lambda: {name: rate() for name, rate in rates.items()}, wait)
    return tuple((name, max(found[name] for found in passes)) for name in sorted(rates))


def _in_passes(run: Callable[[], T], wait: Callable[[], object] = lambda: None) -> list[T]:
    """Results of a few runs at intervals of some tenths of a second."""
    found = []
    for _ in range(_PASSES):
        wait()
        found.append(run())
        time.sleep(_PAUSE_S)
    return found


def main(argv: list[str]) -> None:
    """Measures what the JSON text `argv[0]` asks for and prints the result as JSON."""
    fields = json.loads(argv[0])
    spec = Spec(**{**fields, "cache_bytes": tuple(fields["cache_bytes"])})
    print(json.dumps(dataclasses.asdict(probe(spec))))
