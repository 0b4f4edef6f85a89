"""Single operators on a GPU: against cuDNN and cuBLAS, as PyTorch calls them, and MetaSchedule.

``python -m benchmarks.cudnn --ops all --trials 200 --minutes 8 --json FILE --database FILE``

A second run with the same files continues the first one: records are in the database, finished
operators in the JSON file, MetaSchedule's tuning in its cache.
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import tvm
from tvm import tirx

from ansor.calls import auto_schedule
from ansor.errors import AnsorError, ArgumentError
from ansor.report.formatting import align
from ansor.report.progress import Progress
from ansor.targets.cuda.detect import read_gpu
from ansor.targets.cuda.target import rounds_to_tf32
from ansor.targets.host.threads import available_cores
from ansor.targets.target import check_runs_here, resolve_target, target_text
from benchmarks.environment import environment, write
from benchmarks.gpu_peers import (
    Run,
    metaschedule_program,
    metaschedule_target,
    torch_run,
    tvm_run,
)
from benchmarks.operator_case import Case, workload_of
from benchmarks.operator_peers import OURS, Peers, parse_peers, systems_for
from benchmarks.operators import chosen_ops, default_cache

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
_DTYPES = ("float32", "float16", "tf32")
_PEERS = Peers(("torch",))


Key = tuple[str, int, str]  # operator, batch, dtype


@dataclass(frozen=True)
class Row:
    """One operator; numbers are None where there are none.

    Attributes:
        ansor_us: of one run, kernels alone, everything warm.
        peers_us: the same of each form that PyTorch has of it, and of MetaSchedule's program.
        max_rel_err: largest difference from NumPy's result over its largest value.
        tuning_s: seconds of the search in this run.
        trials: programs measured so far.
        error: why there is nothing else.
        peers_tuning_s: seconds of peers' searches, in this run or an earlier one.
        missing: peers that there is no time of, and why.
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
    peers_tuning_s: dict[str, float] | None = None
    missing: dict[str, str] | None = None

    @property
    def key(self) -> Key:
        """What tells rows apart."""
        return self.op, self.batch, self.dtype

    @property
    def best_peer(self) -> tuple[str, float] | None:
        """The fastest peer and its time."""
        return min(self.peers_us.items(), key=lambda pair: pair[1]) if self.peers_us else None

    @property
    def speedup(self) -> float | None:
        """Speedup over the fastest peer."""
        return self.speedup_over("")

    def speedup_over(self, system: str) -> float | None:
        """The same of the fastest form of a system, or of any ("")."""
        times = [us for name, us in (self.peers_us or {}).items() if name.startswith(system)]
        return min(times) / self.ansor_us if times and self.ansor_us is not None else None


def measure(
    op: str,
    batch: int,
    dtype: str,
    target: tvm.target.Target,
    budget: dict[str, Any],
    rounds: int,
    peers: Peers = _PEERS,
    cache: str = "",
) -> Row:
    """Tunes one operator, and times it and its peers in turns.

    Args:
        dtype: "float32", "float16", or "tf32", to which products in float32 are rounded.
        target: of the GPU, which says nothing of tf32.
        budget: keyword arguments of `auto_schedule`.
        peers: "torch" and "metaschedule", with its trials.
        cache: folder that MetaSchedule's tuning is kept in.
    """
    row = Row(op, batch, dtype, workload_of(op, batch).flops)
    with tempfile.TemporaryDirectory() as folder:
        case = Case(
            op,
            batch,
            folder,
            metaschedule_target(read_gpu(target)),
            available_cores(),
            trials=peers.trials,
            cache=cache,
            dtype=_operands(dtype),
        )
        try:
            row, runs = _prepared(row, case, target_of(dtype, target), budget, peers)
        except (AnsorError, RuntimeError) as failed:  # the other operators are wanted
            return replace(row, error=f"{type(failed).__name__}: {failed}")
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            samples[name].append(run())
    found = {name: statistics.median(times) * 1e6 for name, times in samples.items()}
    return replace(row, ansor_us=found.pop("ansor"), peers_us=found)


def _operands(dtype: str) -> str:
    """The dtype of operands in memory."""
    return "float32" if dtype == "tf32" else dtype


def target_of(dtype: str, target: tvm.target.Target) -> tvm.target.Target:
    """The target of our programs, on which products in float32 may be rounded or not.

    Raises:
        ArgumentError: the GPU's tensor cores know no tf32.
    """
    arch = target.attrs["arch"]
    return resolve_target(f"cuda -arch={arch} -tf32") if dtype == "tf32" else target


def _prepared(
    row: Row, case: Case, target: tvm.target.Target, budget: dict[str, Any], peers: Peers
) -> tuple[Row, dict[str, Run]]:
    """Tunes our program and, if requested, MetaSchedule's; returns the timed programs by name."""
    workload, began = case.workload, time.perf_counter()
    with Progress() as progress:
        tuned = auto_schedule(list(workload.tensors), target, callbacks=[progress], **budget)
    (func,) = [f for f in tuned.compiled.mod.functions.values() if isinstance(f, tirx.PrimFunc)]
    row = replace(row, tuning_s=time.perf_counter() - began, trials=tuned.tasks[0].trials)
    inputs, runs = case.inputs(workload), {}
    expected = workload.reference(*inputs)
    runs["ansor"], error = tvm_run(func, inputs, expected, target_text(target, case.threads))
    peers_tuning_s, missing = {}, {}
    for name in systems_for(case.op, peers):
        if name != "metaschedule":
            last = name == "torch_channels_last"
            runs[name] = torch_run(case.op, inputs, last, tf32=row.dtype == "tf32")
            continue
        try:
            other, notes = metaschedule_program(case)
            runs[name], _ = tvm_run(other, inputs, expected, case.target, exact=True)
            peers_tuning_s[name] = notes["tuning_s"]
        except (AnsorError, RuntimeError) as failed:  # the times of the others are wanted
            missing[name] = str(failed)
    return replace(row, max_rel_err=error, peers_tuning_s=peers_tuning_s, missing=missing), runs


def table(rows: Sequence[Row]) -> str:
    """The rows and their summary, as text."""
    cells = [_cells(row) for row in rows]
    names = {name.partition("_")[0] for row in rows for name in row.peers_us or ()}
    systems = sorted(names) if len(names) > 1 else []
    lines = [_summary(rows, system) for system in ("", *systems)]
    return "\n".join([align(_HEADER, cells, (0, 2, 6)), "", *lines]).rstrip()


def _summary(rows: Sequence[Row], system: str) -> str:
    """Our speedup over a system, or over the fastest system for ""."""
    ratios = [ratio for row in rows if (ratio := row.speedup_over(system)) is not None]
    if not ratios:
        return ""
    mean, over = math.exp(statistics.fmean(map(math.log, ratios))), f"{system}: " * bool(system)
    return f"{over}geometric mean {mean:.2f} x, least {min(ratios):.2f} x, of {len(ratios)}"


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


def known_rows(file: str | None) -> dict[Key, Row]:
    """The finished operators of earlier runs."""
    if file is None or not Path(file).exists():
        return {}
    found = json.loads(Path(file).read_text(encoding="utf-8"))["results"]
    rows = (Row(**row) for row in found if not row["error"])
    return {row.key: row for row in rows}


def has_peers(row: Row | None, peers: Peers) -> bool:
    """Whether a finished operator was compared with all those peers, or it is known why not."""
    if row is None:
        return False
    return {*systems_for(row.op, peers)} <= {*(row.peers_us or ()), *(row.missing or ())}


def parse_gpu_peers(text: str) -> Peers:
    """Reads "torch,metaschedule:200".

    Raises:
        ArgumentError: an unknown peer, or trials that are no positive integer.
    """
    peers = parse_peers(text)
    for name in set(OURS) & set(peers.names):
        raise ArgumentError("peers", name, "give torch, metaschedule[:TRIALS]")
    return peers


@click.command()
@click.option("--ops", default="all", show_default=True, help="Such as C2D.2,GMM.3.")
@click.option("--batches", default="1,16", show_default=True, help="Of the suite's members.")
@click.option(
    "--dtypes",
    default="float32",
    show_default=True,
    help="float16: products, convolutions; tf32: float32, rounded for tensor cores.",
)
@click.option("--target", default="cuda", show_default=True)
@click.option("--peers", default="torch", show_default=True, help="torch,metaschedule:TRIALS")
@click.option("--cache", default=default_cache, help="Where MetaSchedule's tuning is kept.")
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
    peers: str,
    cache: str,
    trials: int,
    minutes: float | None,
    rounds: int,
    database: str | None,
    file: str | None,
) -> None:
    """Tunes operators for a GPU and compares them with cuDNN, cuBLAS and MetaSchedule."""
    unknown = sorted(set(dtypes.split(",")) - set(_DTYPES))
    if unknown:
        raise ArgumentError("dtypes", ",".join(unknown), f"give some of {', '.join(_DTYPES)}")
    others = parse_gpu_peers(peers)
    resolved = resolve_target(target)
    if rounds_to_tf32(resolved):
        raise ArgumentError("target", target, "leave out -tf32 and say --dtypes tf32")
    check_runs_here(resolved)
    rows = known_rows(file)
    wanted = [(op, batch, dtype) for dtype in dtypes.split(",") for op, batch in _ops(ops, batches)]
    for op, batch, dtype in wanted:  # a wrong one ends everything before it begins
        workload_of(op, batch, _operands(dtype))
        target_of(dtype, resolved)
    gpu = asdict(read_gpu(resolved))
    budget = {"trials": trials, "minutes": minutes, "database": database}
    for op, batch, dtype in wanted:
        if has_peers(rows.get((op, batch, dtype)), others):
            continue
        row = measure(op, batch, dtype, resolved, budget, rounds, others, cache)
        rows[row.key] = row
        results = [asdict(row) for row in rows.values()]
        write(file, {"environment": environment(gpu=gpu), "results": results})
        click.echo(table([row]))
    click.echo(table([*rows.values()]))


def _ops(ops: str, batches: str) -> list[tuple[str, int]]:
    """Operators and batches, in the order in which they are measured."""
    return [(op, n) for n in map(int, batches.split(",")) for op in chosen_ops(ops, n)]


if __name__ == "__main__":
    main()
