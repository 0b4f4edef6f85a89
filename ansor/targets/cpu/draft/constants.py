"""The constants of the CPU draft, each with its unit and its source.

The probe measures the rest of a CPU (`ansor.targets.cpu.machine.Hardware`).

"Fitted" names the processor of the measured programs. The fit on Zen 5 is a joint fit: random
programs of eight operators, and the preferred programs of searches for 57 tasks. A change of one
constant needs a new fit, see `benchmarks.fit_draft` and `docs/decisions.md`. "Chosen" is a
plausible value without a fit.
"Left out" gives two changes with the neutral value: of the mean Spearman correlation, and of the
mean best of five drafts. They are measured on programs of 33 operators on a Zen 4. The fit used
none of these programs. A constant without effect there stays if it models a rare condition, another
processor, or a risk that a mean does not show. This Zen 4 starts threads in 36 ns, so that its
programs say little about constants of threads.
"LLVM" is LLVM 22, which TVM 0.27.0 contains; programs are compiled at its level 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field


def adjustable(value: float, *, neutral: float) -> float:
    """A constant that `benchmarks.fit_draft` may fit. The neutral value leaves its effect out."""
    constant: float = field(default=value, metadata={"neutral": neutral})
    return constant


@dataclass(frozen=True)
class CoreConstants:
    """Properties of a core and its caches that the probe does not measure."""

    # Cycles per vector instruction.
    # Chosen: one unit of the core exchanges elements between registers.
    # Left out: +0.000, +0.0 % (2 operators).
    shuffle_cycles: float = adjustable(1.0, neutral=0.0)
    # A division of 512 bits. Zen 5 takes 2.6, but 8 ranks random programs as well.
    division_cycles: float = 8.0
    # exp and similar functions. Measured on Zen 5: exp 8 to 9, tanh 12 to 15, erf 19.
    special_function_cycles: float = 9.0

    # Cycles of control flow.
    # One evaluation of the condition that skips steps on padding. Fitted on Zen 5.
    # Left out: +0.000, -0.1 % (6 operators).
    skip_condition_cycles: float = adjustable(8.0, neutral=0.0)
    # One copy of a statement that tests an index and substitutes a zero. Fitted on Zen 5.
    # Left out: +0.000, +0.3 % (17 operators).
    boundary_check_cycles: float = adjustable(0.5, neutral=0.0)
    # The index of one further loop that is fused into the parallel loop: a division and the use of
    # its remainder, per iteration. Fitted on Zen 5. On two cores of a Zen 4, a copy of 74 000
    # elements takes 115 us with one element per iteration, and 45 us with a serial innermost loop.
    # Left out: +0.001, +3.3 % (29 operators).
    index_decoding_cycles: float = adjustable(2.0, neutral=0.0)

    # Pipeline.
    # Loads per element of a vector with a stride. Fitted on Zen 5.
    # Left out: +0.000, +0.2 % (20 operators).
    loads_per_strided_element: float = adjustable(2.0, neutral=1.0)
    # Cycles per point of the register tile in which the pipeline drains between two runs of the
    # inner reduction. Measured on Zen 5.
    # Left out: +0.000, +0.0 % (29 operators).
    drain_cycles_per_point: float = adjustable(1.0, neutral=0.0)
    # Runs of a reduction in flight beside the first, per run that fits the scheduler window. The
    # factor is 2 if each run has half of its instructions left. The fit on Zen 5 is lower, because
    # the window also holds instructions other than multiply-adds.
    # Left out: -0.003, +0.1 % (30 operators).
    further_runs_per_window: float = adjustable(0.5, neutral=1.0)

    # Caches and memory.
    # Bytes from the last cache or from memory in the time of one jump to another run. Jumps between
    # L2 and L1 are free. Fitted on Zen 5.
    # Left out: +0.000, +0.6 % (30 operators).
    jump_bytes: float = adjustable(64.0, neutral=0.0)
    # Bytes from memory in the time of one jump within cold constants. Chosen: with 9 MB of cold
    # weights, a convolution takes 680 to 1040 us on runs of 128 bytes, and 575 to 645 us on packed
    # weights.
    # Left out: +0.020, -3.4 % (5 operators).
    cold_jump_bytes: float = adjustable(256.0, neutral=0.0)
    # Interleaved runs that a hardware prefetcher follows. Fitted on Zen 5.
    # Left out: +0.000, +0.6 % (25 operators).
    prefetcher_streams: float = adjustable(32.0, neutral=math.inf)
    # Share of L2 within which a core's data survive until the next run of the program. Fitted on
    # Zen 5.
    # Left out: -0.003, +0.1 % (23 operators).
    warm_l2_share: float = adjustable(0.5, neutral=1.0)
    # Share of the last cache that keeps data for reuse. Measured on Zen 4 with 32 MB: a copy within
    # 8 MB has the full rate, a copy within 20 MB half of it. The cache is shared, and its pages
    # have random places.
    # Left out: -0.000, +0.0 % (1 operators).
    usable_last_cache_share: float = adjustable(0.6, neutral=1.0)
    # Share of the unreachable cache sets of one access that is lost to all accesses. Fitted on
    # Zen 5.
    # Left out: -0.003, -0.2 % (27 operators).
    idle_set_share: float = adjustable(0.8, neutral=1.0)

    # Threads.
    # Time to start threads, over the time of an empty parallel loop. Fitted on Zen 5.
    # Left out: -0.000, +0.0 % (33 operators).
    thread_start: float = adjustable(1.1, neutral=1.0)
    # The same for a stage that reads data of other threads. Fitted on Zen 5.
    # Left out: -0.000, +0.3 % (25 operators).
    thread_start_with_sharing: float = adjustable(2.2, neutral=1.0)
    # Cycles per byte that another core may have written. Fitted on Zen 5.
    # Left out: +0.000, +0.0 % (25 operators).
    shared_byte_cycles: float = adjustable(0.09, neutral=0.0)


@dataclass(frozen=True)
class CompilerConstants:
    """Decisions of LLVM and TVM about the loops and values of a program."""

    # Full unrolling.
    # Instructions of a fully unrolled loop: LLVM's `-unroll-threshold-default` (LoopUnrollPass).
    most_unrolled_instructions: float = 150.0
    # The same for a short loop, before simplification. LLVM simulates the iterations of such a loop
    # and subtracts the instructions that fold to constants. Fitted on Zen 1; its programs decide.
    # Left out: -0.002, -0.2 % (27 operators).
    most_instructions_of_short_loop: float = adjustable(200.0, neutral=150.0)
    # Iterations of a short loop: LLVM's `-unroll-max-iteration-count-to-analyze`.
    most_short_iterations: int = 10
    # Instructions that load one element and spread it over a vector. Fitted on Zen 5.
    # Left out: -0.000, +0.0 % (23 operators).
    broadcast_instructions: float = adjustable(3.0, neutral=1.0)

    # Vectors.
    # Iterations of a loop that becomes vectors; a shorter loop stays scalar. Fitted on Zen 5.
    # Left out: +0.000, -0.0 % (6 operators).
    least_vectorised_iterations: float = adjustable(4.0, neutral=1.0)

    # Instructions and registers.
    # Instructions of the loop around a step: x86 counts, and compares and jumps in one operation.
    loop_instructions: int = 2
    # Vector instructions of exp and similar functions. Chosen.
    # Left out: +0.000, +0.0 % (3 operators).
    special_function_instructions: float = adjustable(8.0, neutral=1.0)
    # Registers per value with uses in distant statements. Chosen.
    # Left out: -0.000, -0.1 % (9 operators).
    registers_per_distant_use: float = adjustable(0.5, neutral=0.0)
    # Power of the share of occupied registers: the part of the values shared by copies of a loop
    # that stays in registers. LLVM interleaves the copies while registers are free. Fitted to the
    # machine code of 622 programs for Zen 4 and Cascade Lake.
    # Left out: -0.000, +0.0 % (15 operators).
    shared_value_exponent: float = adjustable(2.0, neutral=1.0)
    # Registers that the allocator spills beyond the excess. Fitted to the same machine code.
    # Left out: -0.003, +0.5 % (24 operators).
    spill_margin: float = adjustable(2.0, neutral=0.0)
    # Share of the accumulators that move to memory and back in each step if copies of the block
    # check for padding. LLVM does not keep a sum in a register between two branches, because the
    # store on one branch is visible outside. Fitted on Zen 1; its programs decide.
    # Left out: +0.001, -0.2 % (5 operators).
    accumulator_spills_per_check: float = adjustable(0.5, neutral=0.0)
    # Bytes of a local buffer on the stack: TVM 0.27's `kMaxStackAlloca`. A larger buffer is
    # allocated at run time.
    most_stack_bytes: int = 1024


@dataclass(frozen=True)
class OverlapConstants:
    """Shares of simultaneous work, and factors for uncertain optimisations. All are fitted."""

    # Share of the faster units' time that adds to the slowest unit of the core. Zen 5.
    # Left out: -0.003, +0.5 % (33 operators).
    core_share: float = adjustable(0.1, neutral=0.0)
    # Share of the smaller of core time and cache traffic that adds to the larger. Zen 5.
    # Left out: -0.004, +0.7 % (33 operators).
    traffic_share: float = adjustable(0.2, neutral=0.0)

    # Factors on the time of a stage. Similar programs differ by up to 15 times where a program
    # relies on LLVM, and programs with explicit unrolling are alternatives.
    # LLVM unrolls the block, and may fail to keep the results in registers. Zen 5.
    # Left out: +0.001, -0.1 % (30 operators).
    unrolling_risk: float = adjustable(1.1, neutral=1.0)
    # The same with a condition in the block. Zen 5.
    # Left out: +0.001, +0.0 % (4 operators).
    conditional_unrolling_risk: float = adjustable(1.3, neutral=1.0)
    # LLVM finds the vectors, around a reduction that it does not surely unroll. Zen 5.
    # Left out: -0.002, +0.6 % (33 operators).
    vectorisation_risk: float = adjustable(1.15, neutral=1.0)


@dataclass(frozen=True)
class DraftConstants:
    """All constants of the draft. Other values than the defaults serve a fit, see
    `benchmarks.fit_draft`."""

    core: CoreConstants = field(default_factory=CoreConstants)
    compiler: CompilerConstants = field(default_factory=CompilerConstants)
    overlap: OverlapConstants = field(default_factory=OverlapConstants)


DEFAULTS = DraftConstants()

# Factor within which two counts of registers are equal. The counts are quotients in float32.
ROUNDING = 1.01
# Cycles per cycle of arithmetic, added before the learned model receives a logarithm of the ratio.
# A resource without any work then has a finite logarithm.
LEAST_RATIO = 1e-3
