"""Parameters of Arm's cores, for networks that are tuned without the machine.

Vectors are NEON's: LLVM keeps vectors of a fixed length in registers of 128 bits on cores with SVE,
too. AArch64 has 32 of them. A comment beside each entry names the sources of its figures:

- [AWS] "AWS Graviton Technical Guide", table "Building for Graviton".
- [LLVM] AArch64SchedNeoverseN1.td, -V1.td, -V2.td and AArch64SchedA57.td, which follow Arm's
  "Software Optimization Guide" of each core. `N1-forwarding.s`, `V1-forwarding.s` and
  `V2-forwarding.s` among the tests of llvm-mca show the forwarding of sums.
- [OSACA] RRZE-HPC/OSACA, `a72.yml`, `v2.yml` and `m1.yml`: measured throughput.
- [WikiChip] its pages of AWS Graviton3 and Graviton4 and of Cortex-A76.
- [Wikipedia] its pages of ARM Cortex-A72 and ARM Cortex-A76.
- [Johnson] D. Johnson, "Apple Microarchitecture Research", Firestorm: measured instructions.
- [Arm] learn.arm.com, "memory-subsystem": bandwidth measured on Graviton2.

`fma_latency` is the time from one multiply-add to the next one that adds to its sum. Arm's cores
forward sums late: other operands wait for 4 cycles, or for 7 on Cortex-A72.

Figures without a public source:

- Bytes per cycle from the second level and from the last level. Half a line and a quarter of one
  are estimates. On Graviton2 they agree with [Arm]: 73.4 and 35.9 GB/s of one core are 29 and 14
  bytes per cycle.
- Memory of Graviton3, Graviton4 and Apple M1. The rate of their channels is an upper bound.
- Fields that no entry names. They have the defaults of `Hardware`, which describe no Arm core.
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
    """A core; `rates` are multiply-adds, loads and stores of whole registers per cycle."""
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
KNOWN_CORES: Mapping[str, Hardware] = MappingProxyType(
    {
        # [AWS]: cores, clock, caches, 2 SIMD pipelines. [Arm]: all cores read 169.6 GB/s. The
        # channels of DDR4-3200 have 204.8 GB/s. [LLVM]: a store of a register takes both of the
        # pipelines that load. The front end is that of Cortex-A76.
        "neoverse-n1": _core(
            name="Graviton2 (Neoverse N1)",
            cores=64,
            frequency_hz=2.5e9,
            cache_bytes=(64 * _K, 1 * _M, 32 * _M),
            memory_bandwidth=169.6e9,
            rates=(2, 2, 1),
            fma_latency=2,
            issue_width=4,
        ),
        # [AWS]: cores, clock, caches, 4 SIMD pipelines. [WikiChip]: 8 channels of DDR5-4800.
        # [LLVM]: 3 pipelines load, 2 of them store; 8 operations are issued.
        "neoverse-v1": _core(
            name="Graviton3 (Neoverse V1)",
            cores=64,
            frequency_hz=2.6e9,
            cache_bytes=(64 * _K, 1 * _M, 32 * _M),
            memory_bandwidth=8 * 8 * 4.8e9,
            rates=(4, 3, 2),
            fma_latency=2,
            issue_width=8,
        ),
        # [AWS]: cores, clock (2.7 GHz in instances with two sockets), caches, 4 SIMD pipelines.
        # [WikiChip]: 12 channels of DDR5-5600. [LLVM] and [OSACA]: 3 pipelines load, 2 of them
        # store. No original source was found for 8 operations per cycle; [LLVM] sets 6, which
        # measured better in its scheduler.
        "neoverse-v2": _core(
            name="Graviton4 (Neoverse V2)",
            cores=96,
            frequency_hz=2.8e9,
            cache_bytes=(64 * _K, 2 * _M, 36 * _M),
            memory_bandwidth=12 * 8 * 5.6e9,
            rates=(4, 3, 2),
            fma_latency=2,
            issue_width=8,
        ),
        # Raspberry Pi 4 at 1.5 GHz, its first clock; later boards run at 1.8. "The Official
        # Raspberry Pi Beginner's Guide": cores, clock. [Wikipedia]: first level. The second level
        # of BCM2711 is shared. Memory: STREAM has 5.56 GB/s (sci-pi.org.uk, one core), and
        # tinymembench the same (geerlingguy/sbc-reviews#110); LPDDR4-3200 with 32 bits has 12.8.
        # [OSACA]: a multiply-add and a load per cycle, a store in 2 cycles; [LLVM] has the same for
        # Cortex-A57. Latency: gem5, commit 6c72c355. Operations per cycle: Arm's guide of
        # Cortex-A72, section 4.1.
        "cortex-a72": _core(
            name="BCM2711 (Cortex-A72)",
            cores=4,
            frequency_hz=1.5e9,
            cache_bytes=(32 * _K, 1 * _M, 1 * _M),
            memory_bandwidth=5.6e9,
            rates=(1, 1, 0.5),
            fma_latency=3,
            issue_width=3,
        ),
        # Raspberry Pi 5. Its product brief: cores, clock, second and third level. [WikiChip]: first
        # level. Memory: tinymembench copies 6.15 GB/s, which are 12.3 read and written
        # (raspberrypi/firmware#1876, one core); LPDDR4X-4267 with 32 bits has 17.1. [Wikipedia]: 4
        # instructions are decoded; Neoverse N1 is based on this core. No source was found for its
        # pipelines, which are those of Neoverse N1 here.
        "cortex-a76": _core(
            name="BCM2712 (Cortex-A76)",
            cores=4,
            frequency_hz=2.4e9,
            cache_bytes=(64 * _K, 512 * _K, 2 * _M),
            memory_bandwidth=12.3e9,
            rates=(2, 2, 1),
            fma_latency=2,
            issue_width=4,
        ),
        # The four fast cores; their second level is the last that they share. The Apple Wiki,
        # T8103: clock, caches. The clock is the highest one; macOS keeps loaded cores at 3.04 GHz
        # or more. Memory: 128 bits of LPDDR4X-4266. [OSACA]: 4 pipelines multiply and add, 3 load,
        # 2 store; 8 operations retire. [Johnson]: 1000 chained `FMLA` take 4037 cycles, so sums are
        # not forwarded.
        "apple-m1": _core(
            name="Apple M1",
            cores=4,
            frequency_hz=3.2e9,
            cache_bytes=(128 * _K, 12 * _M, 12 * _M),
            memory_bandwidth=16 * 4.266e9,
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
