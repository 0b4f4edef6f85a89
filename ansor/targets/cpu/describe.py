"""The parameters of a CPU as text."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ansor.targets.cpu.features import why_no_tiles_here
from ansor.targets.cpu.machine import Hardware


def describe(hardware: Hardware) -> Mapping[str, str]:
    """The parameters by name, with units."""
    caches = " / ".join(f"{size >> 10} KiB" for size in hardware.cache_bytes)
    speeds = " / ".join(f"{speed:.1f}" for speed in hardware.cache_bandwidth)
    vectors = f"{hardware.vector_bytes * 8} bits, {hardware.vector_registers} registers"
    if hardware.slots == 2:
        vectors += ", units half as wide"
    if hardware.vector_issue < math.inf:
        vectors += f", {hardware.vector_issue:.1f} operations a cycle at most"
    return {
        "processor": hardware.name,
        "threads": str(hardware.cores),
        "vectors": vectors,
        "peak": f"{hardware.peak_flops / 1e9:.0f} GFLOP/s fp32, multiply-adds on all threads",
        "caches": f"{caches} (L1 data, L2, last level)",
        "bandwidth": f"{speeds} bytes per cycle and thread (L2, last level, memory)",
        "memory": f"{hardware.memory_bandwidth / 1e9:.1f} GB/s",
        "parallel loop": f"{hardware.parallel_overhead_s * 1e6:.1f} µs to start and join",
        **_instructions(hardware),
    }


def _instructions(hardware: Hardware) -> Mapping[str, str]:
    """The instructions for products in low precision, and the reason why tiles are not used."""
    rates = ", ".join(f"{unit.instruction} {unit.per_cycle:.2f}" for unit in hardware.dot_units)
    found = {"low precision": f"{rates} per cycle and thread"} if rates else {}
    reason = why_no_tiles_here()
    return {**found, "tiles": f"not used; {reason}"} if reason else found
