"""``ansor hardware``: what is known of this machine."""

from __future__ import annotations

import math

import click

from ansor.targets.cpu.detect import detect_machine
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cuda.machine import Gpu, Machine
from ansor.targets.host.threads import available_cores
from ansor.targets.target import resolve_target, target_text


@click.command()
@click.option("--target", default="native", show_default=True)
@click.option("--threads", type=int, help="That programs run on; all cores by default.")
def hardware(target: str, threads: int | None) -> None:
    """Shows what was detected and measured of this machine."""
    resolved, cores = resolve_target(target), threads or available_cores()
    click.echo(f"target          {target_text(resolved, cores)}")
    click.echo(describe(detect_machine(resolved, cores)))


def describe(found: Machine) -> str:
    """One line per property, with its unit."""
    lines = _gpu_lines(found) if isinstance(found, Gpu) else _cpu_lines(found)
    return "\n".join(f"{name:15s} {text}" for name, text in lines.items())


def _gpu_lines(found: Gpu) -> dict[str, str]:
    return {
        "GPU": f"{found.name}, {found.arch}",
        "multiprocessors": f"{found.multiprocessors} at {found.frequency_hz / 1e9:.2f} GHz",
        "peak": f"{found.peak_flops / 1e12:.1f} TFLOP/s fp32, without tensor cores",
        "shared memory": f"{found.shared_per_sm >> 10} KiB per multiprocessor, "
        f"{found.shared_per_block >> 10} KiB per block",
        "L2": f"{found.l2_bytes >> 20} MiB",
        "memory": f"{found.memory_bandwidth / 1e9:.0f} GB/s",
    }


def _cpu_lines(found: Hardware) -> dict[str, str]:
    caches = " / ".join(f"{size >> 10} KiB" for size in found.cache_bytes)
    speeds = " / ".join(f"{speed:.1f}" for speed in found.cache_bandwidth)
    vectors = f"{found.vector_bytes * 8} bits, {found.vector_registers} registers"
    if found.slots == 2:
        vectors += ", units half as wide"
    if found.vector_issue < math.inf:
        vectors += f", {found.vector_issue:.1f} operations a cycle at most"
    return {
        "processor": found.name,
        "threads": str(found.cores),
        "vectors": vectors,
        "peak": f"{found.peak_flops / 1e9:.0f} GFLOP/s fp32, multiply-adds on all threads",
        "caches": f"{caches} (L1 data, L2, last level)",
        "bandwidth": f"{speeds} bytes per cycle and thread (L2, last level, memory)",
        "memory": f"{found.memory_bandwidth / 1e9:.1f} GB/s",
        "parallel loop": f"{found.parallel_overhead_s * 1e6:.1f} µs to start and join",
    }
