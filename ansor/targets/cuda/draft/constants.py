"""The constants of the GPU draft, each with its unit and its source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GpuConstants:
    """The GPU draft. No value is fitted, because no program has been timed on a GPU."""

    # Formats of the hardware.
    sector_bytes: int = 32  # bytes per transfer of memory and L2
    shared_banks: int = 32  # banks of shared memory, four bytes wide each
    register_granularity: int = 8  # registers of a thread are allocated in multiples of this

    # Instructions; all chosen.
    fetch_instructions: float = 6.0  # of a copy to shared memory: load, store and addresses
    special_function_slots: float = 4.0  # issue slots of a division or an exponential
    # Instructions for loops, predicates and addresses, as a share of the counted instructions.
    instruction_overhead_share: float = 0.15
    # Registers of a thread's unrolled tile without spills; the compiler hoists loads.
    registers_without_pressure: float = 128.0
    dependent_issue_cycles: float = 4.0  # cycles until an instruction can use a result
    barrier_cycles: float = 40.0  # cycles of the two barriers around a fetch

    # Memory; all chosen.
    overlap_share: float = 0.15  # share of the faster resources' time that adds to the slowest
    l2_latency_share: float = 0.55  # latency of L2 over the latency of memory
    most_bytes_in_flight: float = 64.0  # bytes that a thread requests before it waits
    least_bandwidth_share: float = 0.02  # lower bound on the share of the bandwidth in use
    l2_miss_share: float = 0.2  # share of repeated reads that miss L2 if the data exceed it


GPU = GpuConstants()
