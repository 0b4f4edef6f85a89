"""Single operators on a GPU: against cuDNN and cuBLAS, as PyTorch calls them.

``python -m benchmarks.cudnn --ops all --trials 200 --minutes 8 --json FILE --database FILE``

Run again with the same files it goes on where it was: records are in the database, finished
operators in the JSON file.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import tvm
from tvm import tirx

from ansor.errors import AnsorError, ArgumentError
from ansor.hardware.detect import read_gpu
from ansor.hardware.target import check_runs_here, resolve_target, target_text
from ansor.measure.build import ENTRY, build
from ansor.report.progress import Progress
from ansor.report.text import align
from ansor.tune import auto_schedule
from ansor.workloads import Workload
from benchmarks.environment import environment, write
from benchmarks.half import half_inputs, half_workload
from benchmarks.operator_case import workload_of
from benchmarks.operator_peers import Peers, systems_for
from benchmarks.operators import chosen_ops

_HEADER = (
    "op",
    "batch",
    "dtype",
    "ansor µs",
    "peer µs",
    "speed-up",
    "peer",
    "TFLOP/s",
    "error",
    "trials",
)
_DTYPES = ("float32", "float16")


@dataclass(frozen=True)
class Row:
    """One operator; numbers are None where there are none.

    Attributes:
        ansor_us: of one run, kernels alone, everything warm.
        peers_us: the same of each form that PyTorch has of it.
        max_rel_err: largest difference from NumPy's result over its largest value.
        tuning_s: seconds of the search in this run.
        trials: programs measured so far.
        error: why something is missing.
    """

    op: str
    batch: int
    dtype: str
    flops: int
    ansor_us: float | None = None
    peers_us: dict[str, float] | None = None
    max_rel_err: float | None = None
    tuning_s: float | None = None
    trials: int = 0
    error: str = ""

    @property
    def best_peer(self) -> tuple[str, float] | None:
        """The fastest form and its time."""
        return min(self.peers_us.items(), key=lambda pair: pair[1]) if self.peers_us else None

    @property
    def speedup(self) -> float | None:
        """How many times faster than the fastest form."""
        if self.best_peer is None or self.ansor_us is None:
            return None
        return self.best_peer[1] / self.ansor_us


def measure(
    op: str, batch: int, dtype: str, target: Any, budget: dict[str, Any], rounds: int
) -> Row:
    """Tunes one operator, and times it and its peers in turns."""
    workload, rng = workload_of(op, batch), np.random.default_rng(0)
    row = Row(op, batch, dtype, workload.flops)
    if dtype == "float16":
        workload = half_workload(op, workload, batch)
    inputs = workload.inputs(rng) if dtype == "float32" else half_inputs(workload, rng)
    began = time.perf_counter()
    try:
        with Progress() as progress:
            tuned = auto_schedule(list(workload.tensors), target, callbacks=[progress], **budget)
        functions = tuned.compiled.mod.functions.values()
        (func,) = [f for f in functions if isinstance(f, tirx.PrimFunc)]
        tuning_s = time.perf_counter() - began
        runs, error = _runs(op, inputs, workload, func, target)
    except (AnsorError, RuntimeError) as failed:  # the other operators are wanted
        return replace(row, error=f"{type(failed).__name__}: {failed}")
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            samples[name].append(run())
    found = {name: statistics.median(times) * 1e6 for name, times in samples.items()}
    ours = found.pop("ansor")
    return replace(
        row,
        ansor_us=ours,
        peers_us=found,
        max_rel_err=error,
        tuning_s=tuning_s,
        trials=tuned.tasks[0].trials,
    )


Run = Callable[[], float]


def _runs(
    op: str, inputs: Sequence[Any], workload: Workload, func: Any, target: Any
) -> tuple[dict[str, Run], float]:
    """What is timed, by name, and the error of our result."""
    module, device = build(func, target_text(target, 1)), tvm.cuda(0)
    expected = workload.reference(*inputs)
    out = tvm.runtime.tensor(np.full(expected.shape, np.nan, dtype=expected.dtype), device)
    arguments = [*(tvm.runtime.tensor(x, device) for x in inputs), out]
    module[ENTRY](*arguments)
    error = float(np.abs(out.numpy() - expected).max() / np.abs(expected).max())
    runs: dict[str, Run] = {"ansor": lambda: _time_tvm(module, device, arguments)}
    for name in systems_for(op, Peers(("torch",))):
        runs[name] = _torch_run(op, inputs, name == "torch_channels_last")
    return runs, error


def _time_tvm(module: Any, device: Any, arguments: Sequence[Any]) -> float:
    """Mean seconds of a run, by events on the device."""
    evaluator = module.time_evaluator(ENTRY, device, number=20, repeat=5, min_repeat_ms=20)
    return float(statistics.median(evaluator(*arguments).results))


def _torch_run(op: str, inputs: Sequence[Any], channels_last: bool) -> Run:
    """PyTorch's form of an operator as a recorded graph, so that no call from Python is timed."""
    import torch  # optional

    from benchmarks.peers_torch import form, shape_of

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    made = form(op, inputs, channels_last, shape_of(op), "cuda")
    repeats = 20
    with torch.inference_mode():
        for _ in range(3):  # cuDNN tries its algorithms
            made.call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(repeats):
                made.call()

    def run() -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        graph.replay()
        times = []
        for _ in range(5):
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(float(start.elapsed_time(end)) / 1e3 / repeats)
        return statistics.median(times)

    return run


def table(rows: Sequence[Row]) -> str:
    """For people, and what they come to."""
    cells = [_cells(row) for row in rows]
    ratios = [row.speedup for row in rows if row.speedup is not None]
    text = align(_HEADER, cells, (0, 2, 6))
    if not ratios:
        return text
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    return f"{text}\n\ngeometric mean {mean:.2f} x, least {min(ratios):.2f} x, of {len(ratios)}"


def _cells(row: Row) -> tuple[str, ...]:
    if row.ansor_us is None:
        return (row.op, str(row.batch), row.dtype, *["-"] * 5, row.error, "-")
    peer, speedup = row.best_peer, row.speedup
    return (
        row.op,
        str(row.batch),
        row.dtype,
        f"{row.ansor_us:.1f}",
        f"{peer[1]:.1f}" if peer else "-",
        f"{speedup:.2f} x" if speedup else "-",
        peer[0] if peer else "-",
        f"{row.flops / row.ansor_us / 1e6:.2f}",
        f"{row.max_rel_err:.1e}",
        str(row.trials),
    )


def known_rows(file: str | None) -> list[Row]:
    """The finished operators of an earlier run."""
    if file is None or not Path(file).exists():
        return []
    rows = json.loads(Path(file).read_text(encoding="utf-8"))["results"]
    return [Row(**row) for row in rows if not row["error"]]


@click.command()
@click.option("--ops", default="all", show_default=True, help="Such as C2D.2,GMM.3.")
@click.option("--batches", default="1,16", show_default=True, help="Of the suite's members.")
@click.option(
    "--dtypes", default="float32", show_default=True, help="float16: products, convolutions."
)
@click.option("--target", default="cuda", show_default=True)
@click.option("--trials", type=click.IntRange(0), default=200, show_default=True)
@click.option("--minutes", type=float, help="Of each operator, at most.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--database", metavar="FILE", help="Records, read and extended.")
@click.option("--json", "file", metavar="FILE", help="Results; finished operators are kept.")
def main(
    ops: str,
    batches: str,
    dtypes: str,
    target: str,
    trials: int,
    minutes: float | None,
    rounds: int,
    database: str | None,
    file: str | None,
) -> None:
    """Tunes operators for a GPU and compares them with cuDNN and cuBLAS."""
    unknown = sorted(set(dtypes.split(",")) - set(_DTYPES))
    if unknown:
        raise ArgumentError("dtypes", ",".join(unknown), f"dtypes are {', '.join(_DTYPES)}")
    resolved = resolve_target(target)
    check_runs_here(resolved)
    rows = known_rows(file)
    done = {(row.op, row.batch, row.dtype) for row in rows}
    wanted = [(op, batch, dtype) for dtype in dtypes.split(",") for op, batch in _ops(ops, batches)]
    for op, batch, dtype in wanted:  # a wrong one ends everything before it begins
        if dtype == "float16":
            half_workload(op, workload_of(op, batch), batch)
    gpu = asdict(read_gpu(resolved))
    budget = {"trials": trials, "minutes": minutes, "database": database}
    for op, batch, dtype in wanted:
        if (op, batch, dtype) in done:
            continue
        rows.append(measure(op, batch, dtype, resolved, budget, rounds))
        results = [asdict(row) for row in rows]
        write(file, {"environment": environment(gpu=gpu), "results": results})
        click.echo(table(rows[-1:]))
    click.echo(table(rows))


def _ops(ops: str, batches: str) -> list[tuple[str, int]]:
    """Operators and batches, in the order in which they are measured."""
    return [(op, n) for n in map(int, batches.split(",")) for op in chosen_ops(ops, n)]


if __name__ == "__main__":
    main()
