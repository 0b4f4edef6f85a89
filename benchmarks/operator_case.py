"""The case of a process that times a single operator, and its definition."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ansor.errors import ArgumentError
from ansor.workloads import Workload, build, names, suite, suite_workload
from ansor.workloads.workload import Array

REPEATS = 3  # of what is timed in a turn, the median of which counts
DISTURBED = 6  # more that are made up for while other work disturbs: some 0.5 s
WARM_UP_S = 0.02  # seconds of runs before the clock counts, each turn

PEAK = "peak_gflops"  # in the answer of our own turns: of the machine right after


@dataclass(frozen=True)
class Case:
    """One operator under comparison; it travels to child processes as JSON.

    Attributes:
        op: as on the command line.
        batch: of the suite's members.
        folder: holds programs, latencies and outputs.
        target: text of the TVM target, threads included.
        threads: that every system may use.
        seed: of the inputs and of MetaSchedule's search.
        seconds: of timed runs, each turn.
        trials: of MetaSchedule.
        cache: folder that MetaSchedule's tuning is kept in.
        peak_gflops: of the machine at full speed; slower moments are not timed.
        dtype: name of a precision, see `ansor/workloads/precision.py`.
    """

    op: str
    batch: int
    folder: str
    target: str
    threads: int
    seed: int = 0
    seconds: float = 0.1
    trials: int = 128
    cache: str = ""
    peak_gflops: float = 0.0
    dtype: str = "float32"

    def file(self, name: str) -> Path:
        """A file of the case."""
        return Path(self.folder) / name

    def program(self, system: str) -> Path:
        """Where the parent leaves a program of ours."""
        return self.file(f"{system}.program.json")

    @property
    def workload(self) -> Workload:
        """The definition.

        Raises:
            ArgumentError: there is none in the dtype.
        """
        return workload_of(self.op, self.batch, self.dtype)

    def inputs(self, workload: Workload) -> list[Array]:
        """The inputs that all systems are given."""
        return workload.inputs(np.random.default_rng(self.seed))


def workload_of(op: str, batch: int = 1, dtype: str = "float32") -> Workload:
    """The operator that "C2D.2", "name" or "name:size=value;..." means.

    Raises:
        ArgumentError: no such operator or size, or the operator lacks the dtype.
    """
    name, _, sizes = op.partition(":")
    if name not in names():
        if op in suite(batch):
            return suite_workload(op, batch, dtype)
        known = f"{', '.join(names())}, and members of the suite such as C2D.2"
        raise ArgumentError("ops", op, f"give some of {known}")
    pairs = [part.partition("=") for part in sizes.split(";") if part]
    shape: dict[str, Any] = {size: _integer(op, value) for size, _, value in pairs}
    return build(name, dtype=dtype, **shape)


def _integer(op: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ArgumentError("ops", op, 'give sizes as integers, as in "conv2d:height=28"') from None
