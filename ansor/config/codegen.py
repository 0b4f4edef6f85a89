"""Code for CPUs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PrefetchConfig:
    """Distances and groups of prefetches in programs for CPUs. Sizes are in bytes.

    Sizes of caches and lines are in the steps that prefetch (`ansor.program.steps.prefetch`).
    """

    least_turn: int = 8  # iterations of a loop between two groups of prefetches
    most_lines: int = 8  # lines of an array in a group; a core tracks a few dozen misses
    row_ahead_bytes: int = 8192  # from a packed row to the prefetched one; best of 1 to 8 KB, Zen 5
    summed_row_ahead_bytes: int = 4096  # the same for summed rows; best of 2, 4 and 8 KB, Zen 4
    row_distance_bytes: int = 1024  # least distance of rows; hardware prefetches nearer ones
    least_row_bytes: int = 32  # shorter rows are not prefetched
    long_reduction: int = 256  # steps; prefetches in a shorter reduction cost more than they save
    reduction_share: float = 0.75  # part of a reduction that prefetches: the last line is in time


PREFETCH = PrefetchConfig()


@dataclass(frozen=True)
class WorkStealingConfig:
    """Distribution of a parallel loop's iterations to cores."""

    max_pieces: int = 16  # of a core's share; 1 to 2 % better for networks than 4, 8 and 32


WORK_STEALING = WorkStealingConfig()
