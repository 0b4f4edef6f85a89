"""Single operators after a small budget, against the machine's measured peak.

``python -m benchmarks.operators --ops conv2d --trials 64 --json FILE``
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

import click
import numpy as np

from ansor.errors import ArgumentError
from ansor.hardware.detect import peak_gflops
from ansor.hardware.threads import available_cores
from ansor.report.progress import Progress
from ansor.report.text import align
from ansor.tune import auto_schedule
from ansor.workloads import Workload, build, names
from benchmarks.environment import environment, write

_HEADER = ("op", "system", "latency µs", "GFLOP/s", "of peak", "tuning s", "trials", "error")


@dataclass(frozen=True)
class Row:
    """One operator by one system.

    Attributes:
        latency_us: the best program's, as re-timed at the end of the search.
        gflops: billions of operations of the definition per second.
        tuning_s: seconds from the call to the compiled operator.
        trials: programs measured.
        max_rel_err: largest difference from NumPy's result over its largest value.
    """

    op: str
    system: str
    latency_us: float
    gflops: float
    tuning_s: float
    trials: int
    max_rel_err: float


def measure(op: str, trials: int, threads: int, seed: int) -> Row:
    """Tunes one operator with default sizes, or sizes as in "conv2d:height=28,width=28"."""
    workload = workload_of(op)
    began = time.perf_counter()
    with Progress() as progress:
        tuned = auto_schedule(
            list(workload.tensors), trials=trials, seed=seed, threads=threads, callbacks=[progress]
        )
    tuning_s = time.perf_counter() - began
    (task,) = tuned.tasks
    latency_s = task.latency_s or tuned.benchmark().latency_s
    arrays = workload.inputs(np.random.default_rng(seed))
    expected = workload.reference(*arrays)
    error = np.abs(tuned(*arrays) - expected).max() / np.abs(expected).max()
    return Row(
        op=op,
        system="ansor",
        latency_us=latency_s * 1e6,
        gflops=task.flops / latency_s / 1e9,
        tuning_s=tuning_s,
        trials=task.trials,
        max_rel_err=float(error),
    )


def workload_of(op: str) -> Workload:
    """The operator that "name" or "name:size=value;..." means.

    Raises:
        ArgumentError: no such operator or size.
    """
    name, _, sizes = op.partition(":")
    if name not in names():
        raise ArgumentError("ops", op, f"operators are {', '.join(names())}")
    pairs = [part.partition("=") for part in sizes.split(";") if part]
    return build(name, **{size: int(value) for size, _, value in pairs})


def table(rows: list[Row], peak: float | None) -> str:
    """For people."""
    cells = [
        (
            row.op,
            row.system,
            f"{row.latency_us:.1f}",
            f"{row.gflops:.0f}",
            f"{100 * row.gflops / peak:.0f}%" if peak else "-",
            f"{row.tuning_s:.0f}",
            str(row.trials),
            f"{row.max_rel_err:.1e}",
        )
        for row in rows
    ]
    return align(_HEADER, cells, (0, 1))


@click.command()
@click.option(
    "--ops",
    default="conv2d",
    show_default=True,
    help='Separated by commas; sizes as in "conv2d:height=28;width=28".',
)
@click.option("--trials", type=click.IntRange(1), default=64, show_default=True)
@click.option("--threads", type=int, help="All cores by default.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "file", metavar="FILE", help="Where results are written.")
def main(ops: str, trials: int, threads: int | None, seed: int, file: str | None) -> None:
    """Tunes single operators; conv2d by default: NHWC, 56x56x64 to 64, 3x3, bias and ReLU."""
    chosen = ops.split(",")
    for op in chosen:
        workload_of(op)
    cores = threads or available_cores()
    peak = peak_gflops("native", cores, fresh=True)
    about = environment(cores, peak_gflops=peak, seed=seed)
    rows: list[Row] = []
    for op in chosen:
        rows.append(measure(op, trials, cores, seed))
        write(file, {"environment": about, "results": [asdict(row) for row in rows]})
    print(table(rows, peak))
    print(f"\npeak of this machine, measured now: {peak or 0:.0f} GFLOP/s fp32")


if __name__ == "__main__":
    main()
