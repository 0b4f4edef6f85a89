"""`Hardware`: the parameters of a processor that rules, features and the draft model read."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class DotUnit:
    """The rate of an instruction that adds up groups of products.

    Attributes:
        instruction: its name, see `ansor.program.dot_instructions`.
        per_cycle: instructions on whole registers that a core issues per cycle.
        latency: cycles until a sum can be used.
        widening: instructions that widen a register of either operand to two; 0 for none.
        vectors: instructions on vectors with the same work; 256 for an instruction on tiles.
    """

    instruction: str
    per_cycle: float
    latency: float
    widening: float = 0.0
    vectors: int = 1

    @property
    def operand_registers(self) -> int:
        """Registers for one register of an operand, after widening."""
        return 2 if self.widening else 1


@dataclass(frozen=True)
class Hardware:
    """The parameters of a CPU for the cost model.

    Attributes:
        name: processor, for reports.
        cores: threads that a program may use.
        vector_bytes: width of a vector register.
        vector_registers: number of vector registers.
        slots: turns of an instruction on a whole register in its unit. It is 2 if units are half as
            wide as registers (AVX-512 on Zen 4); half a register then takes 1 turn.
        fma_per_cycle: multiply-adds on whole registers a core issues per cycle.
        fma_latency: cycles from a multiply-add to the next one that adds to its result.
        loads_per_cycle: loads of whole registers a core issues per cycle.
        stores_per_cycle: stores of whole registers a core issues per cycle.
        scheduler_window: number of multiply-adds that can wait for their sums at the same time. All
            later ones wait, too.
        issue_width: operations of any kind a core issues per cycle.
        vector_issue: operations on whole registers a core issues per cycle, with loads and stores;
            infinite if only the units limit them. On some processors (Zen 1), an instruction on a
            register twice as wide as the units is two operations.
        frequency_hz: sustained clock.
        cache_bytes: L1 data, L2 (per core) and last-level (as shared by the cores).
        cache_bandwidth: bytes per cycle and core from L2, last level, memory.
        memory_bandwidth: bytes per second of the whole machine.
        parallel_overhead_s: seconds to start and join a parallel loop.
        line_bytes: cache line.
        tlb_pages: entries of a core's first TLB, for pages of 4 KiB; 64 to 96 on current cores.
        tlb_miss_cycles: cycles of a miss, most of them hidden; fitted on Zen 5.
        dot_units: instructions of the target that add up groups of products.
    """

    name: str = "generic"
    cores: int = 2
    vector_bytes: int = 64
    vector_registers: int = 32
    slots: int = 1
    fma_per_cycle: float = 2.0
    fma_latency: float = 4.0
    loads_per_cycle: float = 2.0
    stores_per_cycle: float = 1.0
    scheduler_window: float = 96.0
    issue_width: float = 6.0
    vector_issue: float = math.inf
    frequency_hz: float = 4.0e9
    cache_bytes: tuple[int, int, int] = (48 << 10, 1 << 20, 32 << 20)
    cache_bandwidth: tuple[float, float, float] = (48.0, 16.0, 5.0)
    memory_bandwidth: float = 40e9
    parallel_overhead_s: float = 3e-6
    line_bytes: int = 64
    tlb_pages: int = 64
    tlb_miss_cycles: float = 2.0
    dot_units: tuple[DotUnit, ...] = ()

    def dot_unit(self, instruction: str) -> DotUnit | None:
        """The unit that executes an instruction; None if the target lacks it."""
        return next((unit for unit in self.dot_units if unit.instruction == instruction), None)

    def lanes(self, item_bytes: int) -> int:
        """Elements in one vector register."""
        return max(1, self.vector_bytes // item_bytes)

    @property
    def peak_flops(self) -> float:
        """Floating-point operations per second, fp32, all cores."""
        return 2 * self.lanes(4) * self.fma_per_cycle * self.frequency_hz * self.cores

    @property
    def peak_bytes(self) -> float:
        """Bytes per second between registers and the first caches, all cores."""
        registers = self.loads_per_cycle + self.stores_per_cycle
        return registers * self.vector_bytes * self.frequency_hz * self.cores

    def product_flops(self, item_bytes: int) -> float:
        """Operations per second of sums of products, at most, by the bytes of an operand.

        Vectors have more of shorter elements. Instructions for groups may be faster.
        """
        group = max(1, 4 // item_bytes)
        vectors = max([self.fma_per_cycle, *(u.vectors * u.per_cycle for u in self.dot_units)])
        per_cycle = vectors if group > 1 else self.fma_per_cycle
        return group * self.peak_flops * per_cycle / self.fma_per_cycle
