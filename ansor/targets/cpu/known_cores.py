"""Parameters of Arm's cores, for networks that are tuned without the machine.

Vectors are NEON's: LLVM keeps vectors of a fixed length in registers of 128 bits on cores with SVE,
too. Sources:

- Clocks, cores and caches of Graviton processors: "AWS Graviton Technical Guide".
- Pipelines and latencies: Arm's "Software Optimization Guide" of each core. Instructions on whole
  registers of 128 bits, multiply-adds without the forwarding of sums.
- Cortex-A72 and -A76 as in Broadcom's BCM2711 and BCM2712 (Raspberry Pi 4 and 5).
- Apple M1: Apple's specifications, and D. Johnson, "Apple M1 Microarchitecture Research". The four
  fast cores; their second level is the last that they share.

Estimates: bandwidth of the memory is that of its channels. A core loads half a line per cycle from
the second level, and a quarter of one from the last level. Other fields have their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from tvm.target import Target

from ansor.targets.backend import Options
from ansor.targets.cpu.features import architecture, needed_features, why_not_here
from ansor.targets.cpu.machine import Hardware

_TRIPLE = "aarch64-linux-gnu"
_L2_BYTES, _LAST_BYTES = 32.0, 16.0  # per cycle and core


def _core(
    name: str,
    cores: int,
    frequency_hz: float,
    cache_bytes: tuple[int, int, int],
    memory_bandwidth: float,
    rates: tuple[float, float, float],
    fma_latency: float,
    issue_width: float,
) -> Hardware:
    """A core; `rates` are multiply-adds, loads and stores per cycle."""
    memory = memory_bandwidth / cores / frequency_hz
    return Hardware(
        name=name,
        cores=cores,
        vector_bytes=16,
        vector_registers=32,
        fma_per_cycle=rates[0],
        loads_per_cycle=rates[1],
        stores_per_cycle=rates[2],
        fma_latency=fma_latency,
        issue_width=issue_width,
        frequency_hz=frequency_hz,
        cache_bytes=cache_bytes,
        cache_bandwidth=(_L2_BYTES, _LAST_BYTES, memory),
        memory_bandwidth=memory_bandwidth,
    )


_K, _M = 1 << 10, 1 << 20
# Memory: channels times bytes of a transfer times transfers per second.
KNOWN_CORES: Mapping[str, Hardware] = MappingProxyType(
    {
        "neoverse-n1": _core(
            name="Graviton2 (Neoverse N1)",
            cores=64,
            frequency_hz=2.5e9,
            cache_bytes=(64 * _K, 1 * _M, 32 * _M),
            memory_bandwidth=8 * 8 * 3.2e9,
            rates=(2, 2, 1),
            fma_latency=4,
            issue_width=4,
        ),
        "neoverse-v1": _core(
            name="Graviton3 (Neoverse V1)",
            cores=64,
            frequency_hz=2.6e9,
            cache_bytes=(64 * _K, 1 * _M, 32 * _M),
            memory_bandwidth=8 * 8 * 4.8e9,
            rates=(4, 3, 2),
            fma_latency=4,
            issue_width=8,
        ),
        "neoverse-v2": _core(
            name="Graviton4 (Neoverse V2)",
            cores=96,
            frequency_hz=2.8e9,
            cache_bytes=(64 * _K, 2 * _M, 36 * _M),
            memory_bandwidth=12 * 8 * 5.6e9,
            rates=(4, 3, 2),
            fma_latency=4,
            issue_width=8,
        ),
        "cortex-a72": _core(
            name="BCM2711 (Cortex-A72)",
            cores=4,
            frequency_hz=1.5e9,
            cache_bytes=(32 * _K, 1 * _M, 1 * _M),
            memory_bandwidth=4 * 3.2e9,
            rates=(1, 1, 1),
            fma_latency=7,
            issue_width=3,
        ),
        "cortex-a76": _core(
            name="BCM2712 (Cortex-A76)",
            cores=4,
            frequency_hz=2.4e9,
            cache_bytes=(64 * _K, 512 * _K, 2 * _M),
            memory_bandwidth=4 * 4.267e9,
            rates=(2, 2, 1),
            fma_latency=4,
            issue_width=4,
        ),
        "apple-m1": _core(
            name="Apple M1",
            cores=4,
            frequency_hz=3.2e9,
            cache_bytes=(128 * _K, 12 * _M, 12 * _M),
            memory_bandwidth=16 * 4.267e9,
            rates=(4, 3, 2),
            fma_latency=4,
            issue_width=8,
        ),
    }
)
_PRODUCTS = {"graviton2": "neoverse-n1", "graviton3": "neoverse-v1", "graviton4": "neoverse-v2"}


def _options_of(core: str) -> Options:
    """TVM's options for Linux on a core."""
    cores = KNOWN_CORES[core].cores
    return {"kind": "llvm", "mtriple": _TRIPLE, "mcpu": core, "num-cores": cores}


# TVM's options by the names of cores and processors that a user may write as a target.
SHORTHANDS: Mapping[str, Callable[[], Options]] = MappingProxyType(
    {
        name: partial(_options_of, core)
        for name, core in {**{core: core for core in KNOWN_CORES}, **_PRODUCTS}.items()
    }
)


def known_core(target: Target) -> Hardware | None:
    """The parameters of the core that a target names; None if they are not known, or if this
    machine can run its programs."""
    found = KNOWN_CORES.get(str(target.attrs.get("mcpu", "")))
    if found is None or why_not_here(architecture(target), needed_features(target)) is None:
        return None
    return replace(found, cores=int(target.attrs.get("num-cores", found.cores)))
